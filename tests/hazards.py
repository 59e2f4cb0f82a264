"""Where derivatives go wrong: singular points of functions, with the same functions in 120 digits.

`exact` takes and returns mpmath numbers. Its derivatives are central differences in 120 digits and owe nothing to the
rules of the library; a point where another value is documented brings its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from mpmath import mp, mpf

import rbydyn_jax as rb
from rbydyn_jax.constraints import Contact, contact_forces, joint_limit_forces
from rbydyn_jax.planning import trapezoidal_profile
from rbydyn_jax.spatial import mrp, quaternions, rpy, safe, transformations
from rbydyn_jax.testing import random_tree
from rbydyn_jax.whole_body import Pose, inverse_dynamics
from tests.helpers import X64

mp.dps = 120
Numbers = list[Any]
Exact = Callable[[Numbers], Numbers]

# Lengths whose powers leave the range of the dtype: of `TINY` the square, of `SMALL` a higher one.
SMALL, TINY = (1e-100, 1e-200) if X64 else (1e-11, 1e-30)
LARGE = 1 / TINY
BESIDE = 1e-9 if X64 else 1e-4
STEP = mpf(10) ** -25


class Point(NamedTuple):
    """A point, the order of the last derivative to look at, what is documented there if not `exact`, and the size of
    what cancels in the value."""

    x: Sequence[float]
    order: int = 2
    exact: Exact | None = None
    size: float = 0.0


class Case(NamedTuple):
    """A function of a vector, which returns a vector, and its hazards."""

    f: Callable[[jax.Array], jax.Array]
    exact: Exact
    points: dict[str, Point]
    own_steps: bool = False  # in proportion to each input, for functions that are singular where one vanishes


def differences(exact: Exact, x: Sequence[float], own_steps: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, Jacobian and second derivatives (outputs, inputs, inputs)."""
    at = [mpf(float(v)) for v in x]
    size = max([abs(v) for v in at]) or mpf(1)
    steps, n = [STEP * (abs(v) if own_steps and v else size) for v in at], len(at)

    def moved(*signs: tuple[int, int]) -> Numbers:
        y = list(at)
        for i, sign in signs:
            y[i] += sign * steps[i]
        return exact(y)

    value = exact(at)
    up, down = [moved((i, 1)) for i in range(n)], [moved((i, -1)) for i in range(n)]
    first = [[(u[k] - d[k]) / (2 * h) for u, d, h in zip(up, down, steps, strict=True)] for k in range(len(value))]
    second = [[[mpf(0)] * n for _ in range(n)] for _ in value]
    for i in range(n):
        for j in range(i + 1):
            if i == j:
                rows = [(u - 2 * c + d) / steps[i] ** 2 for u, c, d in zip(up[i], value, down[i], strict=True)]
            else:
                four = [moved((i, a), (j, b)) for a in (1, -1) for b in (1, -1)]
                rows = [(a - b - c + d) / (4 * steps[i] * steps[j]) for a, b, c, d in zip(*four, strict=True)]
            for k, row in enumerate(rows):
                second[k][i][j] = second[k][j][i] = row
    return tuple(np.array(y, object).astype(float) for y in (value, first, second))  # type: ignore[return-value]


def _dot(a: Numbers, b: Numbers) -> Any:
    return mpmath.fsum(x * y for x, y in zip(a, b, strict=True))


def _norm(a: Numbers) -> Any:
    return mpmath.sqrt(_dot(a, a))


def _cross(a: Numbers, b: Numbers) -> Numbers:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _unit(a: Numbers) -> Numbers:
    size = _norm(a)
    return [x / size for x in a]


def _multiply(a: Numbers, b: Numbers) -> Numbers:
    turn = _cross(a[1:], b[1:])
    return [
        a[0] * b[0] - _dot(a[1:], b[1:]),
        *(a[0] * y + b[0] * x + c for x, y, c in zip(a[1:], b[1:], turn, strict=True)),
    ]


def _conjugate(q: Numbers) -> Numbers:
    return [q[0], *(-x for x in q[1:])]


def _rotate(q: Numbers, p: Numbers) -> Numbers:
    u = _unit(q)
    return _multiply(_multiply(u, [mpf(0), *p]), _conjugate(u))[1:]


