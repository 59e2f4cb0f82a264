"""What a joint type declares, and what follows from it. A new type is one file: a subclass, and `register` of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .._errors import ModelError
from .._lazy import jax, jnp
from ..spatial.algebra import Motion, Transform, Vec3
from ..xla.structural import MINUS_ONE, ONE, ZERO, Scalar, number
from .groups import safe, so3
from .layout import Layout
from .rotations import exact_sincos, plane_directions

# What the algorithms see of one joint: its coordinates, numbers or (sine, cosine) of those that are angles, and then
# its parameters.
Coordinates = tuple


class JointType:
    """One type of joint.

    The transform and the motion subspace are written in the structural scalars of the algorithms, the maps of
    coordinates on small JAX arrays.

    Attributes:
        name: The name in descriptions and models.
        summary: What it is, in a few words that follow "Adds".
        nq: Number of position coordinates.
        nv: Number of velocity coordinates.
        turns: Whether it leaves no rotation free, that about the axis, or all.
        slides: Whether it leaves no translation free, that along the axis, those in the plane normal to it, or all.
        angles: Which position coordinates enter through sine and cosine alone.
        translations: Which position coordinates only translate what comes after the joint, in the axes before it.
        parameters: Names of its own parameters, which are leaves of a model like lengths.
        limited: Whether its position usually has limits, which URDF then requires.
        urdf_instead: What to use instead in URDF; empty if URDF has this type, by the same name.
        mjcf: Its name in MJCF; empty if there is none.
        pinocchio: How pinocchio writes its coordinates; None if it has no such joint.
        mujoco: How MuJoCo writes them; None if it has no such joint.
    """

    name: str = ""
    summary: str = ""
    nq: int = 1
    nv: int = 1
    turns: Literal["none", "axis", "all"] = "none"
    slides: Literal["none", "axis", "plane", "all"] = "none"
    angles: tuple[int, ...] = ()
    translations: tuple[int, ...] = ()
    parameters: tuple[str, ...] = ()
    limited: bool = False
    urdf_instead: str = ""
    mjcf: str = ""
    pinocchio: Layout | None = None
    mujoco: Layout | None = None

    @property
    def has_axis(self) -> bool:
        """Whether its axis means something."""
        return self.turns == "axis" or self.slides in ("axis", "plane")

    @property
    def scalar(self) -> bool:
        """Whether its position is one number on a line: it may have limits, and mimic or be mimicked."""
        return self.nq == self.nv == 1

    def transform(self, axis: Vec3, x: Coordinates) -> Transform:
        """T_before_after at coordinates `x`."""
        raise TypeError(f"{type(self).__name__} defines no transform")

    def subspace(self, axis: Vec3, x: Coordinates) -> tuple[Motion, ...]:
        """The columns of S, in the frame after the joint, in which they are constant (the derivatives rely on it)."""
        raise TypeError(f"{type(self).__name__} defines no motion subspace")

    def neutral(self) -> np.ndarray:
        """The position at which the transform is the identity."""
        return np.zeros(self.nq)

    def integrate(self, q: jax.Array, dv: jax.Array) -> jax.Array:
        """The position reached from `q` at constant velocity `dv` in one unit of time."""
        return q + dv

    def difference(self, q0: jax.Array, q1: jax.Array) -> jax.Array:
        """The velocity that leads from `q0` to `q1` in one unit of time."""
        return q1 - q0

    def qdot_from_v(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """Time derivative of the position."""
        return v

    def v_from_qdot(self, q: jax.Array, qdot: jax.Array) -> jax.Array:
        """Velocity of which `qdot` is the rate of the position."""
        return qdot

    def drift(self, v: jax.Array) -> jax.Array:
        """What is added to the rate of `v` to give the acceleration in axes that do not turn with the joint."""
        return jnp.zeros_like(v)

    def glide(self, q: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Position and velocity after a time at the velocity `v`, constant in axes that do not turn with the joint."""
        return self.integrate(q, t * v), v

    def normalize(self, q: jax.Array) -> jax.Array:
        """The same position in its normal form."""
        return q

    def random(self, key: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
        """A random position, uniform within the finite limits given."""
        return jax.random.uniform(key, (self.nq,), lower.dtype, lower, upper)

    def problem(self, q: np.ndarray) -> str:
        """What is wrong with a position of floats; empty if nothing is, or if it is NaN."""
        return ""

    def matrix(self, axis: np.ndarray, parameters: Sequence[float], q: Sequence[float] | np.ndarray) -> np.ndarray:
        """T_before_after (4, 4) at a position, in numpy, exact at right angles."""
        turned = self.transform(_constants(axis), self._numbers(parameters, q))
        T = np.eye(4)
        T[:3, :3] = [[number(e) for e in row] for row in turned.R]
        T[:3, 3] = [number(e) for e in turned.p]
        return T

    def columns(self, axis: np.ndarray, parameters: Sequence[float]) -> np.ndarray:
        """S (6, nv) in numpy, angular rows first."""
        columns = self.subspace(_constants(axis), self._numbers(parameters, self.neutral()))
        return np.array([[number(e) for e in (*s.w, *s.v)] for s in columns]).reshape(-1, 6).T

    def _numbers(self, parameters: Sequence[float], q: Sequence[float] | np.ndarray) -> Coordinates:
        numbers = (exact_sincos(float(x)) if k in self.angles else float(x) for k, x in enumerate(q))
        return (*numbers, *map(float, parameters))

    @property
    def angular_rank(self) -> int:
        """Number of constraint equations on rotations alone where the joint closes a loop; they come first."""
        return {"none": 3, "axis": 2, "all": 0}[self.turns]

    def bearing(self, axis: jax.Array, parameters: Sequence[jax.Array]) -> jax.Array:
        """The basis T (6, 6 - nv) of the wrenches [n; f] that it bears, constant in the frame after the joint."""
        ex, ey = (jnp.stack(tuple(e)) for e in plane_directions(Vec3(*axis)))
        across, whole = jnp.stack([ex, ey], axis=1), jnp.eye(3, dtype=axis.dtype)
        none = jnp.zeros((3, 0), whole.dtype)
        moments = {"none": whole, "axis": across, "all": none}[self.turns]
        forces = {"none": whole, "axis": across, "plane": axis[:, None], "all": none}[self.slides]
        return jax.scipy.linalg.block_diag(moments, forces)

    def gap(self, axis: jax.Array, parameters: Sequence[jax.Array], E: jax.Array) -> jax.Array:
        """By how much a loop is open (6 - nv,) where T_before_after is `E`: its rate is T' V in a closed loop."""
        R, bearing = E[:3, :3], self.bearing(axis, parameters)
        if self.turns == "axis":
            rotation = _tilt(axis, R, bearing[:3, 0])
        else:
            rotation = jnp.zeros_like(axis) if self.turns == "all" else so3.log(R)
        return bearing.T @ jnp.concatenate([rotation, R.T @ E[:3, 3]])


def _constants(axis: np.ndarray) -> Vec3:
    def scalar(x: float) -> Scalar:
        return {0.0: ZERO, 1.0: ONE, -1.0: MINUS_ONE}.get(x, x)

    return Vec3(*(scalar(float(a)) for a in axis))


def _tilt(axis: jax.Array, R: jax.Array, across: jax.Array) -> jax.Array:
    """The rotation vector that takes the axis before the joint to that after it, in the frame after the joint."""
    turned = R.T @ axis
    s, c = jnp.cross(turned, axis), axis @ turned
    opposite = (s @ s == 0.0) & (c < 0.0)
    # The angle is 2 atan2(|s|, 1 + c); `angle_ratio` divides it by |s|.
    ratio = safe.angle_ratio(s @ s, jnp.where(opposite, 1.0, 1.0 + c))
    return jnp.where(opposite, jnp.pi * across, ratio * s)


def vanishes(q: np.ndarray) -> bool:
    """Whether the square of a vector underflows, so that it has no direction."""
    return bool(np.square(q).sum() < jnp.finfo(q.dtype).tiny)


# All joint types by name: those of this package, and what others register.
JOINT_TYPES: dict[str, JointType] = {}


def register(joint: JointType) -> None:
    """Adds a joint type, which builders, descriptions, models and loops then know by its name.

    Args:
        joint: The type.

    Raises:
        ModelError: Its name is no Python identifier, or taken.
    """
    if not joint.name.isidentifier() or joint.name in JOINT_TYPES:
        problem = "is taken" if joint.name in JOINT_TYPES else "is no Python identifier"
        raise ModelError(f"joint type {type(joint).__name__}: its name {joint.name!r} {problem}")
    JOINT_TYPES[joint.name] = joint
