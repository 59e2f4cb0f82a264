"""Other parameters for the same topology, Model -> Model. Structural changes are in `io.restructure`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_choice, check_each, check_finite, check_mapping, check_not_negative
from .._errors import ArgumentError, DtypeError, ModelError
from ..spatial import inertia as inertias
from .leaves import make_axis_pattern, make_pattern, twelve
from .model import Model, check_model
from .specialized import SpecializedModel
from .tree import KinematicTree, Traversal

_LIMITS = ("position_lower", "position_upper", "velocity_limit", "acceleration_limit", "effort_limit")


def with_gravity(model: Model, gravity: Float[Array, "3"]) -> Model:
    """The same robot with another gravity.

    Args:
        model: The robot.
        gravity: Acceleration of free fall in world axes [m/s^2].

    Raises:
        ArgumentError: `gravity` is not finite.
        ShapeError: It is not of shape (3,).

    Example:
        >>> moon = with_gravity(robots.pendulum(), jnp.array([0.0, 0.0, -1.62]))
        >>> round(float(gravity_forces(moon, jnp.array([jnp.pi / 2]))[0]), 4)
        1.62
    """
    model = check_model(model)
    gravity = check_array(gravity, "gravity", (3,)).astype(model.gravity.dtype)
    check_finite(gravity, "gravity")
    return eqx.tree_at(lambda m: m.gravity, model, gravity)


def with_traversal(model: Model, traversal: Traversal) -> Model:
    """The same robot with another form of the sweeps over its tree; `execution_plan` tells which one runs, and why.

    Args:
        model: The robot.
        traversal: ``"unrolled"``: body by body, fastest to run on a CPU; its programs grow with the number of bodies.
            On a CUDA GPU: the whole algorithm as one kernel, with a configuration in each thread (a form that was
            checked by the assembler of CUDA and an interpreter, and has not run on a GPU yet).
            ``"scanned"``: loops along runs of joints, fastest to compile for long chains; on a CPU 2 to 3 times
            slower, up to 15 times where the path to one link is enough. ``"auto"``: unrolled on a CPU for up to 64
            bodies, scanned everywhere else.

    Raises:
        ArgumentError: `traversal` is none of these.

    Example:
        >>> execution_plan(with_traversal(robots.pendulum(), "scanned")).sweep
        'scanned'
    """
    model = check_model(model)
    check_choice(traversal, "traversal", get_args(Traversal))
    return dataclasses.replace(model, tree=dataclasses.replace(model.tree, traversal=traversal))


def with_limits(model: Model, **limits: Float[Array, "n"]) -> Model:
    """The same robot with other joint limits.

    Args:
        model: The robot.
        **limits: New values of `position_lower`, `position_upper` (nq,), `velocity_limit`, `acceleration_limit` or
            `effort_limit` (nv,) [rad, m, s, N m, N]. Infinity is no limit.

    Raises:
        ArgumentError: A name is unknown, a limit is NaN or negative, or the limits leave no position.
        ShapeError: A value has another shape.
    """
    model = check_model(model)
    for name, value in limits.items():
        if name not in _LIMITS:
            raise ArgumentError(f"no limit is named {name!r}; the limits are {', '.join(_LIMITS)}")
        old = getattr(model, name)
        new = check_array(value, name, old.shape).astype(old.dtype)
        if not isinstance(new, Tracer):
            _refuse(np.isnan(new), name, "is NaN", model)
            if name.endswith("_limit"):
                _refuse(np.asarray(new) < 0, name, "is negative", model)
            else:
                nowhere = np.inf if name == "position_lower" else -np.inf
                _refuse(np.asarray(new) == nowhere, name, "leaves no position", model)
        model = eqx.tree_at(lambda m, name=name: getattr(m, name), model, new)
    low, high = model.position_lower, model.position_upper
    if not isinstance(low, Tracer) and not isinstance(high, Tracer):
        _refuse(np.asarray(low) > np.asarray(high), "position_lower", "is above position_upper", model)
    return model


def with_armature(model: Model, armature: Float[Array, "nv"] | float) -> Model:
    """The same robot with other rotor inertias.

    Args:
        model: The robot.
        armature: Inertia of each joint's rotor and gear, reflected to the joint: I n^2 for a gear ratio n
            [kg m^2, kg]; one number is that of each joint.

    Raises:
        ArgumentError: A number is negative or not finite.
        DtypeError: `armature` is not numeric.
        ShapeError: It is neither a number nor of shape `(model.nv,)`.

    Example:
        >>> float(crba(with_armature(robots.pendulum(mass=2.0, length=0.5), 0.25), jnp.zeros(1))[0, 0])
        0.75
    """
    return _with_each(model, "armature", armature)


def with_damping(model: Model, damping: Float[Array, "nv"] | float) -> Model:
    """The same robot with other viscous friction in its joints.

    Args:
        model: The robot.
        damping: Coefficient of each joint [N m s/rad, N s/m]; one number is that of each joint.

    Raises:
        ArgumentError: A number is negative or not finite.
        DtypeError: `damping` is not numeric.
        ShapeError: It is neither a number nor of shape `(model.nv,)`.

    Example:
        >>> damping_forces(with_damping(robots.pendulum(), 3.0), jnp.array([2.0])).tolist()
        [-6.0]
    """
    return _with_each(model, "damping", damping)


def with_friction(model: Model, friction: Float[Array, "nv"] | float) -> Model:
    """The same robot with other Coulomb friction in its joints.

    Args:
        model: The robot.
        friction: Largest force of dry friction in each joint [N m, N]; one number is that of each joint.

    Raises:
        ArgumentError: A number is negative or not finite.
        DtypeError: `friction` is not numeric.
        ShapeError: It is neither a number nor of shape `(model.nv,)`.

    Example:
        >>> friction_forces(with_friction(robots.pendulum(), 0.5), jnp.array([2.0])).tolist()
        [-0.5]
    """
    return _with_each(model, "friction", friction)


def _with_each(model: Model, name: str, value: Any) -> Model:
    model = check_model(model)
    new = check_each(value, name, model.nv, "model.nv")
    check_not_negative(new, name)
    return dataclasses.replace(model, **{name: new.astype(model.inertias.dtype)})


def _refuse(bad: np.ndarray, name: str, what: str, model: Model) -> None:
    if np.any(bad):
        k = int(np.flatnonzero(bad)[0])
        slices = model.tree.q_slices if name.startswith("position") else model.tree.v_slices
        joint = next(j for j, s in zip(model.joint_names, slices, strict=True) if s.start <= k < s.stop)
        raise ArgumentError(f"joint {joint!r}: {name}[{k}] {what}")


def _no_negative_mass(mass: Any, name: str) -> None:
    if not isinstance(mass, Tracer) and mass < 0:
        raise ArgumentError(f"{name} must not be negative, got {float(mass):g}")


def with_inertias(model: Model, values: Mapping[str | int, Float[Array, "10"]]) -> Model:
    """The same robot with other inertial parameters of some links.

    Args:
        model: The robot.
        values: For each link, by name or index, its own 10 parameters about its origin in its axes: m, m c (3), Ixx,
            Ixy, Iyy, Ixz, Iyz, Izz [kg, kg m, kg m^2]. They may be traced.

    Raises:
        ArgumentError: A value is not finite, or a mass is negative.
        DtypeError: `values` is not a mapping.
        NameNotFoundError: There is no such link.
        ShapeError: A value is not of shape (10,).
    """
    model = check_model(model)
    check_mapping(values, "values", "links to parameters (10,)")
    for link, value in values.items():
        index = model.link_index(link)
        new = check_array(value, f"values[{link!r}]", (10,)).astype(model.inertias.dtype)
        check_finite(new, f"values[{link!r}]")
        _no_negative_mass(new[0], f"values[{link!r}][0], the mass,")
        model = add_inertia(model, index, new - model.link_inertias[index])
    return model


def add_inertia(model: Model, link: int, change: Array) -> Model:
    """Adds inertial parameters, given in the link's axes, to a link and to its body."""
    body, slot = model.tree.link_bodies[link], model.tree.welded_slots[link]
    if slot >= 0:
        model = eqx.tree_at(lambda m: m.welded_inertias, model, jnp.asarray(model.welded_inertias).at[slot].add(change))
    if body >= 0:
        moved = inertias.transform(model.link_placements[link], change)
        model = eqx.tree_at(lambda m: m.inertias, model, jnp.asarray(model.inertias).at[body].add(moved))
    return model