def _matrix(q: Numbers) -> Numbers:
    columns = [_rotate(q, [mpf(i == k) for i in range(3)]) for k in range(3)]
    return [columns[j][i] for i in range(3) for j in range(3)]


def _canonical(q: Numbers) -> Numbers:
    leading = next((x for x in q if x != 0), mpf(1))
    return [-x for x in q] if (q[0] or leading) < 0 else q


def _log(q: Numbers) -> Numbers:
    q = _canonical(q)
    size = _norm(q[1:])
    return [2 * mpmath.atan2(size, q[0]) / size * x if size else x for x in q[1:]]


def _exp(phi: Numbers) -> Numbers:
    angle = _norm(phi)
    return [mpmath.cos(angle / 2), *(mpmath.sin(angle / 2) / angle * x if angle else x for x in phi)]


def _slerp(x: Numbers) -> Numbers:
    a, b, t = x[:4], x[4:8], x[8]
    return _multiply(_unit(a), _exp([t * y for y in _log(_multiply(_conjugate(a), b))]))


def _rpy(R: Numbers) -> Numbers:
    flat = mpmath.sqrt(R[0] ** 2 + R[3] ** 2)
    cy, sy = R[0] / flat, R[3] / flat
    level = [cy * R[3 + k] - sy * R[k] for k in range(3)]
    return [mpmath.atan2(-level[2], level[1]), mpmath.atan2(-R[6], flat), mpmath.atan2(sy, cy)]


def _of_mrp(q: Numbers) -> Numbers:
    q = _canonical(q)
    return [x / (_norm(q) + q[0]) for x in q[1:]]


def _principal(s: Numbers) -> Numbers:
    square = _dot(s, s)
    return [-x / square for x in s] if square > 1 else s


def _turned(x: Numbers) -> Numbers:
    omega, slope, dt = x[:3], x[3:6], x[6]
    end = [w + a * dt for w, a in zip(omega, slope, strict=True)]
    second = [c * dt**2 / 12 for c in _cross(end, omega)]
    third = [c * dt**2 / 20 for c in _cross(slope, second)]
    return _matrix(_exp([(w + e) * dt / 2 + s + t for w, e, s, t in zip(omega, end, second, third, strict=True)]))


def _zero(x: Numbers) -> Numbers:
    return [mpf(0)]


Q = (0.5, -0.3, 0.7, 0.2)
P = (0.3, -1.2, 0.7)


def _lengths(tail: Sequence[float] = ()) -> dict[str, Point]:
    """A quaternion of every length; the derivatives along it grow as its length shrinks."""
    scaled = lambda size: tuple(size * x for x in Q)  # noqa: E731
    return {
        "unit": Point((*Q, *tail)),
        "small": Point((*scaled(SMALL), *tail)),
        "tiny": Point((*scaled(TINY), *tail), 1),
        "large": Point((*scaled(LARGE), *tail), 1),
    }


def _of_pitch(pitch: float) -> tuple[float, ...]:
    q = np.asarray(rpy.to_quaternion(jnp.array([0.3, pitch, -0.4])), np.float64)
    return tuple(np.asarray(quaternions.to_matrix(jnp.asarray(q, float))).ravel())


