"""Mass, centre of mass, momentum and the inertia of the robot as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_sequence
from .._jit import jit_public
from ..model.model import Model, check_model
from ..spatial import se3
from ..sweeps.cross_products import crossed
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep
from ..sweeps.topology import masks
from ..sweeps.world_frame import (
    composites,
    outside,
    second_order,
)
from .arguments import arguments
from .first_moment import first_moment
from .inertial_wrench import inertial_wrench, spatial_momentum
from .kinematics import fk, link_pose
from .momentum_columns import linear_momentum_matrix, momentum_columns
from .rnea import weightless

Links = Sequence[str | int] | None


def _selected(model: Model, links: Links) -> np.ndarray:
    if isinstance(links, str | int):
        links = (links,)
    names = range(len(model.link_names)) if links is None else check_sequence(links, "links", "links, by name or index")
    return np.array([model.link_index(k) for k in names], int)


def fixed_links(model: Model) -> tuple[Array, Array]:
    """The poses and inertias of the links with mass that do not move."""
    slots, bodies = np.array(model.tree.welded_slots), np.array(model.tree.link_bodies)
    (links,) = np.nonzero((slots >= 0) & (bodies < 0))
    return model.link_placements[links], model.welded_inertias[slots[links]]


def _moment_of(poses: Array, inertias: Array) -> Float[Array, "3"]:
    """The first moment of mass of links, in the axes of their poses."""
    own = jnp.sum(poses[:, :3, :3] * inertias[:, None, 1:4], axis=2)
    return jnp.sum(own + inertias[:, :1] * poses[:, :3, 3], axis=0)


def fixed_mass_and_moment(model: Model) -> tuple[Float[Array, ""], Float[Array, "3"]]:
    """Mass and first moment of the links that are fixed to the world."""
    poses, inertias = fixed_links(model)
    return inertias[:, 0].sum(), _moment_of(poses, inertias)


def _mass_and_moment(model: Model, q: Array, links: Links, ref: str | int | None) -> tuple[Array, Array]:
    """Total mass of some links, and mass times centre of mass, in the axes of `ref`."""
    if links is None:
        of_fixed, moment_of_fixed = fixed_mass_and_moment(model)
        mass, moment = model.inertias[:, 0].sum() + of_fixed, first_moment(model, q) + moment_of_fixed
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
    return model.inertias[:, 0].sum() + fixed_mass_and_moment(model)[0]


@jit_public("link")
def subtree_mass(model: Model, link: str | int) -> Float[Array, ""]:
    """Mass of a link with all that it carries [kg]: its body, and every body that moves with it.

    Args:
        model: The robot.
        link: A link, by name or index; one that is fixed to the world stands for the whole robot.

    Raises:
        NameNotFoundError: There is no such link.

    Example:
        >>> float(subtree_mass(robots.double_pendulum(masses=(1.0, 2.0)), "lower"))
        2.0
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

    Example:
        A pendulum turned by a quarter:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> round(float(center_of_mass(arm, jnp.array([jnp.pi / 2]))[0]), 6)
        -0.5
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

    Example:
        >>> A = momentum_matrix(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1))
        >>> float(A[1, 0]), float(A[3, 0])
        (0.5, -1.0)
    """
    model, q = arguments(model, q=q)
    return momentum_columns(model, q)


@jit_public()
def momentum(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "6"]:
    """Spatial momentum [angular; linear] of the moving bodies about the world origin [kg m^2/s, kg m/s].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        Of a pendulum, $m l^2 v$ about y and $-m l v$ along x:

        >>> h = momentum(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1), jnp.array([2.0]))
        >>> float(h[1]), float(h[3])
        (1.0, -2.0)
    """
    model, q, v = arguments(model, q=q, v=v)
    return spatial_momentum(model, q, v)


@jit_public()
def com_jacobian(model: Model, q: Float[Array, "nq"]) -> Float[Array, "3 nv"]:
    r"""Jacobian of the centre of mass of the whole robot, $\dot c = J_c v$; O(n), from `momentum_matrix`.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> float(com_jacobian(robots.pendulum(length=0.5), jnp.zeros(1))[0, 0])
        -0.5
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

    Example:
        >>> float(com_velocity(robots.pendulum(length=0.5), jnp.zeros(1), jnp.array([2.0]))[0])
        -1.0
    """
    model, q, v = arguments(model, q=q, v=v)
    return spatial_momentum(model, q, v)[3:] / total_mass(model)


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

    Example:
        Towards the pivot of a pendulum, $l v^2$:

        >>> arm, v = robots.pendulum(length=0.5), jnp.array([2.0])
        >>> round(float(com_acceleration(arm, jnp.zeros(1), v, jnp.zeros(1))[2]), 6)
        2.0
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    return inertial_wrench(weightless(model), q, v, a)[3:] / total_mass(model)


def _turns_and_moments(run: Sweep) -> tuple[Array, Array]:
    """The axis about which each degree of freedom turns, and the linear momentum of all that it moves."""
    found = composites(run)
    return outside(run, found.S[:3]), outside(run, found.momenta[3:])


@jit_public()
def com_hessian(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv 3 nv"]:
    r"""Derivative of `com_jacobian`, $H_{i,:,j} = \partial J_{:,j} / \partial q_i$ along velocity direction $i$ [m].

    $\omega_i \times J_j$ if joint $i$ carries joint $j$, $\omega_j \times J_i$ if $j$ carries $i$, else zero; O(n^2).

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> float(com_hessian(robots.pendulum(length=0.5), jnp.zeros(1))[0, 2, 0])
        0.5
    """
    model, q = arguments(model, q=q)
    turns, moments = traverse(model, _turns_and_moments, q, result="joint_matrix")
    below, same = (x[:, None] for x in masks(model.tree))
    moved = jnp.where(np.swapaxes(below | same, 0, 2), crossed(turns, moments), 0.0)
    return second_order(model, jnp.where(below, -crossed(moments, turns), moved)) / total_mass(model)
