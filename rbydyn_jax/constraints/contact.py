"""Soft contact: points of links against half-spaces, and springs at the limits of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_not_negative
from .._errors import DtypeError, ShapeError
from .._jit import jit_public
from .._result import Result
from ..algorithms.arguments import arguments
from ..model.model import Model
from ._bodies import body_motions
from ._vectors import Numbers, check_link, direction, not_negative, positive, vector

Number = Float[Numbers, ""] | float


class Contact(eqx.Module):
    r"""A point of a link that may touch a half-space, with its parameters, all of which may be traced.

    The normal force is that of Hunt and Crossley [1975], $k z^n (1 + \frac32 \alpha \dot z)$ and never negative, at
    the depth z; the default exponent is that of Hertz for a sphere on a plane. Friction is viscoelastic: bristles of
    stiffness $k_f$ and damping $b_f$ are displaced by x, and slide where they would bear more than $\mu f_n$.

    Attributes:
        link: The link; static.
        point: The point in the link's coordinates (3,) [m].
        plane_point: A point of the plane in world coordinates (3,) [m].
        plane_normal: Unit normal of the plane (3,), out of what is solid.
        stiffness: k [N/m^n].
        exponent: n.
        dissipation: $\alpha$ [s/m].
        friction: $\mu$.
        friction_stiffness: $k_f$ [N/m].
        friction_damping: $b_f$ [N s/m].
    """

    link: str | int = eqx.field(static=True)
    point: Float[Numbers, "3"]
    plane_point: Float[Numbers, "3"]
    plane_normal: Float[Numbers, "3"]
    stiffness: Number
    exponent: Number
    dissipation: Number
    friction: Number
    friction_stiffness: Number
    friction_damping: Number

    def __init__(
        self,
        link: str | int,
        point: Any = (0.0, 0.0, 0.0),
        *,
        plane_point: Any = (0.0, 0.0, 0.0),
        plane_normal: Any = (0.0, 0.0, 1.0),
        stiffness: Number = 50e3,
        exponent: Number = 1.5,
        dissipation: Number = 2.0,
        friction: Number = 0.8,
        friction_stiffness: Number = 20e3,
        friction_damping: Number = 100.0,
    ) -> None:
        """The normal may be of any length; the default half-space is the ground z < 0.

        Raises:
            ArgumentError: The normal has no length, a number is not finite, a parameter is negative, or `exponent` or
                `friction_damping` is zero, where values are known.
            DtypeError: An argument is not numeric.
            ShapeError: An argument has another shape.
        """
        self.link = check_link(link, "link")
        self.point, self.plane_point = vector(point, "point"), vector(plane_point, "plane_point")
        self.plane_normal = direction(plane_normal, "plane_normal")
        self.stiffness, self.exponent = not_negative(stiffness, "stiffness"), positive(exponent, "exponent")
        self.dissipation, self.friction = not_negative(dissipation, "dissipation"), not_negative(friction, "friction")
        self.friction_stiffness = not_negative(friction_stiffness, "friction_stiffness")
        self.friction_damping = positive(friction_damping, "friction_damping")


class ContactForces(Result):
    """Forces of contacts, and rates of their bristles.

    Attributes:
        f_ext: Wrench on each body, about its origin in its axes: an argument of the dynamics [N m, N].
        forces: Force at each point in world axes [N].
        depths: How deep each point is in its half-space; negative outside [m].
        bristle_rates: Rates of the bristles' displacements, world axes [m/s].
    """

    f_ext: Float[Array, "nb 6"]
    forces: Float[Array, "c 3"]
    depths: Float[Array, "c"]
    bristle_rates: Float[Array, "c 3"]


def normal_force(depth: Array, rate: Array, stiffness: Number, exponent: Number, dissipation: Number) -> Array:
    """Hunt and Crossley's force at a depth that grows at a rate; zero outside, with all its derivatives."""
    outside = depth <= 0.0  # NaN is neither
    z = jnp.where(outside, 1.0, depth)
    force = stiffness * z**exponent * (1.0 + 1.5 * dissipation * rate)
    return jnp.where(outside, 0.0, jnp.maximum(force, 0.0))


def friction_force(
    bristle: Array, slip: Array, normal: Array, friction: Number, stiffness: Number, damping: Number
) -> tuple[Array, Array]:
    """The tangential force of bristles displaced by `bristle` whose ends slip, and the rate of their displacement."""
    sticking = -stiffness * bristle - damping * slip
    limit, size2 = friction * normal, jnp.sum(sticking * sticking)
    within = size2 <= limit * limit  # not with a coefficient that is NaN
    sticks = jnp.where(limit > 0.0, 1.0, 0.0)  # without friction nothing does, at no slip either
    ratio = jnp.where(within, sticks, limit * jax.lax.rsqrt(jnp.where(within, 1.0, size2)))
    force = ratio * sticking
    return force, jnp.divide(-(stiffness * bristle + force), damping)


def check_contacts(model: Model, contacts: Any, dtype: Any) -> tuple[Contact, ...]:
    """The contacts, cast to one dtype.

    Raises:
        DtypeError: They are no sequence of `Contact`.
        NameNotFoundError: One names a link that the robot does not have.
    """
    if isinstance(contacts, Contact) or not isinstance(contacts, Sequence):
        raise DtypeError(f"contacts must be a sequence of Contact, got {type(contacts).__name__}")
    for contact in contacts:
        if not isinstance(contact, Contact):
            raise DtypeError(f"contacts must hold Contact, got {type(contact).__name__}")
        model.link_index(contact.link)
    return tuple(jax.tree.map(lambda x: jnp.asarray(x, dtype), contact) for contact in contacts)


