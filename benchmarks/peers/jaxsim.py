"""JaxSim (JAX) through plain `vmap`. It reads SDF, written here from the bodies of our model.

The base is a link that is welded to the world; the rows and columns of its six degrees of freedom are left out.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np

from rbydyn_jax import Model
from rbydyn_jax.io.placement import rpy_from_rotation

from ..case import Case, Entry
from . import _jax, placement

os.environ.setdefault("JAXSIM_LOGGING_LEVEL", "ERROR")
_printing = np.get_printoptions()
import jaxsim  # noqa: E402
import jaxsim.api as js  # noqa: E402

np.set_printoptions(**_printing)  # its import changes them

_FAR = {"lower": "-1000", "upper": "1000", "effort": "1000", "velocity": "1000"}


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    yield from _jax.entries(library(case), case, operations, batches)


def library(case: Case) -> _jax.Library:
    """Its functions of one configuration."""
    model = case.model
    robot = js.model.JaxSimModel.build_from_model_description(
        _sdf(model), is_urdf=False, gravity=9.81, considered_joints=list(model.joint_names)
    )
    order = [model.joint_names.index(name) for name in robot.joint_names()]  # theirs -> ours
    links = np.array([robot.link_names().index(f"body_{i}") for i in order])
    body, T = placement(model, case.link)
    carrier, offset = robot.link_names().index(f"body_{body}"), jnp.asarray(T[:3, 3], case.dtype)

    def state(q: jax.Array, v: jax.Array | None = None) -> js.data.JaxSimModelData:
        mixed = jaxsim.VelRepr.Mixed
        return js.data.JaxSimModelData.build(
            robot, joint_positions=q, joint_velocities=v, velocity_representation=mixed
        )

    def position(q):
        T = state(q)._link_transforms[carrier]
        return T[:3, :3] @ offset + T[:3, 3]

    def jacobian(q):
        d = state(q)
        linear, angular = jnp.split(js.link.jacobian(robot, d, link_index=carrier)[:, 6:], 2)
        arm = d._link_transforms[carrier][:3, :3] @ offset
        return jnp.concatenate([angular, linear + jnp.cross(angular.T, arm).T])

    def rnea(q, v, a):
        resting = jnp.zeros(6, q.dtype)
        return js.model.inverse_dynamics(robot, state(q, v), joint_accelerations=a, base_acceleration=resting)[1]

    functions = {
        "fk": lambda q: state(q)._link_transforms[links],
        "position": position,
        "jacobian": jacobian,
        "rnea": rnea,
        "crba": lambda q: js.model.free_floating_mass_matrix(robot, state(q))[6:, 6:],
        "aba": lambda q, v, tau: js.model.forward_dynamics_aba(robot, state(q, v), joint_forces=tau)[1],
    }
    return _jax.Library("jaxsim", functions, order)


def version() -> str:
    return importlib.metadata.version("jaxsim")


def _sdf(model: Model) -> str:
    sdf = ElementTree.Element("sdf", version="1.7")
    robot = ElementTree.SubElement(sdf, "model", name="robot")
    _link(robot, "base", None, np.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1]))
    weld = ElementTree.SubElement(robot, "joint", name="weld", type="fixed")
    ElementTree.SubElement(weld, "pose", relative_to="base").text = "0 0 0 0 0 0"
    ElementTree.SubElement(weld, "parent").text = "world"
    ElementTree.SubElement(weld, "child").text = "base"
    placements, axes = np.asarray(model.joint_placements, float), np.asarray(model.joint_axes, float)
    for i, name in enumerate(model.joint_names):
        above = model.tree.parents[i]
        parent = "base" if above < 0 else f"body_{above}"
        kind = "prismatic" if model.tree.joint_types[i] == "prismatic" else "revolute"
        joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
        pose = [*placements[i, :3, 3], *rpy_from_rotation(placements[i, :3, :3])]
        ElementTree.SubElement(joint, "pose", relative_to=parent).text = _text(pose)
        ElementTree.SubElement(joint, "parent").text = parent
        ElementTree.SubElement(joint, "child").text = f"body_{i}"
        axis = ElementTree.SubElement(joint, "axis")
        ElementTree.SubElement(axis, "xyz").text = _text(axes[i])
        limit = ElementTree.SubElement(axis, "limit")
        for what, value in _FAR.items():
            ElementTree.SubElement(limit, what).text = value
        _link(robot, f"body_{i}", name, np.asarray(model.inertias[i], float))
    return ElementTree.tostring(sdf, encoding="unicode")


def _link(robot: ElementTree.Element, name: str, joint: str | None, parameters: np.ndarray) -> None:
    m, c = parameters[0], parameters[1:4] / parameters[0]
    xx, xy, yy, xz, yz, zz = parameters[4:]
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
    link = ElementTree.SubElement(robot, "link", name=name)
    where = {} if joint is None else {"relative_to": joint}
    ElementTree.SubElement(link, "pose", where).text = "0 0 0 0 0 0"
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "pose").text = _text([*c, 0, 0, 0])
    ElementTree.SubElement(inertial, "mass").text = _text([m])
    inertia = ElementTree.SubElement(inertial, "inertia")
    for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        ElementTree.SubElement(inertia, "i" + "xyz"[a] + "xyz"[b]).text = _text([moments[a, b]])


def _text(numbers: Sequence[float] | np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in numbers)