_ROTATIONS = {
    "identity": Point((1.0, 0, 0, 0)),
    "minus identity": Point((-1.0, 0, 0, 0)),
    "beside the identity": Point((1.0, TINY, -TINY, 0)),
    "beside minus identity": Point((-1.0, BESIDE, 0, BESIDE)),
    "just below pi": Point((BESIDE, 0.6, 0, 0.8)),
    "just above pi": Point((-BESIDE, 0.6, 0, 0.8)),
}
CASES: dict[str, Case] = {
    "safe.safe_sqrt": Case(
        lambda x: safe.safe_sqrt(x),
        lambda x: [mpmath.sqrt(x[0])],
        {
            "zero": Point((0.0,), exact=_zero),
            "small": Point((SMALL,)),
            "tiny": Point((1e-300 if X64 else 1e-36,), 1),
            "large": Point((LARGE,)),
        },
    ),
    "safe.safe_norm": Case(
        lambda x: safe.safe_norm(x)[None],
        lambda x: [_norm(x)],
        {
            "zero": Point((0.0, 0, 0), exact=_zero),
            "tiny": Point((TINY, -2 * TINY, 0)),
            "large": Point((LARGE, 0, 3 * LARGE)),
            "on an axis": Point((0, -1.0, 0)),
            "nearly on an axis": Point((TINY, 2.0, 0)),
        },
    ),
    "safe.safe_divide": Case(
        lambda x: safe.safe_divide(x[:1], x[1:]),
        lambda x: [x[0] / x[1]],
        {
            "by zero": Point((2.0, 0.0), exact=_zero),
            "zero by zero": Point((0.0, 0.0), exact=_zero),
            "by little": Point((1.0, -SMALL)),
            "tiny by tiny": Point((TINY, TINY), 1),
            "zero by tiny": Point((0.0, TINY), 1),
            "by much": Point((1.0, LARGE), 1),
        },
        own_steps=True,
    ),
    "safe.angle_ratio": Case(
        lambda x: safe.angle_ratio(x[:1], x[1:]),
        lambda x: [2 * mpmath.atan2(mpmath.sqrt(x[0]), x[1]) / mpmath.sqrt(x[0])],
        {
            "small angle": Point((BESIDE, 1.0)),
            "half a turn": Point((1.0, 0.0)),
            "just above half a turn": Point((1.0, -BESIDE)),
            "short": Point((0.36e-10, 0.8e-5)),
        },
    ),
    "quaternions.normalize": Case(lambda x: quaternions.normalize(x), _unit, _lengths()),
    "quaternions.to_matrix": Case(lambda x: quaternions.to_matrix(x).ravel(), _matrix, _lengths()),
    "quaternions.rotate": Case(
        lambda x: quaternions.rotate(x[:4], x[4:]), lambda x: _rotate(x[:4], x[4:]), _lengths(P), own_steps=True
    ),
    "quaternions.log": Case(lambda x: quaternions.log(x), _log, _lengths() | _ROTATIONS),
    "quaternions.slerp": Case(
        lambda x: quaternions.slerp(x[:4], x[4:8], x[8]),
        _slerp,
        {
            "coinciding": Point((*Q, *Q, 0.3)),
            "opposite sign": Point((*Q, *(-x for x in Q), 0.3)),
            "start": Point((*Q, 1.0, 0, 0, 0, 0.0)),
            "small": Point((*(SMALL * x for x in Q), *(SMALL * x for x in (0.4, 0.1, -0.2, 0.6)), 0.3)),
            "half a turn": Point((1.0, 0, 0, 0, BESIDE, 0, 0.6, 0.8, 0.5)),
        },
        own_steps=True,
    ),
    "quaternions.angular_velocity": Case(
        lambda x: quaternions.angular_velocity(x[:4], x[4:]),
        lambda x: [2 * y / _dot(x[:4], x[:4]) for y in _multiply(_conjugate(x[:4]), x[4:])[1:]],
        {"unit": Point((*Q, *P, 0.2)), "small": Point((*(SMALL * y for y in Q), *(SMALL * y for y in P), SMALL))},
    ),
    "rpy.from_matrix": Case(
        lambda x: rpy.from_matrix(x.reshape(3, 3)),
        _rpy,
        {
            "identity": Point(tuple(np.eye(3).ravel())),
            "beside the lock": Point(_of_pitch(np.pi / 2 - 1e-3)),
            "beside the lower lock": Point(_of_pitch(-np.pi / 2 + 1e-3)),
        },
    ),
    "rpy.from_quaternion": Case(
        lambda x: rpy.from_quaternion(x),
        lambda x: _rpy(_matrix(x)),
        {"identity": Point((1.0, 0, 0, 0)), "small": Point(tuple(SMALL * x for x in Q)), "oblique": Point(Q)},
    ),
    "mrp.from_quaternion": Case(lambda x: mrp.from_quaternion(x), _of_mrp, _lengths() | _ROTATIONS),
    "mrp.principal": Case(
        lambda x: mrp.principal(x),
        _principal,
        {"zero": Point((0.0, 0, 0)), "beyond half a turn": Point((1.0, BESIDE + 1e-3, 0)), "large": Point((1e6, 1, 0))},
    ),
    "transformations.integrate_angular_acceleration": Case(
        lambda x: transformations.integrate_angular_acceleration(
            jnp.eye(3, dtype=x.dtype), x[:3], x[3:6], x[6]
        ).ravel(),
        _turned,
        {
            "no motion": Point((0.0,) * 6 + (0.1,)),
            "no time": Point((*P, *P, 0.0)),
            "a turn": Point((2 * np.pi, 0, 0, 0, 0, 0, 1.0)),
            "half a turn": Point((0, 0, np.pi, 0, 0, 0, 1.0)),
        },
    ),
}

