"""The arguments of ``rbydyn``. A command's own modules, and JAX with them, are imported when it runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import values
from .values import ENGINES, MOST_RANDOM, TERMS

ROBOT = "a URDF, xacro or MJCF file, or a name: of the library (rby1a), or of robot_descriptions (panda_description)"
_EPILOG = """\
Exit code: 0 if all is well; 1 if a result is not good enough: warnings with check --strict, no solution of ik,
an error above the bound of compare, a fit of identify that predicts no better, a failed check of demo or doctor;
2 if an argument or a file is wrong; 141 if the reader of the output has gone.
Completion in bash and zsh: pip install 'rbydyn_jax[completion]'; eval "$(register-python-argcomplete rbydyn)"."""


class _Parser(argparse.ArgumentParser):
    """Takes a list of numbers that begins with a minus sign for a value, as argparse does a single number."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._negative_number_matcher = re.compile(r"^-\.?\d[-+.,\deE]*$")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"rbydyn_jax {version('rbydyn_jax')}")
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands; each sets ``run``, which takes the options and returns the exit code."""
    parser = _Parser(
        prog="rbydyn",
        description="Kinematics and dynamics of robots in JAX.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(required=True, metavar="command")
    for add in (
        _info, _check, _fk, _ik, _compare, _identify, _bench, _convert, _codegen, _view, _demo, _doctor,
    ):  # fmt: skip
        add(commands.add_parser)
    return parser


_Add = Callable[..., argparse.ArgumentParser]


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for machines")


def _configuration(parser: argparse._ActionsContainer, name: str = "--q", default: str = "neutral") -> None:
    parser.add_argument(name, type=values.numbers, metavar="X,X,...", help=f"configuration [rad, m] ({default})")


def _info(add: _Add) -> None:
    parser = add("info", help="joints, limits, mass and more of a robot")
    parser.add_argument("robot", help=ROBOT)
    _json(parser)

    def run(options: argparse.Namespace) -> int:
        from .info import info

        return info(options.robot, options.json)

    parser.set_defaults(run=run)


def _check(add: _Add) -> None:
    parser = add(
        "check", help="what is wrong in robot files", epilog="Exit code: 0 clean, 1 warnings with --strict, 2 errors."
    )
    parser.add_argument("robots", nargs="+", metavar="robot", help=ROBOT)
    _json(parser)
    parser.add_argument("--strict", action="store_true", help="warnings count")

    def run(options: argparse.Namespace) -> int:
        from .check import check

        return check(options.robots, as_json=options.json, strict=options.strict)

    parser.set_defaults(run=run)


def _fk(add: _Add) -> None:
    parser = add("fk", help="poses of links")
    parser.add_argument("robot", help=ROBOT)
    parser.add_argument("--link", action="append", default=[], help="a link (all); several times")
    which = parser.add_mutually_exclusive_group()
    _configuration(which)
    which.add_argument(
        "--random", type=values.random, metavar="N", help=f"N configurations within the limits, at most {MOST_RANDOM}"
    )
    parser.add_argument("--seed", type=values.seed, default=0, help="of --random (0)")
    _json(parser)

    def run(options: argparse.Namespace) -> int:
        from .fk import fk

        return fk(options.robot, options.link, options.q, options.random, options.seed, options.json)

    parser.set_defaults(run=run)


def _ik(add: _Add) -> None:
    parser = add(
        "ik", help="a configuration that brings a link to a pose", epilog="Exit code: 0 solved, 1 no solution found."
    )
    parser.add_argument("robot", help=ROBOT)
    parser.add_argument("--link", required=True, help="the link")
    parser.add_argument(
        "--position", type=values.three, required=True, metavar="X,Y,Z", help="of the link in the world [m]"
    )
    turn = parser.add_mutually_exclusive_group()
    turn.add_argument("--quaternion", type=values.four, metavar="W,X,Y,Z", help="orientation (any)")
    turn.add_argument(
        "--rpy", type=values.three, metavar="R,P,Y", help="orientation as roll, pitch and yaw [rad] (any)"
    )
    parser.add_argument("--clearance", type=float, metavar="D", help="least distance of collision shapes [m] (any)")
    _configuration(parser, "--q0", "random starts")
    parser.add_argument("--seed", type=values.seed, default=0, help="of the random starts (0)")
    _json(parser)

    def run(options: argparse.Namespace) -> int:
        from .ik import ik

        return ik(
            options.robot,
            options.link,
            options.position,
            quaternion=options.quaternion,
            rpy=options.rpy,
            clearance=options.clearance,
            q0=options.q0,
            seed=options.seed,
            as_json=options.json,
        )

    parser.set_defaults(run=run)


def _compare(add: _Add) -> None:
    parser = add(
        "compare",
        help="results beside those of Pinocchio, MuJoCo and rby1_sdk",
        epilog="Exit code: 0 if all errors are within the bound, 1 if one is above.",
    )
    parser.add_argument("robot", help=ROBOT)
    parser.add_argument(
        "--with", dest="engines", type=values.engines, required=True, metavar="A,B", help=f"some of {','.join(ENGINES)}"
    )
    parser.add_argument(
        "--samples", type=values.positive, default=100, help="configurations, the first is neutral (100)"
    )
    parser.add_argument("--seed", type=values.seed, default=0, help="of the random states (0)")
    parser.add_argument("--bound", type=values.bound, default=1e-9, help="of the relative errors (1e-9)")
    _json(parser)

    def run(options: argparse.Namespace) -> int:
        from .compare import compare

        return compare(options.robot, options.engines, options.samples, options.seed, options.bound, options.json)

    parser.set_defaults(run=run)


def _identify(add: _Add) -> None:
    parser = add(
        "identify",
        help="inertias, friction, payload or motor constants from a log of torques",
        description="LOG is a CSV file with the columns time, q_<joint> and tau_<joint>, or current_<joint>.",
        epilog="Exit code: 0 if the fitted robot predicts the rows that were held out better, 1 if not.",
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="a CSV file")
    parser.add_argument("--urdf", dest="robot", required=True, metavar="ROBOT", help=ROBOT)
    parser.add_argument(
        "--terms", type=values.terms, default=TERMS, metavar="A,B", help=f"some of {','.join(TERMS)} (all of them)"
    )
    parser.add_argument(
        "--link", action="append", default=[], help="a link whose inertia is fitted (all, with --payload none)"
    )
    parser.add_argument(
        "--payload",
        metavar="LINK",
        help="a link that carries something unknown, fitted beside each --link and the drives of --terms",
    )
    parser.add_argument(
        "--constants",
        type=values.numbers,
        metavar="X,X,...",
        help="the log has currents: torque per ampere, about [N m/A]",
    )
    parser.add_argument("--prior", type=float, default=1.0, help="how wrong the parameters may be, relative (1)")
    parser.add_argument("--huber", type=float, metavar="S", help="errors beyond S deviations count less (all alike)")
    parser.add_argument("--window", type=values.positive, default=21, metavar="N", help="rows to smooth over, odd (21)")
    parser.add_argument(
        "--held-out", type=values.share, default=0.25, metavar="X", help="share of rows not fitted (0.25)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="the fitted robot as URDF (not written)")
    _json(parser)

    def run(options: argparse.Namespace) -> int:
        from .identify import identify

        return identify(
            options.log,
            options.robot,
            terms=options.terms,
            links=options.link,
            payload=options.payload,
            constants=options.constants,
            prior=options.prior,
            huber=options.huber,
            window=options.window,
            held_out=options.held_out,
            output=options.output,
            as_json=options.json,
        )

    parser.set_defaults(run=run)


def _bench(add: _Add) -> None:
    parser = add("bench", help="speed of the algorithms on a robot, or what float32 costs")
    parser.add_argument("robot", help=ROBOT)
    parser.add_argument(
        "--batches", type=values.sizes, default=(1, 64, 1024), help="sizes; 1 is an eager call (1,64,1024)"
    )
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="of the speed (float64)")
    parser.add_argument("--precision", action="store_true", help="errors of float32 against float64 instead of speed")
    parser.add_argument("--samples", type=values.positive, default=256, help="random states for --precision (256)")
    parser.add_argument("--seed", type=values.seed, default=0, help="of the random states (0)")
    _json(parser)

    def run(options: argparse.Namespace) -> int:
        from .bench import precision, speed

        if options.precision:
            return precision(options.robot, options.samples, options.seed, options.json)
        return speed(options.robot, options.batches, options.dtype, options.seed, options.json)

    parser.set_defaults(run=run)


def _convert(add: _Add) -> None:
    parser = add("convert", help="write a robot as URDF")
    parser.add_argument("robot", help=ROBOT)
    parser.add_argument("--output", type=Path, metavar="FILE", help="the file (standard output)")
    parser.add_argument("--no-collisions", action="store_true", help="leave the collision shapes out")
    parser.add_argument(
        "--capsules",
        choices=("capsule", "cylinder"),
        default="capsule",
        help="write each as such, or as a cylinder with a sphere at each end, for readers that know none (capsule)",
    )

    def run(options: argparse.Namespace) -> int:
        from .convert import convert

        return convert(options.robot, options.output, collisions=not options.no_collisions, capsules=options.capsules)

    parser.set_defaults(run=run)


def _codegen(add: _Add) -> None:
    parser = add("codegen", help="write a function of a robot in C")
    parser.add_argument("robot", help=ROBOT)
    parser.add_argument("--function", required=True, help="of the library: rnea, link_pose, jacobian, crba, ...")
    parser.add_argument(
        "--set", dest="arguments", type=values.named, action="append", default=[], metavar="NAME=VALUE",
        help="an argument of the function, such as link=tool; several times",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("."), metavar="DIR", help="where the files go (.)")
    parser.add_argument("--name", help="name in C (ROBOT_FUNCTION_VALUES)")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="double or float (float64)")
    parser.add_argument("--parameters", action="store_true", help="masses and lengths are an argument, not constants")

    def run(options: argparse.Namespace) -> int:
        from .codegen import codegen

        return codegen(
            options.robot,
            options.function,
            options.output,
            arguments=options.arguments,
            name=options.name,
            dtype=options.dtype,
            parameters=options.parameters,
        )

    parser.set_defaults(run=run)


def _view(add: _Add) -> None:
    parser = add("view", help="a robot in a browser, with sliders")
    parser.add_argument("robot", help=ROBOT)
    _configuration(parser)
    parser.add_argument("--drag", action="append", default=[], metavar="LINK", help="a link to drag; several times")
    parser.add_argument(
        "--packages", type=Path, action="append", default=[], metavar="DIR", help="where package:// is looked for"
    )
    parser.add_argument("--host", default="127.0.0.1", help="network interface; 0.0.0.0 lets others in (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, help="the first port that is tried (8080)")

    def run(options: argparse.Namespace) -> int:
        from .view import view

        return view(
            options.robot,
            options.q,
            drag=options.drag,
            packages=options.packages,
            host=options.host,
            port=options.port,
        )

    parser.set_defaults(run=run)


def _demo(add: _Add) -> None:
    parser = add("demo", help="batches and a trajectory optimization on the built-in RB-Y1 A")
    parser.add_argument("--output", type=Path, default=Path("demo"), metavar="DIR", help="where the figure goes (demo)")
    parser.add_argument("--batch", type=values.positive, default=4096, help="number of random configurations (4096)")

    def run(options: argparse.Namespace) -> int:
        from .demo import demo

        return demo(options.output, options.batch)

    parser.set_defaults(run=run)


def _doctor(add: _Add) -> None:
    parser = add("doctor", help="versions, devices, settings and optional packages")
    _json(parser)

    def run(options: argparse.Namespace) -> int:
        from .doctor import doctor

        return doctor(options.json)

    parser.set_defaults(run=run)
