"""From a `Model` back to a description and to URDF."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from .._check import check_flag
from .._errors import DtypeError, ModelError
from ..model.model import Model, check_model, single_shapes, welded_shares
from .description import (
    CollisionDescription,
    Inertial,
    JointDescription,
    LinkDescription,
    Mimic,
    MobileBaseDescription,
    RobotDescription,
    free_name,
)
from .urdf_writer import Capsules, write_urdf

_LEAVES = (
    "joint_placements",
    "joint_axes",
    "position_lower",
    "position_upper",
    "mimic_multipliers",
    "mimic_offsets",
)
_PER_VELOCITY = {
    "velocity": "velocity_limit",
    "acceleration": "acceleration_limit",
    "effort": "effort_limit",
    "damping": "damping",
    "friction": "friction",
    "armature": "armature",
}


def to_urdf(model: Model, *, collisions: bool = True, capsules: Capsules = "capsule") -> str:
    """Returns URDF text of a robot with the same kinematics and dynamics.

    A link that is welded to another one is written with a fixed joint named ``<link>_fixed``. The joints are written
    depth-first; to restore another order, load it with `joint_order=model.joint_names`.
    A continuous joint with limits of position is written as a revolute one, as URDF has them for that type only.
    Gravity is not part of URDF. A robot whose base link moves gets an additional root link ``world``.

    Args:
        model: The robot.
        collisions: Whether to write the collision shapes.
        capsules: `"capsule"` writes capsules by a tag that is not part of standard URDF; `"cylinder"` writes each as a
            cylinder with a sphere at each end, which fill the same space, for readers that know no capsule.

    Raises:
        ArgumentError: `capsules` is another word.
        DtypeError: `model` is not a model, or `collisions` neither True nor False.
        ModelError: A joint is of a type that URDF does not have, or has different values for its coordinates, which
            URDF does not support.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.io import load_urdf_string
        >>> load_urdf_string(to_urdf(robots.two_link_arm())).joint_names
        ('shoulder', 'elbow')
    """
    return write_urdf(describe(model), collisions=check_flag(collisions, "collisions"), capsules=capsules)


def save_urdf(model: Model, path: str | Path, *, collisions: bool = True, capsules: Capsules = "capsule") -> None:
    """Writes `to_urdf(model)` to a file in UTF-8; see there.

    Args:
        model: The robot.
        path: The file, which is replaced if it exists.
        collisions: Whether to write the collision shapes.
        capsules: As in `to_urdf`.

    Raises:
        ArgumentError: `capsules` is another word.
        DtypeError: `path` is not a path.
        FileNotFoundError: The directory does not exist.
        IsADirectoryError: `path` is one.
        ModelError: A joint is of a type that URDF does not have, or has different values for its coordinates, which
            URDF does not support.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "arm.urdf"
        >>> save_urdf(robots.two_link_arm(), path)
        >>> load_urdf(path).nv
        2
    """
    if not isinstance(path, str | os.PathLike):
        raise DtypeError(f"path must be a str or a Path, got {type(path).__name__}")
    text, path = to_urdf(model, collisions=collisions, capsules=capsules), Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such directory to write into", str(path.parent))
    path.write_text(text, encoding="utf-8")


def describe(model: Model) -> RobotDescription:
    """Returns the description of a model, from which `build_model` makes an equal one.

    Raises:
        DtypeError: `model` is not a model.
        ModelError: A joint has different limits or losses for its coordinates; a description has one value for all.
    """
    tree = check_model(model).tree
    for body, (kind, name) in enumerate(zip(tree.joint_types, tree.joint_names, strict=True)):
        if tree.joints[body].scalar:
            continue
        for leaf in ("position_lower", "position_upper", *_PER_VELOCITY.values()):
            at = tree.q_slices[body] if leaf.startswith("position") else tree.v_slices[body]
            values = np.asarray(getattr(model, leaf))[at]
            expected = {"position_lower": -np.inf, "position_upper": np.inf}.get(leaf, values[0])
            if (values != expected).any():
                only = "no limits" if leaf.startswith("position") else "one value"
                message = f"{leaf} is {values.tolist()}, and a description or URDF has {only} for all its coordinates"
                raise ModelError(f"{kind} joint {name!r}: {message}")
    return outline(model)


def outline(model: Model) -> RobotDescription:
    """As `describe`, but with the values of the first coordinate for joints of several coordinates."""
    tree = model.tree
    placements = np.asarray(model.link_placements, float)
    root = next((i for i, body in enumerate(tree.link_bodies) if body < 0), None)
    names = list(tree.link_names)
    world = names[root] if root is not None else free_name("world", names)
    carrier = {body: names[link] for body, link in enumerate(tree.principal_links)} | {-1: world}
    links = [] if root is not None else [LinkDescription(world)]
    links += [
        LinkDescription(name, inertial, collisions)
        for name, inertial, collisions in zip(names, _inertials(model), _collisions(model), strict=True)
    ]
    numbers = {name: np.asarray(getattr(model, name), float) for name in (*_LEAVES, *_PER_VELOCITY.values())}
    joints: list[tuple[int, JointDescription]] = []
    taken = list(tree.joint_names)
    for link, body in enumerate(tree.link_bodies):
        if link != root and link not in tree.principal_links:
            taken.append(free_name(f"{names[link]}_fixed", taken))
            joint = JointDescription(taken[-1], "fixed", carrier[body], names[link], placements[link])
            joints.append((link, joint))
    for body, link in enumerate(tree.principal_links):
        joints.append((link, _joint(model, numbers, body, carrier[tree.parents[body]], names[link])))
    ordered = tuple(joint for _, joint in sorted(joints, key=lambda item: item[0]))
    return RobotDescription(model.name, tuple(links), ordered, _mobile_base(model))


def _joint(model: Model, numbers: dict[str, np.ndarray], body: int, parent: str, child: str) -> JointDescription:
    tree = model.tree
    mimic = tree.mimics[body]
    source = body if mimic is None else mimic.source
    at_q, at_v = tree.q_slices[source].start, tree.v_slices[source].start
    axis = numbers["joint_axes"][body]
    own = np.asarray(model.geometry, float)[list(tree.axis_pattern[body][3:])]
    rates = {name: float(numbers[leaf][at_v]) for name, leaf in _PER_VELOCITY.items()}
    lower, upper, coupling = -np.inf, np.inf, None
    if tree.joints[body].scalar:
        lower, upper = float(numbers["position_lower"][at_q]), float(numbers["position_upper"][at_q])
    if mimic is not None:
        factor, offset = (float(numbers[leaf][mimic.slot]) for leaf in ("mimic_multipliers", "mimic_offsets"))
        coupling = Mimic(tree.joint_names[source], factor, offset)
        # A follower has the limits of its source; friction and damping are written once, at the source.
        lower, upper = sorted((factor * lower + offset, factor * upper + offset)) if factor else (-np.inf, np.inf)
        rates = {name: abs(factor) * rates[name] if factor else np.inf for name in ("velocity", "acceleration")}
    return JointDescription(
        name=tree.joint_names[body],
        kind=tree.joint_types[body],
        parent=parent,
        child=child,
        origin=numbers["joint_placements"][body],
        axis=axis / np.linalg.norm(axis),  # float32 leaves are of unit length to seven digits only
        lower=lower,
        upper=upper,
        mimic=coupling,
        parameters=dict(zip(tree.joints[body].parameters, own.tolist(), strict=True)),
        **rates,
    )


def _inertials(model: Model) -> list[Inertial | None]:
    """Mass properties of each link about its centre of mass; None for a link without any."""
    rows = np.asarray(model.link_inertias, float)
    bodies = np.asarray(model.inertias, float)
    shares = np.asarray(welded_shares(model), float)
    eps = float(jnp.finfo(model.inertias.dtype).eps)
    inertials: list[Inertial | None] = []
    for row, body, slot in zip(rows, model.tree.link_bodies, model.tree.welded_slots, strict=True):
        # The share of a welded link is stored; that of the body's own is what the welded ones leave of the sum, which
        # for a massless one is rounding.
        rounded = slot < 0 and shares[body].any()
        rounding = 32 * eps * np.abs(row).max()
        noise = 32 * eps * np.abs(bodies[body]).max() if rounded else 0.0
        if np.abs(row).max() <= noise:
            inertials.append(None)
            continue
        mass = float(row[0]) if abs(row[0]) > noise else 0.0
        com = row[1:4] / mass if mass else np.zeros(3)
        xx, xy, yy, xz, yz, zz = row[4:]
        about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        about_com = about_origin - mass * (com @ com * np.eye(3) - np.outer(com, com))
        inertials.append(Inertial(mass, com, _possible(about_com, max(rounding, noise))))
    return inertials


def _possible(inertia: np.ndarray, rounding: float) -> np.ndarray:
    """The nearest inertia that a body can have, if rounding alone made it impossible; else as it is.

    A moment about the centre of mass is a difference of large numbers where the mass is far from the origin, and the
    less that is left, the more of it is rounding: nothing but that of a point mass.
    """
    if not np.isfinite(inertia).all():
        return inertia
    moments, axes = np.linalg.eigh(inertia)
    nearest = np.where((moments < 0.0) & (moments >= -rounding), 0.0, moments)
    if 0.0 < nearest[2] - nearest[0] - nearest[1] <= rounding:
        nearest[2] = nearest[0] + nearest[1]
    if (nearest == moments).all():
        return inertia
    inertia = (axes * nearest) @ axes.T
    return 0.5 * (inertia + inertia.T)


def _collisions(model: Model) -> list[tuple[CollisionDescription, ...]]:
    tree = model.tree
    found: list[list[CollisionDescription]] = [[] for _ in tree.link_names]
    for link, shape, coltype, colaffinity in zip(
        tree.shape_links, single_shapes(model), tree.shape_coltypes, tree.shape_colaffinities, strict=True
    ):
        geometry, origin = shape.described()
        found[link].append(CollisionDescription(geometry, origin, "", coltype, colaffinity))
    return [tuple(shapes) for shapes in found]


def _mobile_base(model: Model) -> MobileBaseDescription | None:
    mobile = model.tree.mobile_base
    if mobile is None:
        return None
    return MobileBaseDescription(mobile.kind, np.array(mobile.origin).reshape(4, 4), mobile.joints, mobile.params)
