"""Every function of a state, its gradient, and the arithmetic that they need.

The arithmetic needed is that of a textbook algorithm in scalars, by the counts below, for joints of a general
placement. Real robots have zeros and ones in their geometry, so that a program may take less. The gradient of a scalar
takes about four times the arithmetic of its value in reverse mode [Griewank and Walther 2008, sec. 3.3]; that is what
the gradient of half the sum of squares of a result is held against. Two operations for each number of the result are
a part of that value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import rbydyn_jax as rb
from rbydyn_jax import Model, identification

from .operations import Operation

GRADIENT = "_grad"
_GRADIENT_FACTOR = 4


@dataclass(frozen=True)
class Size:
    """What the arithmetic depends on."""

    N: int  # bodies
    n: int  # degrees of freedom
    d: int  # bodies on the way to the link
    m: int  # degrees of freedom on this way
    p: int  # pairs of a degree of freedom with itself and with those that carry it
    L: int  # links
    steps: int  # operations of a step along the velocities of all joints

    @staticmethod
    def of(model: Model, link: str) -> Size:
        """The size of a robot, and of the way to one of its links."""
        tree = model.tree
        sizes = [joint.nv for joint in tree.joints]
        path = tree.path(tree.link_bodies[model.link_index(link)])
        above = [sum(sizes[i] for i in tree.path(k)) for k in range(tree.nb)]
        pairs = sum(n * (at - n) + n * (n + 1) // 2 for n, at in zip(sizes, above, strict=True))
        links = sum(1 for body in tree.link_bodies if body >= 0)
        steps = sum(_STEP.get(type(joint).__name__, 2 * joint.nv) for joint in tree.joints)
        return Size(tree.nb, sum(sizes), len(path), sum(sizes[i] for i in path), pairs, links, steps)


# Operations of a step of a joint: an addition and a product for each coordinate, but for those that turn. A quaternion
# takes the exponential of half the step 17, a product 28, its normalization 11; modified Rodrigues parameters a tangent
# and scales 14, a product 42, the choice of the shorter one 12. A displacement takes the left Jacobian 40, the rotation
# of it 45, and three additions; in the plane 24, and the angle 2.
_STEP = {"Spherical": 56, "Floating": 56 + 88, "MrpFloating": 68 + 88, "SinCosRevolute": 14, "Planar": 2 + 24}


# Operations for each body, unless said otherwise.
_POSE = 81  # two products of rotations, the second with one about an axis; the position
_AXIS = 24  # a column of a Jacobian: the axis turned, and one cross product
_TWIST = 52  # velocity of a body, from that of its parent: two rotations, a cross product, the joint's own
_APPLY = 33  # inertia times motion
_BACK = 48  # a force moved to the parent and added
_PLACED = 110  # the inertia of a body in world axes about the world origin, added to that of its parent
_COMPOSITE = _POSE + _AXIS + _PLACED + _APPLY  # columns I_c S
_NEWTON_EULER = 250  # pose 20, two twists, V x S v 15, two inertias, V x* I V 27, a force inward


def _jacobian(s: Size) -> int:
    return (_POSE + _AXIS) * s.d


def _crba(s: Size) -> int:
    return _COMPOSITE * s.N + 11 * s.p


def _com_jacobian(s: Size) -> int:
    return (_POSE + _AXIS + 24 + 4 + 15) * s.N


def _momentum(s: Size) -> int:
    return (20 + _TWIST + _APPLY + _BACK) * s.N


def _rnea_derivatives(s: Size) -> int:
    """Poses and motions, loads of the bodies, variations; 17 and 11 products for each pair along q and v, 11 for M."""
    return 800 * s.N + (2 * 28 + 11) * s.p


def _momentum_hessian(s: Size) -> int:
    """Each pair moved in both ways: a force along a motion, the rate of an inertia times a motion."""
    return _COMPOSITE * s.N + (30 + 45) * s.p


@dataclass(frozen=True)
class Function:
    """A function of a state: `function(link)` takes the model and these inputs; `needed` is its arithmetic."""

    inputs: tuple[str, ...]
    function: Callable[[str], Callable]
    needed: Callable[[Size], float]


def _of_link(f: Callable, *options: Any) -> Callable[[str], Callable]:
    return lambda link: lambda model, *state: f(model, *state, link, *options)


def _of_state(f: Callable) -> Callable[[str], Callable]:
    return lambda link: f


def _at_point(f: Callable) -> Callable[[str], Callable]:
    return lambda link: lambda model, q, point: f(model, q, link, point)


def _wrenches(link: str) -> Callable:
    return lambda model, q, wrench: rb.external_wrenches(model, q, {link: wrench})


Q, QV, QVA, QVT = ("q",), ("q", "v"), ("q", "v", "a"), ("q", "v", "tau")
QP, QVAP = ("q", "point"), (*QVA, "point")

FUNCTIONS: dict[str, Function] = {
    "fk": Function(Q, _of_state(rb.fk), lambda s: _POSE * s.N + 63 * max(s.L - s.N, 0)),
    "body_poses": Function(Q, _of_state(rb.body_poses), lambda s: _POSE * s.N),
    "link_pose": Function(Q, _of_link(rb.link_pose), lambda s: _POSE * s.d),
    "jacobian": Function(Q, _of_link(rb.jacobian), _jacobian),
    "point_jacobian": Function(QP, _at_point(rb.point_jacobian), _jacobian),
    "quaternion_jacobian": Function(Q, _of_link(rb.quaternion_jacobian), lambda s: _jacobian(s) + 16 * s.m + 40),
    "jacobian_dot": Function(QV, _of_link(rb.jacobian_dot), lambda s: _jacobian(s) + (20 + 30) * s.d),
    "jacobian_dot_v": Function(QV, _of_link(rb.jacobian_dot_v), lambda s: (_POSE + 90) * s.d),
    "link_velocity": Function(QV, _of_link(rb.link_velocity), lambda s: (_POSE + 30) * s.d),
    "link_acceleration": Function(QVA, _of_link(rb.link_acceleration), lambda s: (_POSE + 90) * s.d),
    "hessian": Function(Q, _of_link(rb.hessian), lambda s: _jacobian(s) + 18 * s.m * (s.m + 1) / 2),
    "point_hessian": Function(QP, _at_point(rb.point_hessian), lambda s: _jacobian(s) + 9 * s.m * (s.m + 1) / 2),
    "center_of_mass": Function(Q, _of_state(rb.center_of_mass), lambda s: (_POSE + 24) * s.N),
    "com_jacobian": Function(Q, _of_state(rb.com_jacobian), _com_jacobian),
    "com_velocity": Function(QV, _of_state(rb.com_velocity), _momentum),
    "com_acceleration": Function(QVA, _of_state(rb.com_acceleration), lambda s: _NEWTON_EULER * s.N),
    "com_hessian": Function(Q, _of_state(rb.com_hessian), lambda s: _com_jacobian(s) + 9 * s.p),
    "momentum": Function(QV, _of_state(rb.momentum), _momentum),
    "momentum_matrix": Function(Q, _of_state(rb.momentum_matrix), lambda s: _COMPOSITE * s.N),
    "angular_momentum": Function(("q", "v", "point"), _of_state(rb.angular_momentum), _momentum),
    "angular_momentum_jacobian": Function(
        QP, _of_state(rb.angular_momentum_jacobian), lambda s: _COMPOSITE * s.N + 6 * s.n
    ),
    "angular_momentum_hessian": Function(
        QP, _of_state(rb.angular_momentum_hessian), lambda s: _momentum_hessian(s) + 6 * s.n**2
    ),
    "centroidal_momentum": Function(QV, _of_state(rb.centroidal_momentum), lambda s: _momentum(s) + 24 * s.N),
    "centroidal_momentum_matrix": Function(
        Q, _of_state(rb.centroidal_momentum_matrix), lambda s: _COMPOSITE * s.N + 9 * s.n
    ),
    "centroidal_momentum_rate": Function(
        QVA, _of_state(rb.centroidal_momentum_rate), lambda s: (_NEWTON_EULER + 24) * s.N
    ),
    "centroidal_momentum_hessian": Function(
        Q, _of_state(rb.centroidal_momentum_hessian), lambda s: _momentum_hessian(s) + 18 * s.n**2
    ),
    "spatial_inertia": Function(Q, _of_state(rb.spatial_inertia), lambda s: (_POSE + _PLACED) * s.N),
    "kinetic_energy": Function(QV, _of_state(rb.kinetic_energy), lambda s: (20 + _TWIST + _APPLY + 11) * s.N),
    "potential_energy": Function(Q, _of_state(rb.potential_energy), lambda s: (_POSE + 24) * s.N),
    "generalized_momentum": Function(QV, _of_state(rb.generalized_momentum), lambda s: _NEWTON_EULER * s.N),
    "rnea": Function(QVA, _of_state(rb.rnea), lambda s: _NEWTON_EULER * s.N),
    "bias_forces": Function(QV, _of_state(rb.bias_forces), lambda s: _NEWTON_EULER * s.N),
    "gravity_forces": Function(Q, _of_state(rb.gravity_forces), lambda s: 120 * s.N),
    "inverse_dynamics_terms": Function(
        QVA, _of_state(rb.inverse_dynamics_terms), lambda s: (2 * _NEWTON_EULER + 120) * s.N
    ),
    "joint_reaction_wrenches": Function(QVA, _of_state(rb.joint_reaction_wrenches), lambda s: _NEWTON_EULER * s.N),
    "external_wrenches": Function(("q", "wrench"), _wrenches, lambda s: _POSE * s.d + 150),
    "net_contact_wrench": Function(QVAP, _of_state(rb.net_contact_wrench), lambda s: (_NEWTON_EULER + 24) * s.N),
    "gravito_inertial_wrench": Function(
        QVAP, _of_state(rb.gravito_inertial_wrench), lambda s: (_NEWTON_EULER + 24) * s.N
    ),
    "zmp": Function(
        QVA, lambda link: lambda model, *state: rb.zmp(model, *state).point, lambda s: (_NEWTON_EULER + 24) * s.N
    ),
    "crba": Function(Q, _of_state(rb.crba), _crba),
    "mass_matrix_inverse": Function(Q, _of_state(rb.mass_matrix_inverse), lambda s: _crba(s) + s.n**3),
    "operational_space_inertia": Function(
        Q,
        _of_link(rb.operational_space_inertia),
        lambda s: _crba(s) + _jacobian(s) + s.n**3 / 3 + (6 + 42) * s.n + 6 * s.n**2 + 250,
    ),
    "coriolis_matrix": Function(QV, _of_state(rb.coriolis_matrix), lambda s: 600 * s.N + 2 * 20 * s.p),
    "aba": Function(QVT, _of_state(rb.aba), lambda s: 500 * s.N),
    "rnea_derivatives": Function(QVA, _of_state(rb.rnea_derivatives), _rnea_derivatives),
    "aba_derivatives": Function(
        QVT, _of_state(rb.aba_derivatives), lambda s: _rnea_derivatives(s) + 250 * s.N + 5 * s.n**3
    ),
    "torque_regressor": Function(QVA, _of_state(identification.torque_regressor), lambda s: 400 * s.N + 110 * s.p),
    "integrate": Function(QV, _of_state(rb.integrate), lambda s: s.steps + 30),
    "difference": Function(("q", "q2"), _of_state(rb.difference), lambda s: s.steps + 30),
}
# Matrices of derivatives that nobody differentiates as a scalar here: second derivatives of the dynamics.
_WITHOUT_GRADIENT = ("rnea_derivatives", "aba_derivatives", "torque_regressor")
NAMES = tuple(x for name in FUNCTIONS for x in ((name,) if name in _WITHOUT_GRADIENT else (name, name + GRADIENT)))


def _half_square(f: Callable) -> Callable:
    return lambda *arguments: 0.5 * sum(jnp.vdot(x, x) for x in jax.tree.leaves(f(*arguments)))


def operation(name: str) -> Operation:
    """A function of the table, or the gradient of half the sum of its squares by all inputs, to be measured."""
    value = FUNCTIONS[name.removesuffix(GRADIENT)]
    if not name.endswith(GRADIENT):
        return Operation(f"`{name}`", value.inputs, value.function)
    places = tuple(range(1, 1 + len(value.inputs)))
    return Operation(
        f"gradient of `{name.removesuffix(GRADIENT)}`",
        value.inputs,
        lambda link: jax.grad(_half_square(value.function(link)), argnums=places),
        public=False,
    )


def needed(name: str, model: Model, link: str, result: int) -> float:
    """The arithmetic that a function needs, or the gradient of half the sum of squares of so many numbers of one."""
    found = FUNCTIONS[name.removesuffix(GRADIENT)].needed(Size.of(model, link))
    return _GRADIENT_FACTOR * (found + 2 * result) if name.endswith(GRADIENT) else found
