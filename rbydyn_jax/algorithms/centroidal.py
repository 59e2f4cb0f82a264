"""Mass, centre of mass, momentum and the inertia of the robot as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_not_negative, check_sequence, jit_public
from ..model.configuration import qdot_from_v
from ..model.model import Model, check_model
from ..spatial import inertia, se3
from ..sweeps.plan import traverse
from .arguments import arguments
from .crba import mass_matrix_inverse
from .first_moment import first_moment, linear_momentum_matrix, momentum_columns
from .jacobians import jacobian, tangent_jacobian
from .kinematics import fk, link_pose

Links = Sequence[str | int] | None


def _selected(model: Model, links: Links) -> np.ndarray:
    if isinstance(links, str | int):
        links = (links,)
    names = range(len(model.link_names)) if links is None else check_sequence(links, "links", "links, by name or index")
    return np.array([model.link_index(k) for k in names], int)


def _fixed_to_the_world(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The links with mass that do not move, and their rows in `Model.welded_inertias`."""
    slots, bodies = np.array(model.tree.welded_slots), np.array(model.tree.link_bodies)
    (links,) = np.nonzero((slots >= 0) & (bodies < 0))
    return links, slots[links]


def _moment_of(poses: Array, inertias: Array) -> Float[Array, "3"]:
    """The first moment of mass of links, in the axes of their poses."""
    own = jnp.sum(poses[:, :3, :3] * inertias[:, None, 1:4], axis=2)
    return jnp.sum(own + inertias[:, :1] * poses[:, :3, 3], axis=0)


def _mass_and_moment(model: Model, q: Array, links: Links, ref: str | int | None) -> tuple[Array, Array]:
    """Total mass of some links, and mass times centre of mass, in the axes of `ref`."""
    if links is None:
        fixed, slots = _fixed_to_the_world(model)
        of_fixed = _moment_of(model.link_placements[fixed], model.welded_inertias[slots])
        mass, moment = total_mass(model), first_moment(model, q) + of_fixed
    else:
        index = _selected(model, links)
        inertias = model.link_inertias[index]
        mass, moment = inertias[:, 0].sum(), _moment_of(fk(model, q)[index], inertias)
    if ref is not None:
        T = se3.inverse(link_pose(model, q, ref))
        moment = T[:3, :3] @ moment + mass * T[:3, 3]
    return mass, moment


@jit_public()
def total_mass(model: Model) -> Float[Array, ""]:
    """Mass of all links [kg], those that are fixed to the world included.

    Example:
        >>> float(total_mass(robots.pendulum(mass=2.0)))
        2.0
    """
    model = check_model(model)
    return model.inertias[:, 0].sum() + model.welded_inertias[_fixed_to_the_world(model)[1], 0].sum()


@jit_public("link")
def subtree_mass(model: Model, link: str | int) -> Float[Array, ""]:
    """Mass of a link with all that it carries [kg]: its body, and every body that moves with it.

    Args:
        model: The robot.
        link: A link, by name or index; one that is fixed to the world stands for the whole robot.

    Raises:
        NameNotFoundError: There is no such link.
    """
    model = check_model(model)
    body = model.tree.link_bodies[model.link_index(link)]
    if body < 0:
        return total_mass(model)
    carried = [i for i in range(model.nb) if body in model.tree.path(i)]
    return model.inertias[np.array(carried), 0].sum()


@jit_public("links", "ref")
def center_of_mass(
    model: Model, q: Float[Array, "nq"], links: Links = None, ref: str | int | None = None
) -> Float[Array, "3"]:
    r"""Centre of mass $\sum_i m_i c_i / \sum_i m_i$ [m].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        links: A tuple of links to which it is restricted (each link's own mass, not that of links welded to it); None
            takes all links, those fixed to the world included.
        ref: The link in whose coordinates the result is; None is the world.

    Returns:
        The point [m]; NaN if the mass is zero.

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    mass, moment = _mass_and_moment(model, q, links, ref)
    return moment / mass


@jit_public()
def momentum_matrix(model: Model, q: Float[Array, "nq"]) -> Float[Array, "6 nv"]:
    r"""The matrix $A(q)$ that gives the spatial momentum $[l; p] = A v$ about the world origin, in world axes.

    Column $i$ is $I^c_i S_i$, composite inertia times motion subspace; O(n) [Featherstone 2008, sec. 6.3].

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Returns:
        Rows [angular momentum (3); linear momentum (3)].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    return traverse(model, momentum_columns, q, result="world_matrix")