@jit_public()
def contact_forces(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    contacts: Sequence[Contact],
    bristles: Float[Array, "c 3"] | None = None,
) -> ContactForces:
    """The forces at contacts, for the displacements of their bristles.

    A point that does not touch has no force and a bristle rate of zero: set them to zero between the steps of an
    integration, as `simulate` does.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        contacts: The points and their half-spaces.
        bristles: Displacements of the bristles of each contact, world axes [m]; None is none.

    Raises:
        DtypeError: `contacts` holds something else.
        NameNotFoundError: A contact names a link that there is not.
        ShapeError: An argument has another shape.

    Example:
        A ball pressed 1 mm into the ground at rest, by Hertz's law k z^1.5:

        >>> ball = build_model(RobotBuilder().link("w").link("ball", 0.3, inertia=0.01).floating("f", "w", "ball"))
        >>> q = neutral(ball).at[6].set(-1e-3)
        >>> round(float(contact_forces(ball, q, jnp.zeros(6), (Contact("ball"),)).forces[0, 2]), 4)
        1.5811
    """
    model, q, v = arguments(model, q=q, v=v)
    touching = check_contacts(model, contacts, q.dtype)
    count = len(touching)
    x = jnp.zeros((count, 3), q.dtype) if bristles is None else check_array(bristles, "bristles").astype(q.dtype)
    if x.shape != (count, 3):
        raise ShapeError(f"bristles must have shape ({count}, 3), got {x.shape}")
    bodies = body_motions(model, q, v)
    f_ext = jnp.zeros((model.nb, 6), q.dtype)
    forces, depths, rates = [], [], []
    for k, contact in enumerate(touching):
        link = model.link_index(contact.link)
        body, T = model.tree.link_bodies[link], model.link_placements[link]
        arm = T[:3, :3] @ contact.point + T[:3, 3]
        moves = body >= 0
        pose = bodies.poses[body] if moves else jnp.eye(4, dtype=q.dtype)
        twist = bodies.velocities[body] if moves else jnp.zeros(6, q.dtype)
        R, position = pose[:3, :3], pose[:3, :3] @ arm + pose[:3, 3]
        velocity = R @ (twist[3:] + jnp.cross(twist[:3], arm))
        n = contact.plane_normal
        depth, approach = jnp.dot(contact.plane_point - position, n), -jnp.dot(velocity, n)
        pressed = normal_force(depth, approach, contact.stiffness, contact.exponent, contact.dissipation)
        slip = velocity + approach * n
        held = (contact.friction, contact.friction_stiffness, contact.friction_damping)
        rubbed, rate = friction_force(x[k], slip, pressed, *held)
        outside = depth <= 0.0
        force = jnp.where(outside, 0.0, pressed * n + rubbed)
        if moves:
            local = R.T @ force
            f_ext = f_ext.at[body].add(jnp.concatenate([jnp.cross(arm, local), local]))
        forces.append(force)
        depths.append(depth)
        rates.append(jnp.where(outside, 0.0, rate))
    if not count:
        return ContactForces(f_ext, x, jnp.zeros(0, q.dtype), x)
    return ContactForces(f_ext, jnp.stack(forces), jnp.stack(depths), jnp.stack(rates))


@jit_public(stiffness=check_not_negative, dissipation=check_not_negative)
def joint_limit_forces(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    stiffness: Float[Array, ""] | float = 1e3,
    dissipation: Float[Array, ""] | float = 0.2,
) -> Float[Array, "nv"]:
    r"""Forces of springs at the position limits: $k z (1 + \frac32 \alpha \dot z)$ back, where a joint is z beyond.

    Args:
        model: The robot; hinges and slides have limits, other types of joint none.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        stiffness: k [N m/rad, N/m].
        dissipation: $\alpha$ [s/rad, s/m].

    Returns:
        Joint torques or forces [N m, N]: add them to tau.

    Raises:
        ArgumentError: `stiffness` or `dissipation` is negative or not finite.
        ShapeError: An argument has another shape.

    Example:
        >>> arm = robots.two_link_arm()
        >>> joint_limit_forces(arm, arm.position_upper + jnp.array([0.1, -0.1]), jnp.zeros(2)).tolist()  # 0.1 beyond
        [-100.0, 0.0]
    """
    model, q, v = arguments(model, q=q, v=v)
    at_q, at_v = [], []
    for i, (joint, mimic) in enumerate(zip(model.tree.joints, model.tree.mimics, strict=True)):
        if mimic is None and joint.scalar:
            at_q.append(model.tree.q_slices[i].start)
            at_v.append(model.tree.v_slices[i].start)
    if not at_q:
        return jnp.zeros_like(v)
    x, rate = q[np.array(at_q)], v[np.array(at_v)]
    k = check_array(stiffness, "stiffness", ()).astype(q.dtype)
    alpha = check_array(dissipation, "dissipation", ()).astype(q.dtype)
    above = normal_force(x - model.position_upper[np.array(at_q)], rate, k, 1.0, alpha)
    below = normal_force(model.position_lower[np.array(at_q)] - x, -rate, k, 1.0, alpha)
    return jnp.zeros_like(v).at[np.array(at_v)].set(below - above)