_BALL = rb.build_model(rb.RobotBuilder("ball").link("w").link("a", 1.0, inertia=0.1).spherical("j", "w", "a"))
_FREE = rb.build_model(rb.RobotBuilder("free").link("w").link("a", 1.0, inertia=0.1).floating("j", "w", "a"))
_LIMITED = rb.build_model(
    rb.RobotBuilder("limited").link("w").link("a", 1.0, inertia=0.1).revolute("j", "w", "a", lower=-1, upper=1)
)
_ARM = random_tree(2, ("revolute", "prismatic"), 2)
_WIDTH, _STIFF, _ALPHA, _MU, _DAMPING = 0.1, 5e3, 0.2, 0.8, 100.0
# In the dynamics the square of a quaternion has to be a number, and its inverse squared.
_SOME = 1e-50 if X64 else 1e-6


def _pressed(x: jax.Array, friction: float) -> jax.Array:
    """Force of a ball at a depth, moving up and sideways."""
    contact = Contact("a", stiffness=_STIFF, dissipation=_ALPHA, friction=friction, friction_damping=_DAMPING)
    q = rb.neutral(_FREE).at[6].set(-x[0])
    return contact_forces(_FREE, q, jnp.zeros(6, x.dtype).at[3].set(x[2]).at[5].set(x[1]), (contact,)).forces[0]


def _of_contact(x: Numbers, friction: float) -> Numbers:
    depth, up, slip = x
    normal: Any = _STIFF * depth**1.5 * (1 - mpf(1.5) * mpf(_ALPHA) * up)
    held = max(-friction * normal, min(friction * normal, -_DAMPING * slip))
    return [held, mpf(0), normal]


def _duration(x: Numbers) -> Numbers:
    """Minimum time to rest after x[2] - x[0] from the speed x[1], at most 1 and with acceleration 2."""
    way, speed = x[2] - x[0], x[1]
    after = way - speed * abs(speed) / 4
    sign = -1 if after < 0 else 1
    u, D = sign * speed, sign * way + speed**2 / 4
    fastest: Any = mpmath.sqrt(2 * D)
    w = min(1, fastest)
    return [u / 2 + sign * after / w if u > w else (w - u) / 2 + D / w]


def _nothing(x: Numbers) -> Numbers:
    return [mpf(0)] * 3


def _accelerated(q: jax.Array) -> jax.Array:
    """Accelerations of a ball joint that turns to the identity."""
    upright = Pose("a", jnp.eye(4, dtype=q.dtype), jnp.array([1.0, 1, 1, 0, 0, 0], q.dtype))
    return inverse_dynamics(_BALL, q, jnp.zeros(3, q.dtype), [upright], actuated=("j",), damping=0.25).a


