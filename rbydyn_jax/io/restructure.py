"""Structural changes of a robot, Model -> Model. The robot is described, changed and rebuilt."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_flag, check_integer, check_mapping
from .._errors import ArgumentError, DtypeError, Finding, ModelError, ShapeError
from ..joints import JOINT_TYPES
from ..model.model import Model, check_model
from ..model.tree import EVERY_GROUP, KinematicTree
from ..shapes.box import Box
from ..shapes.capsule import Capsule
from ..shapes.convex_hull import ConvexHull
from ..shapes.cylinder import Cylinder
from .build import build_model
from .description import CollisionDescription, JointDescription, LinkDescription, RobotDescription, free_name
from .save import outline

_PER_COORDINATE = (
    "position_lower",
    "position_upper",
    "velocity_limit",
    "acceleration_limit",
    "effort_limit",
    "armature",
    "damping",
    "friction",
)


def lock_joints(model: Model, positions: Mapping[str | int, Float[Array, "n"] | float]) -> Model:
    """The robot with some joints fixed: they lose their coordinates, and their bodies are welded.

    Joints that mimic a locked joint are locked with it. If the base link was moved by a joint, the robot has one link
    more than before: the root ``world``.

    Args:
        model: The robot.
        positions: For each joint to lock, by name or index, its position [rad, m]; a sequence for joints of several
            coordinates.

    Raises:
        ArgumentError: A position is not finite, or its quaternion is zero, or a joint is named twice.
        DtypeError: `positions` is not a mapping, or a position is traced or not numbers.
        ModelError: A joint mimics another one, which is to be locked in its place.
        NameNotFoundError: There is no such joint.
        ShapeError: A position has another number of coordinates than the joint.

    Example:
        >>> arm = lock_joints(robots.two_link_arm(), {"elbow": 0.5})
        >>> arm.joint_names
        ('shoulder',)
    """
    _concrete(model)
    if not isinstance(positions, Mapping):
        raise DtypeError(f"positions must be a mapping from joints to positions, got {type(positions).__name__}")
    tree = model.tree
    locked: dict[int, np.ndarray] = {}
    for joint, position in positions.items():
        index = tree.joint_index(joint)
        if tree.mimics[index] is not None:
            source = tree.joint_names[tree.mimics[index].source]  # type: ignore[union-attr]
            raise ModelError(f"joint {tree.joint_names[index]!r} mimics {source!r}: lock that joint instead")
        if index in locked:
            raise ArgumentError(f"positions names the joint {tree.joint_names[index]!r} twice, by name and by index")
        locked[index] = _position(position, f"positions[{joint!r}]", tree.joint_types[index])
    for index, mimic in enumerate(tree.mimics):
        if mimic is not None and mimic.source in locked:
            multiplier = float(model.mimic_multipliers[mimic.slot])
            locked[index] = multiplier * locked[mimic.source] + float(model.mimic_offsets[mimic.slot])
    by_name = {tree.joint_names[i]: x for i, x in locked.items()}

    def fixed(joint: JointDescription) -> JointDescription:
        if joint.name not in by_name:
            return joint
        kind = JOINT_TYPES[joint.kind]
        own = [joint.parameters[name] for name in kind.parameters]
        moved = kind.matrix(joint.axis, own, by_name[joint.name])
        return dataclasses.replace(joint, kind="fixed", origin=joint.origin @ moved, mimic=None, parameters={})

    description = outline(model)
    changed = dataclasses.replace(description, joints=tuple(fixed(j) for j in description.joints))
    return _rebuilt([(model, "")], changed, [name for name in model.joint_names if name not in by_name])


def submodel(model: Model, base_link: str | int) -> Model:
    """The subtree of a link, which becomes the root and is fixed to the world.

    Of a link that is welded to another one a model knows its body, and not what hangs on the link itself: only one with
    nothing below it, such as a tool frame, can become the root; take the link that moves with its body instead, or cut
    with `base_link` where the robot is loaded.

    Args:
        model: The robot.
        base_link: The link that becomes the root, by name or index.

    Raises:
        ModelError: A joint of that part mimics one outside it, or the link is welded and others may hang on it.
        NameNotFoundError: There is no such link.

    Example:
        >>> submodel(robots.double_pendulum(), "upper").joint_names
        ('elbow',)
    """
    _concrete(model)
    link = model.link_index(base_link)
    name = model.link_names[link]
    if (carrier := _unknown_below(model.tree, link)) is not None:
        instead = model.link_names[carrier]
        raise ModelError(
            f"base_link {name!r} is welded to {instead!r}, and a model does not keep which links hang on which of "
            f"them; take {instead!r}, or cut with base_link= where the robot is loaded"
        )
    built = build_model(outline(model), base_link=name, dtype=model.inertias.dtype)
    kept = set(built.joint_names)
    order = [j for j in model.joint_names if j in kept]
    return _rebuilt([(model, "")], outline(built), order, built.report)


def _unknown_below(tree: KinematicTree, link: int) -> int | None:
    """The link that a welded one is welded to, if there may be something below it; None if what is below is known."""
    body = tree.link_bodies[link]
    carrier = tree.link_bodies.index(body) if body < 0 else tree.principal_links[body]
    after = link + 1  # the first one below, if there is any, as links are depth-first
    if link == carrier or after == len(tree.link_names):
        return None
    on = tree.link_bodies[after]
    hangs_on = tree.parents[on] if after in tree.principal_links else on
    return carrier if hangs_on == body else None


def attach(
    model: Model, link: str | int, other: Model, pose: Float[Array, "4 4"] | None = None, *, prefix: str = ""
) -> Model:
    """The robot with another one fixed to a link: a tool, a gripper, a second arm.

    The bit masks of the collision shapes (coltype, colaffinity) are merged as they are: give both robots masks that
    mean the same. If only one of them has masks, all shapes of the other are tested against all but their neighbours.
    Of wheels (`mobile_base`), those of `model` are kept and those of `other` are left out.

    Args:
        model: The robot; its gravity is kept.
        link: The link that carries the other robot, by name or index.
        other: The robot that is attached by its root link.
        pose: T_link_root, the pose of its root; default is the identity.
        prefix: Put before all names of `other`.

    Raises:
        ModelError: A name occurs in both.
        NameNotFoundError: There is no such link.
        ShapeError: `pose` is not of shape (4, 4).

    Example:
        >>> attach(robots.two_link_arm(), "tool", robots.pendulum(), prefix="p_").joint_names[-1]
        'p_hinge'
    """
    _concrete(model)
    _concrete(other, "other")
    if isinstance(pose, Tracer):
        raise DtypeError("pose is traced; a robot is restructured outside of jit, vmap and grad")
    if not isinstance(prefix, str):
        raise DtypeError(f"prefix must be a str, got {type(prefix).__name__}")
    carrier = model.link_names[model.link_index(link)]
    T = np.eye(4) if pose is None else np.asarray(check_array(pose, "pose", (4, 4)), float)
    own, added = outline(model), _renamed(outline(other), prefix)
    if _has_masks(own) != _has_masks(added):
        own, added = (x if _has_masks(x) else _in_every_group(x) for x in (own, added))
    for kind, names in (("link", [k.name for k in own.links]), ("joint", [j.name for j in own.joints])):
        taken = set(names) & {x.name for x in (added.links if kind == "link" else added.joints)}
        if taken:
            raise ModelError(f"both robots have a {kind} named {sorted(taken)[0]!r}; give a prefix=")
    root = added.links[0].name
    taken = [joint.name for joint in (*own.joints, *added.joints)]
    mount = JointDescription(name=free_name(f"{root}_mount", taken), kind="fixed", parent=carrier, child=root, origin=T)
    merged = dataclasses.replace(own, links=own.links + added.links, joints=(*own.joints, mount, *added.joints))
    return _rebuilt(
        [(model, ""), (other, prefix)], merged, [*model.joint_names, *(prefix + name for name in other.joint_names)]
    )


def with_shapes(
    model: Model,
    shapes: Mapping[Any, Sequence[Any]],
    *,
    keep: bool = True,
    coltype: int | None = None,
    colaffinity: int | None = None,
) -> Model:
    """The robot with collision shapes on its links, such as those of `collision.mesh_shapes`.

    Args:
        model: The robot.
        shapes: For each link, by name or index, shapes in its axes [m], as `collision.sphere`, `collision.capsule`,
            `collision.box`, `collision.cylinder` and `collision.convex_hull` make them.
        keep: Whether these links keep the shapes that they have.
        coltype: Bit mask of the new shapes. With neither mask they are tested against all but their neighbours, also
            where the other shapes of the robot have masks.
        colaffinity: Bit mask of what they are tested against.

    Raises:
        ArgumentError: A shape has no finite extent on a link (a half-space), or a number is negative or not finite.
        DtypeError: `shapes` is no mapping from links to sequences of shapes, or something is traced.
        NameNotFoundError: There is no such link.
        ShapeError: What is said to be a shape is a batch of them.

    Example:
        >>> from rbydyn_jax import collision
        >>> ball = collision.sphere(jnp.array([0.0, 0.0, 0.1]), 0.05)
        >>> arm = collision.with_shapes(robots.two_link_arm(), {"tool": [ball]})
        >>> len(arm.tree.shape_kinds) - len(robots.two_link_arm().tree.shape_kinds)
        1
    """
    _concrete(model)
    check_mapping(shapes, "shapes", "links to sequences of shapes")
    given = (("coltype", coltype), ("colaffinity", colaffinity))
    masks = [0 if mask is None else check_integer(mask, name, 0) for name, mask in given]
    check_flag(keep, "keep")
    description = outline(model)
    if coltype is None and colaffinity is None and _has_masks(description):
        masks = [EVERY_GROUP, EVERY_GROUP]
    added: dict[str, list[CollisionDescription]] = {}
    for link, of_link in shapes.items():
        name = model.link_names[model.link_index(link)]
        if (isinstance(of_link, tuple) and hasattr(of_link, "_fields")) or not isinstance(of_link, Sequence):
            raise DtypeError(f"shapes[{link!r}] must be a sequence of shapes, got {type(of_link).__name__}")
        own = added.setdefault(name, [])
        own += [_described(shape, f"shapes[{link!r}][{k}]", masks) for k, shape in enumerate(of_link)]

    def extended(link: LinkDescription) -> LinkDescription:
        if link.name not in added:
            return link
        return dataclasses.replace(link, collisions=(*(link.collisions if keep else ()), *added[link.name]))

    changed = dataclasses.replace(description, links=tuple(map(extended, description.links)))
    return _rebuilt([(model, "")], changed, model.joint_names)


def _has_masks(robot: RobotDescription) -> bool:
    """Whether the collision shapes of a robot are in groups."""
    return any(shape.coltype or shape.colaffinity for link in robot.links for shape in link.collisions)


def _in_every_group(robot: RobotDescription) -> RobotDescription:
    masks = {"coltype": EVERY_GROUP, "colaffinity": EVERY_GROUP}

    def changed(link: LinkDescription) -> LinkDescription:
        return dataclasses.replace(link, collisions=tuple(dataclasses.replace(c, **masks) for c in link.collisions))

    return dataclasses.replace(robot, links=tuple(map(changed, robot.links)))


def _described(shape: Any, name: str, masks: Sequence[int]) -> CollisionDescription:
    if not isinstance(shape, Capsule | Box | Cylinder | ConvexHull):
        known = "a sphere, a capsule, a box, a cylinder or a convex hull"
        raise DtypeError(f"{name} must be {known}, got {type(shape).__name__}")
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(shape)):
        raise DtypeError(f"{name} is traced; a robot is restructured outside of jit, vmap and grad")
    for field, own in zip(shape._fields, shape, strict=True):
        check_finite(own, f"{name}.{field}")
    try:
        geometry, origin = jax.tree.map(lambda x: np.asarray(x, float), shape).described()
    except (TypeError, ValueError):
        arrays = ", ".join(f"{field} {np.shape(own)}" for field, own in zip(shape._fields, shape, strict=True))
        raise ShapeError(f"{name} must be one shape, got arrays of the shapes {arrays}") from None
    return CollisionDescription(geometry, origin, "", *masks)


def _position(value: Any, name: str, kind: str) -> np.ndarray:
    if isinstance(value, Tracer):
        raise DtypeError(f"{name} is traced; a robot is restructured outside of jit, vmap and grad")
    try:
        x = np.atleast_1d(np.asarray(value, float))
    except (TypeError, ValueError):
        raise DtypeError(f"{name} must be a number or a sequence of numbers, got {value!r}") from None
    check_array(x, name, (JOINT_TYPES[kind].nq,))
    check_finite(x, name)
    if problem := JOINT_TYPES[kind].problem(x):
        raise ArgumentError(f"{name} {problem}")
    return x


def _concrete(model: Model, name: str = "model") -> None:
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(check_model(model, name))):
        raise DtypeError(f"{name} is traced; a robot is restructured outside of jit, vmap and grad")


def _rebuilt(
    parts: Sequence[tuple[Model, str]],
    description: RobotDescription,
    order: Sequence[str],
    report: Sequence[Finding] = (),
) -> Model:
    """Builds a robot of parts, each with the prefix of its names.

    A description has one value for all coordinates of a joint, so the leaves of the joints are taken from the parts,
    and so are the findings of their reports.
    """
    dtype = parts[0][0].inertias.dtype
    built = build_model(description, joint_order=order, dtype=dtype)
    sources = {prefix + name: (part, i) for part, prefix in parts for i, name in enumerate(part.joint_names)}
    leaves = {leaf: np.array(getattr(built, leaf)) for leaf in _PER_COORDINATE}
    for index, name in enumerate(built.joint_names):
        part, i = sources[name]
        if built.tree.mimics[index] is not None:
            continue
        for leaf, values in leaves.items():
            slices = "q_slices" if leaf.startswith("position") else "v_slices"
            old = np.asarray(getattr(part, leaf))[getattr(part.tree, slices)[i]]
            values[getattr(built.tree, slices)[index]] = old
    found: dict[tuple[str, str], Finding] = {}
    for finding in (*(f for part, _ in parts for f in part.report), *report, *built.report):
        found.setdefault((finding.element, finding.message), finding)  # the first one has file and line
    return dataclasses.replace(
        built,
        tree=dataclasses.replace(built.tree, report=tuple(found.values())),
        gravity=jnp.asarray(parts[0][0].gravity),
        **{leaf: jnp.asarray(values, dtype) for leaf, values in leaves.items()},
    )


def _renamed(description: RobotDescription, prefix: str) -> RobotDescription:
    def link(x: LinkDescription) -> LinkDescription:
        return dataclasses.replace(x, name=prefix + x.name)

    def joint(x: JointDescription) -> JointDescription:
        mimic = x.mimic and dataclasses.replace(x.mimic, joint=prefix + x.mimic.joint)
        return dataclasses.replace(
            x, name=prefix + x.name, parent=prefix + x.parent, child=prefix + x.child, mimic=mimic
        )

    return dataclasses.replace(
        description, links=tuple(map(link, description.links)), joints=tuple(map(joint, description.joints))
    )
