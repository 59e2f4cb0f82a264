"""Other lengths and directions for the same topology, and robots of one topology in a batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_finite
from .._errors import ArgumentError, DtypeError, ModelError
from .leaves import make_axis_pattern, make_pattern, twelve
from .model import Model, check_model
from .tree import KinematicTree


def with_geometry(
    model: Model,
    *,
    joint_placements: Float[Array, "nb 4 4"] | None = None,
    joint_axes: Float[Array, "nb 3"] | None = None,
    link_placements: Float[Array, "nl 4 4"] | None = None,
) -> Model:
    """The same robot with other lengths and directions.

    There is no recompilation if the new values are 0, 1 and -1 in the same places. If an entry becomes one of these, or
    no longer is one (if only by rounding), functions recompile for the new sparsity pattern; with `unstructured` the
    pattern is the same for all values. Traced values have no known zeros: the result then takes all entries as inputs,
    like that of `unstructured`.

    Args:
        model: The robot.
        joint_placements: New T_parent_joint at zero position.
        joint_axes: New unit axes in the joint frames.
        link_placements: New T_body_link; that of a link whose frame is its body's must stay the identity.

    Raises:
        ArgumentError: A placement is not a rotation and translation, that of a body's own link is not the identity, or
            an axis is not of unit length.
        ShapeError: An argument has another shape.

    Example:
        >>> arm = robots.two_link_arm()
        >>> placements = arm.joint_placements.at[1, 0, 3].set(0.6)  # the second joint further out
        >>> round(float(link_pose(with_geometry(arm, joint_placements=placements), jnp.zeros(2), "tool")[0, 3]), 6)
        1.0
    """
    model = check_model(model)
    tree, dtype = model.tree, model.geometry.dtype
    new = {
        name: getattr(model, name) if x is None else check_array(x, name, getattr(model, name).shape).astype(dtype)
        for name, x in (
            ("joint_placements", joint_placements),
            ("joint_axes", joint_axes),
            ("link_placements", link_placements),
        )
    }
    if any(isinstance(x, Tracer) for x in new.values()):
        return _dense(model, new["joint_placements"], new["joint_axes"], new["link_placements"])
    arrays = {name: np.asarray(x) for name, x in new.items()}
    for link in tree.principal_links:
        if not np.array_equal(arrays["link_placements"][link], np.eye(4)):
            raise ArgumentError(
                f"link {tree.link_names[link]!r}: its frame is its body's, so its placement is the identity"
            )
    rounding = 1e3 * float(jnp.finfo(dtype).eps)
    skew = max(rounding, 1e-6)  # what `build_model` takes, an edit takes
    _refuse_wrong_poses(arrays["joint_placements"], "joint", tree.joint_names, skew)
    _refuse_wrong_poses(arrays["link_placements"], "link", tree.link_names, skew)
    unit = np.abs(np.linalg.norm(arrays["joint_axes"], axis=1) - 1.0) <= max(rounding, 1e-9)  # False for NaN
    if not unit.all():
        raise ArgumentError(f"joint {tree.joint_names[int(np.argmin(unit))]!r}: its axis is not of unit length")
    given = iter(np.asarray(model.joint_parameters).tolist())
    own = [[next(given) for _ in joint.parameters] for joint in tree.joints]
    values: list[float] = []
    changed = dataclasses.replace(
        tree,
        placement_pattern=make_pattern(twelve(arrays["joint_placements"]), values),
        axis_pattern=make_axis_pattern(arrays["joint_axes"], own, values),
        link_pattern=make_pattern(twelve(arrays["link_placements"]), values),
    )
    return _replaced(model, changed, jnp.asarray(values, dtype))


def _refuse_wrong_poses(T: np.ndarray, kind: str, names: tuple[str, ...], tolerance: float) -> None:
    R = T[:, :3, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0)
        problems = {
            "has entries that are not finite": ~np.isfinite(T).all(axis=(1, 2)),
            "does not end in the row 0 0 0 1": (T[:, 3] != [0.0, 0.0, 0.0, 1.0]).any(axis=1),
            "has no rotation matrix": ~((error <= tolerance) & (np.linalg.det(R) > 0.0)),
        }
    for problem, bad in problems.items():
        if bad.any():
            raise ArgumentError(f"{kind} {names[int(np.argmax(bad))]!r}: its placement {problem}")


def with_joint_parameters(model: Model, values: Mapping[str | int, Mapping[str, Float[Array, ""] | float]]) -> Model:
    """The same robot with other parameters of some joints; compiles nothing anew, and may be traced or vmapped.

    Args:
        model: The robot.
        values: For each joint, by name or index, the parameters to change by name, such as `pitch` of a screw [m/rad].

    Raises:
        ArgumentError: A joint's type has no such parameter, or a value is not finite.
        DtypeError: `values` or one of its values is not a mapping.
        NameNotFoundError: There is no such joint.
        ShapeError: A value is not a scalar.

    Example:
        >>> press = RobotBuilder("press").link("frame").link("ram", 2.0, inertia=0.1)
        >>> press = build_model(press.screw("spindle", "frame", "ram", pitch=0.01, axis=(0, 0, 1)))
        >>> press = with_joint_parameters(press, {"spindle": {"pitch": 0.02}})
        >>> round(float(gravity_forces(press, jnp.array([0.3]))[0]), 4)
        0.3924
    """
    model = check_model(model)
    tree, geometry = model.tree, jnp.asarray(model.geometry)
    for what, x in {"values": values, **(values if isinstance(values, Mapping) else {})}.items():
        if not isinstance(x, Mapping):
            raise DtypeError(f"{what} must be a mapping, got {type(x).__name__}: {{joint: {{parameter: value}}}}")
    for joint, changes in values.items():
        index = tree.joint_index(joint)
        names = tree.joints[index].parameters
        for name, value in changes.items():
            element = f"values[{joint!r}][{name!r}]"
            if name not in names:
                kind = tree.joint_types[index]
                raise ArgumentError(f"{element}: a {kind} joint has the parameters: {', '.join(names) or 'none'}")
            new = check_array(value, element, ()).astype(geometry.dtype)
            check_finite(new, element)
            geometry = geometry.at[tree.axis_pattern[index][3 + names.index(name)]].set(new)
    return dataclasses.replace(model, geometry=geometry)


def unstructured(model: Model) -> Model:
    """The same robot with *every* entry of its geometry as an input, zeros and ones included.

    For calibration, where zeros are estimated too, and for robots of one topology with different sparsity patterns,
    which then share one compilation. It runs slower, since no operation is pruned.

    Example:
        Two pendulums of other lengths share one compilation:

        >>> short, long = (unstructured(robots.pendulum(length=x)) for x in (0.5, 1.0))
        >>> short.tree == long.tree
        True
    """
    model = check_model(model)
    return _dense(model, model.joint_placements, model.joint_axes, model.link_placements)


def _dense(model: Model, joint_placements: Array, joint_axes: Array, link_placements: Array) -> Model:
    tree, nb, nl = model.tree, model.nb, len(model.link_names)
    own = set(tree.principal_links)
    others = [k for k in range(nl) if k not in own]
    own_parameters, at = model.joint_parameters, nb * 15
    index = np.arange(at + len(own_parameters) + len(others) * 12)
    slots, rows = iter(index[at:].tolist()), index[at + len(own_parameters) :].reshape(-1, 12)
    changed = dataclasses.replace(
        tree,
        placement_pattern=tuple(map(tuple, index[: nb * 12].reshape(-1, 12).tolist())),
        axis_pattern=tuple(
            (*axis, *(next(slots) for _ in joint.parameters))
            for axis, joint in zip(index[nb * 12 : at].reshape(-1, 3).tolist(), tree.joints, strict=True)
        ),
        link_pattern=tuple(
            tree.link_pattern[k] if k in own else tuple(rows[others.index(k)].tolist()) for k in range(nl)
        ),
    )

    def numbers(T: Array) -> Array:
        return jnp.concatenate([T[:, :3, :3].reshape(-1, 9), T[:, :3, 3]], axis=1).reshape(-1)

    geometry = jnp.concatenate(
        [
            numbers(joint_placements),
            joint_axes.reshape(-1),
            own_parameters,
            numbers(link_placements[np.array(others, int)]),
        ]
    )
    return _replaced(model, changed, geometry)


def _replaced(model: Model, tree: KinematicTree, geometry: Array) -> Model:
    return dataclasses.replace(model, tree=tree, geometry=geometry)


def stack_models(models: Iterable[Model]) -> Model:
    """One model with a leading batch axis on every leaf, for `jax.vmap` over robots.

    Robots of one topology whose sparsity patterns differ are made `unstructured` first.

    Args:
        models: Robots of one topology.

    Raises:
        ArgumentError: There is none.
        DtypeError: `models` is not a sequence of models.
        ModelError: They differ in topology, names or joint types.

    Example:
        >>> both = stack_models([robots.pendulum(mass=1.0), robots.pendulum(mass=2.0)])
        >>> jax.vmap(total_mass)(both).tolist()
        [1.0, 2.0]
    """
    if isinstance(models, Model) or not isinstance(models, Iterable):
        raise DtypeError(f"stack_models takes a sequence of models, got one {type(models).__name__}")
    models = [check_model(m, f"models[{k}]") for k, m in enumerate(models)]
    if not models:
        raise ArgumentError("stack_models needs at least one model")
    first = models[0]
    if any(m.tree != first.tree for m in models):
        models = [unstructured(m) for m in models]
        for k, m in enumerate(models):
            if m.tree == models[0].tree:
                continue
            if dataclasses.replace(m.tree, name=first.name) == models[0].tree:
                raise ModelError(f"models[{k}] and models[0] differ in name only: {m.name!r} and {first.name!r}")
            raise ModelError(f"models[{k}] ({m.name!r}) has another topology than models[0] ({first.name!r})")
    return jax.tree.map(lambda *x: jnp.stack(x), *[dataclasses.replace(m, tree=models[0].tree) for m in models])