# Functions of a robot, and of planning.
CASES |= {
    "whole_body.inverse_dynamics": Case(
        _accelerated,
        lambda q: [-80 * x for x in _log(_unit(q))],
        {"unit": Point(Q)} | {where: point._replace(size=1.0) for where, point in _ROTATIONS.items()},
    ),
    "rb.normalize": Case(lambda x: rb.normalize(_BALL, x), _unit, _lengths()),
    "rb.fk": Case(
        lambda x: rb.link_pose(_BALL, x, "a")[:3, :3].ravel(),
        _matrix,
        {"unit": Point(Q), "short": Point(tuple(_SOME * y for y in Q)), "long": Point(tuple(y / _SOME for y in Q))},
    ),
    "rb.integrate": Case(
        lambda x: rb.integrate(_BALL, x[:4], x[4:]),
        lambda x: _multiply(x[:4], _exp(x[4:])),
        {
            "no motion": Point((*Q, 0, 0, 0)),
            "hardly any": Point((*Q, TINY, 0, 0)),
            "a turn": Point((*Q, 0, 2 * np.pi, 0)),
        },
    ),
    "rb.difference": Case(
        lambda x: rb.difference(_BALL, x[:4], x[4:]),
        lambda x: _log(_multiply(_conjugate(x[:4]), x[4:])),
        {
            "none": Point((*Q, *Q), size=1.0),
            "other sign": Point((*Q, *(-y for y in Q)), size=1.0),
            "short": Point((*(SMALL * y for y in Q), *(SMALL * y for y in (0.4, 0.1, -0.2, 0.6)))),
        },
        own_steps=True,
    ),
    "rb.friction_forces": Case(
        lambda x: rb.friction_forces(_ARM, x, width=_WIDTH),
        lambda x: [-mpf(float(f)) * mpmath.tanh(v / mpf(_WIDTH)) for f, v in zip(_ARM.friction, x, strict=True)],
        {"at rest": Point((0.0, 0.0)), "hardly moving": Point((1e-2, -1e-2)), "fast": Point((3.0, -0.2))},
    ),
    "rb.friction_forces without width": Case(
        lambda x: rb.friction_forces(_ARM, x), lambda x: [mpf(0)] * 2, {"at rest": Point((0.0, 0.0))}
    ),
    "constraints.joint_limit_forces": Case(
        lambda x: joint_limit_forces(_ARM, _ARM.position_upper + x[:2], x[2:]),
        lambda x: [mpf(0)] * 2,
        {"at the limit": Point((0.0,) * 4), "at the limit, moving on": Point((0.0, 0.0, 1.0, 1.0))},
    ),
    "constraints.contact_forces": Case(
        lambda x: _pressed(x, _MU),
        lambda x: _of_contact(x, _MU),
        {
            "just touching": Point((0.0, 0, 0), exact=_nothing),
            "just touching, sliding": Point((0.0, -0.5, 2.0), exact=_nothing),
            "at rest": Point((1e-3, 0, 0)),
            "sliding": Point((1e-3, -0.1, 2.0)),
        },
    ),
    "constraints.contact_forces without friction": Case(
        lambda x: _pressed(x, 0.0),
        lambda x: _of_contact(x, 0.0),
        {"at rest": Point((1e-3, 0, 0)), "sliding": Point((1e-3, 0, 1.0))},
    ),
    "rb.clamp": Case(
        lambda x: rb.clamp(_LIMITED, x),
        lambda x: [min(mpf(1), max(mpf(-1), x[0]))],
        {"inside": Point((0.3,)), "outside": Point((1.5,)), "at a limit": Point((1.0,), 1, exact=lambda x: [x[0]])},
    ),
    "planning.trapezoidal_profile": Case(
        lambda x: trapezoidal_profile(
            x[:1], x[2:], jnp.ones_like(x[:1]), 2.0 * jnp.ones_like(x[:1]), start_velocity=x[1:2]
        ).duration[None],
        _duration,
        {
            "no way": Point((0.3, 0.0, 0.3), exact=_zero),
            "from rest": Point((0.0, 0.0, 0.1)),
            "starts at the speed limit": Point((0.0, 1.0, 2.0), 1),
            "above the speed limit": Point((0.0, 2.0, 5.0)),
            "away from the target": Point((0.0, -0.5, 1.0)),
            "beyond the target": Point((0.0, 2.0, 0.1)),
        },
    ),
}

