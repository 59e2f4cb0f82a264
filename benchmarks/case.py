"""What is measured: robots, inputs, and the interface through which a library enters the race."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbydyn_jax import (
    Model,
    RobotBuilder,
    build_model,
    integrate,
    load_urdf,
    lock_joints,
    neutral,
    robots,
    testing,
)

CHECKED = 4  # configurations on which all libraries must agree
LOOP = 32  # configurations of one pass of a library that takes one at a time
TITLES = {
    "rby1a": "RB-Y1 A",
    "panda": "Panda",
    "g1": "G1",
    "talos": "Talos",
    "talos_floating": "Talos, floating",
    "anymal": "ANYmal",
    "ur5": "UR5",
    "xarm7": "xArm7",
    "icub": "iCub",
    "vega": "Vega",
    "every_type": "tree of all joint types",
}
SCALABLE = re.compile(r"(chain|tree)(\d+)")  # robots of any size


@dataclass(frozen=True)
class Case:
    """One robot, and configurations for the largest batch, in float64."""

    robot: str
    model: Model
    link: str
    dtype: str
    inputs: dict[str, np.ndarray] = field(repr=False)

    @property
    def moving_share(self) -> float:
        """Share of the moving links in the mass: others leave out of the centre of mass what is fixed to the world."""
        moving = float(np.sum(self.model.inertias[:, 0], dtype=np.float64))
        return moving / float(np.sum(self.model.link_inertias[:, 0], dtype=np.float64))


@dataclass(frozen=True)
class Entry:
    """One library doing one operation on one batch.

    `run` computes the whole batch and returns when it is done. `overhead` does all that `run` does except the operation
    itself; its time is subtracted. `values` are the results on the first `CHECKED` configurations, in our conventions;
    NaN stands for what the library does not tell. `facts` go into the record as they are.
    """

    library: str
    operation: str
    batch: int
    run: Callable[[], Any]
    overhead: Callable[[], Any] | None = None
    values: Callable[[], np.ndarray] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.library}|{self.operation}|{self.batch}"


def make_case(robot: str, dtype: str, size: int) -> Case:
    """The robot by name, and random inputs."""
    model, link = _load(robot)
    rng = np.random.default_rng(7)
    # Away from a quarter turn, where rby1_sdk loses digits.
    scales = {"q": 1.4, "v": 1.0, "a": 2.0, "tau": 5.0}
    rows = max(size, LOOP)
    inputs = {name: rng.uniform(-s, s, (rows, model.nv)) for name, s in scales.items()}
    inputs |= {"q2": rng.uniform(-1.4, 1.4, (rows, model.nv))}
    inputs |= {"point": rng.uniform(-0.5, 0.5, (rows, 3)), "wrench": rng.uniform(-5.0, 5.0, (rows, 6))}
    if model.nq != model.nv:  # displacements from the neutral configuration
        moved = jax.vmap(lambda v: integrate(model, neutral(model), v))
        inputs |= {name: np.asarray(moved(jnp.asarray(inputs[name])), np.float64) for name in ("q", "q2")}
    return Case(robot, model, link, dtype, inputs)


def chain(n: int) -> Model:
    """A random unbranched robot; of one joint, it shows what a call costs that has next to nothing to do."""
    return build_model(testing.random_description(n, ("revolute",), n, branching=0.0, armature=False))


def tree(n: int) -> Model:
    """A binary tree of hinges: bars that fork, every one with a mass, turned about axes that are not aligned."""
    rng = np.random.default_rng(n)
    builder = RobotBuilder(f"tree{n}").link("link_0")
    for i in range(1, n + 1):
        inertial = testing.random_inertial(rng)
        builder.link(f"link_{i}", inertial.mass, inertial.com, inertial.inertia)
        where = {"xyz": rng.uniform(-0.3, 0.3, 3), "rpy": rng.uniform(-1.5, 1.5, 3), "axis": rng.normal(size=3)}
        builder.revolute(f"joint_{i}", f"link_{i // 2}", f"link_{i}", **where, lower=-3.0, upper=3.0)
    return build_model(builder.build_description())


def _load(robot: str) -> tuple[Model, str]:
    if robot == "rby1a":
        return robots.rby1a(), "ee_right"
    if robot == "panda":
        model = load_urdf(example_robot("panda_description/urdf/panda.urdf"))
        return lock_joints(model, {"panda_finger_joint1": 0.0}), "panda_hand"
    if robot == "g1":
        return load_urdf(example_robot("g1_description/urdf/g1_29dof_rev_1_0.urdf")), "right_wrist_yaw_link"
    if robot == "talos":
        return load_urdf(example_robot("talos_data/robots/talos_reduced.urdf")), "gripper_right_base_link"
    if robot == "talos_floating":
        return _file("talos_data/robots/talos_reduced.urdf", True), "gripper_right_base_link"
    if robot == "anymal":
        return _file("anymal_b_simple_description/robots/anymal.urdf", True), "RH_FOOT"
    if robot == "ur5":
        return _file("ur_description/urdf/ur5_robot.urdf"), "tool0"
    if robot == "xarm7":
        return _file("xarm_description/urdf/xarm7.urdf"), "link_eef"
    if robot == "icub":
        return _of_wheel("icub-models", "iCubGazeboV2_7/model.urdf", True), "r_hand"
    if robot == "vega":  # with joints that mimic others
        return _of_wheel("dexmate-urdf", "vega.urdf", False), "R_ee"
    if robot == "every_type":
        model = testing.random_tree(1, n=20)
        return model, model.link_names[-1]
    if match := SCALABLE.fullmatch(robot):
        n = int(match[2])
        return {"chain": chain, "tree": tree}[match[1]](n), f"link_{n}"
    known = ", ".join(TITLES)
    raise SystemExit(f"no robot {robot!r}: {known}, chainN or treeN")


def _file(relative: str, floating_base: bool = False) -> Model:
    return load_urdf(example_robot(relative), floating_base=floating_base)


def _of_wheel(wheel: str, ending: str, floating_base: bool) -> Model:
    """A robot from a file that a wheel brings along."""
    paths = [Path(str(file.locate())) for file in metadata.files(wheel) or [] if str(file).endswith(ending)]
    return load_urdf(paths[0], floating_base=floating_base)


def example_robot(relative: str) -> Path:
    return Path(sysconfig.get_path("purelib"), "cmeel.prefix", "share", "example-robot-data", "robots", relative)