def attach_payload(
    model: Model,
    link: str | int,
    mass: Float[Array, ""] | float,
    com: Float[Array, "3"] | None = None,
    inertia: Float[Array, "3 3"] | None = None,
) -> Model:
    """The same robot with a rigid payload on a link, without recompilation; may be traced or vmapped.

    Args:
        model: The robot.
        link: The link, by name or index.
        mass: Mass of the payload [kg].
        com: Its centre of mass in link axes [m]; default is the link's origin.
        inertia: Its moment of inertia about its centre of mass in link axes [kg m^2]; default is a point mass.

    Raises:
        ArgumentError: A number is not finite, or the mass is negative.
        NameNotFoundError: There is no such link.
        ShapeError: An argument has another shape.

    Example:
        >>> float(total_mass(attach_payload(robots.pendulum(mass=2.0), "bob", 0.5)))
        2.5
    """
    model = check_model(model)
    dtype = model.inertias.dtype
    m = check_array(mass, "mass", ()).astype(dtype)
    c = jnp.zeros(3, dtype) if com is None else check_array(com, "com", (3,)).astype(dtype)
    about_com = jnp.zeros((3, 3), dtype) if inertia is None else check_array(inertia, "inertia", (3, 3)).astype(dtype)
    for name, x in (("mass", m), ("com", c), ("inertia", about_com)):
        check_finite(x, name)
    _no_negative_mass(m, "mass")
    return add_inertia(model, model.link_index(link), inertias.from_mass_com(m, c, about_com))


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
        DtypeError: `values` or one of its values is no mapping.
        ModelError: A joint's type has no such parameter, or a value is not finite.
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
                raise ModelError(f"{element}: a {kind} joint has the parameters: {', '.join(names) or 'none'}")
            new = check_array(value, element, ()).astype(geometry.dtype)
            check_finite(new, element)
            geometry = geometry.at[tree.axis_pattern[index][3 + names.index(name)]].set(new)
    return dataclasses.replace(model, geometry=geometry)


