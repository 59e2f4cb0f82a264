"""Other parameters for the same topology, Model -> Model. Structural changes are in `io.restructure`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_choice, check_each, check_finite, check_mapping, check_not_negative, known
from .._errors import ArgumentError, DtypeError
from ..spatial import inertia as inertias
from .model import Model, check_model
from .specialized import SpecializedModel
from .tree import Traversal

_LIMITS = ("position_lower", "position_upper", "velocity_limit", "acceleration_limit", "effort_limit")
_ROUNDED = 1e-6  # of the largest entry of an inertia: rounding, in float32 too


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
            On a CUDA GPU: the whole algorithm as one kernel or a few, with a configuration in each thread.
            ``"scanned"``: loops along runs of joints, fastest to compile for long chains; on a CPU 2 to 3 times
            slower, up to 15 times where the path to one link is enough; on a GPU several times slower. ``"auto"``:
            unrolled on a CPU and on a CUDA GPU for up to 64 bodies, scanned everywhere else.

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
        **limits: New values of `position_lower` or `position_upper` (nq,) [rad, m]; `velocity_limit` [rad/s, m/s],
            `acceleration_limit` [rad/s^2, m/s^2] or `effort_limit` [N m, N] (nv,). Infinity is no limit.

    Raises:
        ArgumentError: A name is unknown, a limit is NaN or negative, or the limits leave no position.
        ShapeError: A value has another shape.

    Example:
        >>> with_limits(robots.pendulum(), velocity_limit=jnp.array([2.0])).velocity_limit.tolist()
        [2.0]
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
            [kg m^2, kg]; one number is that of each joint. It is a part of the mass matrix alone: for a floating or
            planar joint, whose axes turn, leave it zero.

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
        joints = model.tree.q_names if name.startswith("position") else model.tree.v_names
        raise ArgumentError(f"joint {joints[k]!r}: {name}[{k}] {what}")


def _no_negative_mass(mass: Any, name: str) -> None:
    if not isinstance(mass, Tracer) and mass < 0:
        raise ArgumentError(f"{name} must not be negative, got {float(mass):g}")


def _possible(mass: Array, inertia: Array) -> None:
    """Checks what is known of the mass of a body and of its inertia about its centre.

    Raises:
        ArgumentError: The inertia is not symmetric, or no body of this mass has it.
    """
    matrix, m = known(inertia), known(mass)
    if matrix is None:
        return
    largest = np.abs(matrix).max()
    if (np.abs(matrix - matrix.T) > _ROUNDED * largest).any():
        raise ArgumentError(f"inertia must be symmetric, got {matrix.tolist()}")
    moments = np.linalg.eigvalsh(np.asarray(matrix, float))
    # A percent, as where files are read: their numbers have few digits.
    if moments[0] < -_ROUNDED * largest or moments[2] > 1.01 * (moments[0] + moments[1]):
        raise ArgumentError(f"inertia must be that of a body, got one with principal moments {moments.tolist()}")
    if m is not None and m == 0.0 and largest > 0.0:
        raise ArgumentError("inertia must be zero where mass is")


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

    Example:
        >>> heavier = with_inertias(robots.pendulum(), {"bob": jnp.array([3.0, 0, 0, -3.0, 3.0, 0, 3.0, 0, 0, 0])})
        >>> float(total_mass(heavier))
        3.0
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
        ArgumentError: A number is not finite, the mass is negative, or no body has such an inertia, as far as they are
            known.
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
    _possible(m, about_com)
    return add_inertia(model, model.link_index(link), inertias.from_mass_com(m, c, about_com))


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
