"""The command ``rbydyn``: check, describe, measure and show robot files, and see the library at work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .._errors import ParseError, RbydynError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: The words after ``rbydyn``; default is those of the process.

    Returns:
        The exit code: 0 if all is well, 1 if a result is not good enough or there are warnings under ``--strict``, 2 if
        an input is wrong.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except ParseError as error:
        print(error, file=sys.stderr)
    except (RbydynError, OSError) as error:
        print(f"rbydyn: error: {error}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rbydyn", description="Kinematics and dynamics of robots in JAX.")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="batches and a trajectory optimisation on the built-in RB-Y1 A")
    demo.add_argument("--output", type=Path, default=Path("demo"), metavar="DIR", help="where the figure goes (demo)")
    demo.add_argument("--batch", type=_positive, default=4096, help="number of random configurations (4096)")
    demo.set_defaults(run=_demo)

    info = commands.add_parser("info", help="joints, limits, mass and more of a URDF file")
    info.add_argument("robot", type=Path, help="a URDF file")
    info.add_argument("--json", action="store_true", help="for machines")
    info.set_defaults(run=_info)

    check = commands.add_parser(
        "check", help="what is wrong in URDF files", epilog="Exit code: 0 clean, 1 warnings with --strict, 2 errors."
    )
    check.add_argument("robots", type=Path, nargs="+", metavar="robot", help="a URDF file")
    check.add_argument("--json", action="store_true", help="for machines")
    check.add_argument("--strict", action="store_true", help="warnings count")
    check.set_defaults(run=_check)

    bench = commands.add_parser("bench", help="speed of the algorithms on a URDF file, or what float32 costs")
    bench.add_argument("robot", type=Path, help="a URDF file")
    bench.add_argument("--batches", type=_sizes, default=(1, 64, 1024), help="sizes; 1 is an eager call (1,64,1024)")
    bench.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="of the speed (float64)")
    bench.add_argument("--precision", action="store_true", help="errors of float32 against float64 instead of speed")
    bench.add_argument("--samples", type=_positive, default=256, help="random states for --precision (256)")
    bench.add_argument("--seed", type=int, default=0, help="of the random states (0)")
    bench.add_argument("--json", action="store_true", help="for machines")
    bench.set_defaults(run=_bench)

    view = commands.add_parser("view", help="a robot in a browser, with sliders")
    view.add_argument("robot", help="a URDF, xacro or MJCF file, or a name such as rby1a")
    view.add_argument("--q", type=_numbers, metavar="X,X,...", help="its configuration [rad, m] (neutral)")
    view.add_argument("--drag", action="append", default=[], metavar="LINK", help="a link to be dragged; several times")
    view.add_argument(
        "--packages", type=Path, action="append", default=[], metavar="DIR", help="where package:// is looked for"
    )
    view.add_argument("--host", default="127.0.0.1", help="network interface; 0.0.0.0 lets others in (127.0.0.1)")
    view.add_argument("--port", type=int, default=8080, help="the first port that is tried (8080)")
    view.set_defaults(run=_view)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({_positive(x) for x in text.split(",")}))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(x) for x in text.split(","))


# A command's own modules are imported when it runs.


def _demo(options: argparse.Namespace) -> int:
    from .demo import demo

    return demo(options.output, options.batch)


def _info(options: argparse.Namespace) -> int:
    from .info import info

    return info(options.robot, options.json)


def _check(options: argparse.Namespace) -> int:
    from .check import check

    return check(options.robots, as_json=options.json, strict=options.strict)


def _bench(options: argparse.Namespace) -> int:
    from .bench import precision, speed

    if options.precision:
        return precision(options.robot, options.samples, options.seed, options.json)
    return speed(options.robot, options.batches, options.dtype, options.seed, options.json)


def _view(options: argparse.Namespace) -> int:
    from .view import view

    return view(
        options.robot,
        options.q,
        drag=options.drag,
        packages=options.packages,
        host=options.host,
        port=options.port,
    )