def unstructured(model: Model) -> Model:
    """The same robot with *every* entry of its geometry as an input, zeros and ones included.

    For calibration, where zeros are estimated too, and for robots of one topology with different sparsity patterns,
    which then share one compilation. It runs slower, since no operation is pruned.
    """
    model = check_model(model)
    return _dense(model, model.joint_placements, model.joint_axes, model.link_placements)


def specialize(model: Model) -> Model:
    """The same robot with its parameters baked into the compiled program, for fast single calls.

    It has no array leaves, so that no arrays are passed in a call, which for one configuration of RB-Y1 saves 6 to 14
    us, a fifth to a quarter of the time. Large batches gain next to nothing: zeros and ones of the geometry are pruned
    anyway, and constants are multiplied no faster than inputs. Each specialised model is compiled separately, unless
    another one has equal parameters, and cannot be differentiated with respect to its parameters. Edits return an
    ordinary model.

    Args:
        model: The robot.

    Returns:
        An object with the attributes of the model, which every function accepts in its place.

    Raises:
        DtypeError: The model is traced by jit, vmap or grad, or is not a model.

    Example:
        >>> arm = specialize(robots.pendulum(mass=2.0))
        >>> round(float(gravity_forces(arm, jnp.array([jnp.pi / 2]))[0]), 4)
        19.62
    """
    model = check_model(model)
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(model)):
        raise DtypeError("specialize needs concrete parameters: call it outside of jit, vmap and grad")
    return cast(Model, SpecializedModel(model))


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