@jit_public()
def momentum(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "6"]:
    """Spatial momentum [angular; linear] of the moving bodies about the world origin [kg m^2/s, kg m/s].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: An argument has another shape.
    """
    model, q, v = arguments(model, q=q, v=v)
    return momentum_matrix(model, q) @ v


@jit_public()
def com_jacobian(model: Model, q: Float[Array, "nq"]) -> Float[Array, "3 nv"]:
    r"""Jacobian of the centre of mass of the whole robot, $\dot c = J_c v$; O(n), from `momentum_matrix`.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    return linear_momentum_matrix(model, q) / total_mass(model)


@jit_public()
def com_velocity(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "3"]:
    r"""Velocity $\dot c = J_c v$ of the centre of mass of the whole robot [m/s].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: An argument has another shape.
    """
    model, q, v = arguments(model, q=q, v=v)
    return com_jacobian(model, q) @ v


@jit_public()
def com_acceleration(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"]
) -> Float[Array, "3"]:
    r"""Acceleration of the centre of mass of the whole robot, $J_c a + \dot J_c v$ [m/s^2]; gravity has no part in it.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].

    Raises:
        ShapeError: An argument has another shape.
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    J, Jdot = jax.jvp(lambda x: com_jacobian(model, x), (q,), (qdot_from_v(model, q, v),))
    return J @ a + Jdot @ v


@jit_public()
def com_hessian(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv 3 nv"]:
    r"""Derivative of `com_jacobian`, $H_{i,:,j} = \partial J_{:,j} / \partial q_i$ along velocity direction $i$ [m].

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    return tangent_jacobian(lambda x: com_jacobian(model, x), model, q)


@jit_public("ref")
def spatial_inertia(model: Model, q: Float[Array, "nq"], ref: str | int | None = None) -> Float[Array, "6 6"]:
    r"""Inertia of the whole robot as one rigid body, $\sum_i X_i^{-T} I_i X_i^{-1}$, [angular; linear].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        ref: The link about whose origin and in whose axes it is stated; None is the world.

    Returns:
        [[I, [h]], [-[h], m 1]] about the origin of `ref`, all links included.

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    poses = fk(model, q)
    if ref is not None:
        poses = se3.inverse(poses[model.link_index(ref)]) @ poses
    return inertia.to_matrix(jax.vmap(inertia.transform)(poses, model.link_inertias).sum(axis=0))


@jit_public("link", "ref", rtol=check_not_negative)
def operational_space_inertia(
    model: Model,
    q: Float[Array, "nq"],
    link: str | int,
    ref: str | int | None = None,
    rtol: Float[Array, ""] | float | None = None,
) -> Float[Array, "6 6"]:
    r"""Inertia that is felt at a link, $\Lambda = (J M^{-1} J^T)^+$, in the link's frame [Khatib 1987].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.
        ref: The link relative to which it moves; None is the world.
        rtol: Directions whose mobility is below this part of the largest count as those in which the link cannot move;
            default is 60 times the machine epsilon. It compares rotations with translations: near singular poses, or
            in float32, set it to what matters.

    Returns:
        6x6 matrix, angular first; directions in which the link cannot move have zero inertia (pseudo-inverse).

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    J = jacobian(model, q, link, ref=ref, frame="local")
    mobility = J @ mass_matrix_inverse(model, q) @ J.T
    cut = 60 * jnp.finfo(q.dtype).eps if rtol is None else rtol
    cut = check_array(cut, "rtol", ()).astype(q.dtype)
    return jnp.linalg.pinv(0.5 * (mobility + mobility.T), rtol=cut, hermitian=True)