# Where another file has the table of hazards of a function, to second order.
COVERED: dict[str, str] = {
    **dict.fromkeys(("safe.stumpff",), "spatial/test_safe.py::test_stumpff_and_its_derivatives_are_exact"),
    **dict.fromkeys(
        ("so3.exp", "quaternions.exp"), "spatial/test_so3.py::test_exp_and_its_derivatives_equal_the_matrix_exponential"
    ),
    "so3.log": "spatial/test_so3.py::test_log_inverts_exp_to_second_order",
    **dict.fromkeys(
        ("so3.left_jacobian", "so3.right_jacobian"),
        "spatial/test_so3.py::test_second_derivatives_of_exp_from_the_derivative_of_its_jacobian",
    ),
    **dict.fromkeys(
        ("so3.left_jacobian_inverse", "so3.right_jacobian_inverse"),
        "spatial/test_so3.py::test_derivatives_of_the_inverse_jacobian",
    ),
    "se3.exp": "spatial/test_se3.py::test_exp_and_its_derivatives_equal_the_matrix_exponential",
    "se3.log": "spatial/test_se3.py::test_log_inverts_exp_to_second_order",
    **dict.fromkeys(
        ("se3.left_jacobian", "se3.right_jacobian", "se3.left_jacobian_inverse", "se3.right_jacobian_inverse"),
        "spatial/test_se3.py::test_derivatives_of_the_jacobians",
    ),
    **dict.fromkeys(
        ("quaternions.from_matrix", "transformations.pose_from_transform", "transformations.apply_transform"),
        "spatial/test_quaternions.py::test_from_matrix_and_its_derivatives_at_every_angle",
    ),
    "mrp.from_matrix": "spatial/test_mrp.py::test_derivatives_at_zero",
    "transformations.integrate_body_acceleration": (
        "spatial/test_transformations.py::test_integrated_rotation_approaches_the_exact_one_at_fifth_order"
    ),
    "inertia.to_mass_com": "spatial/test_inertia.py::test_massless_body_has_finite_values_and_derivatives",
    **dict.fromkeys(
        ("inertia.to_log_cholesky", "inertia.from_log_cholesky"),
        "spatial/test_inertia.py::test_log_cholesky_there_and_back_with_derivatives",
    ),
    "collision.capsule_distance": (
        "collision/test_distance.py::test_derivatives_are_finite_and_consistent_where_the_distance_is_degenerate"
    ),
    **dict.fromkeys(
        ("collision.signed_distances", "collision.capsule_distances", "collision.min_distance", "collision.nearest"),
        "collision/test_robot.py::test_derivatives_are_finite_at_the_zero_pose",
    ),
    "collision.smooth_min_distance": "collision/test_robot.py::test_second_derivatives_are_finite_at_the_zero_pose",
    **dict.fromkeys(
        ("collision.world_distances", "collision.world_contacts"),
        "collision/test_world.py::test_derivatives_by_the_configuration_and_by_the_world",
    ),
    "collision.contact_points": (
        "constraints/test_hard_contact.py::test_derivatives_of_contact_points_are_finite_where_corners_tie"
    ),
    "collision.sdf": "collision/test_world.py::test_derivatives_of_the_field_are_normals_also_on_axes_and_at_centres",
}

# Polynomials, sines and cosines of their arguments, or quotients by 1 + |x|^2: smooth everywhere.
SMOOTH = """
to_linear_first from_linear_first so3.hat so3.vee se3.from_R_p se3.inverse motion.Ad motion.ad
quaternions.multiply quaternions.conjugate quaternions.derivative quaternions.xyzw_from_wxyz
quaternions.wxyz_from_xyzw rpy.to_matrix rpy.to_quaternion mrp.to_quaternion mrp.to_matrix mrp.derivative
mrp.angular_velocity motion.cross_motion motion.cross_force motion.transform_motion motion.transform_force
motion.point_velocity motion.point_acceleration motion.classical_acceleration motion.spatial_acceleration
inertia.from_mass_com inertia.to_matrix inertia.from_matrix inertia.transform inertia.momentum
inertia.to_pseudo_inertia inertia.from_pseudo_inertia cones.friction_cone_faces cones.friction_cone_rays
cones.rectangle cones.wrench_cone_faces cones.wrench_cone_rays transformations.transform_from_pose
transformations.magnus_expansion transformations.integrate_constant_jerk
""".split()

# The results are not differentiable: numbers of pairs, truth values, or the arguments themselves.
WITHOUT_DERIVATIVES = {
    "quaternions.canonical": "a choice of sign, discontinuous at half a turn",
    "inertia.is_consistent": "a truth value",
    "collision.pairs": "indices",
    "collision.sampled_pairs": "indices",
    "collision.srdf_pairs": "indices",
    "collision.mesh_shapes": "files",
    "collision.read_spheres": "files",
    "collision.box": "its arguments",
    "collision.capsule": "its arguments",
    "collision.cylinder": "its arguments",
    "collision.sphere": "its arguments",
    "collision.half_space": "its arguments, the normal divided by `safe_norm`",
    "collision.height_map": "its arguments",
    "collision.distance_grid": "its arguments",
    "collision.convex_hull": "its vertices, moved by its pose",
    "collision.grid_from_points": "made on the host",
    "collision.grid_from_mesh": "files",
}
