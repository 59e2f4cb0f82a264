"""How other engines write the coordinates of a joint."""

from __future__ import annotations

from .._lazy import jax, jnp
from .groups import quaternions


class Layout:
    """The coordinates of a joint in another engine; here the same as in this library.

    Attributes:
        more: How many position coordinates the engine has more.
        order: The engine's order of the velocities, as indices of ours; empty for the same order.
    """

    more: int = 0
    order: tuple[int, ...] = ()

    def position(self, q: jax.Array, before: jax.Array) -> jax.Array:
        """The engine's position; `before` is T_parent_joint."""
        return q

    def position_from(self, x: jax.Array, before: jax.Array) -> jax.Array:
        """Our position from the engine's."""
        return x

    def velocity(self, q: jax.Array, before: jax.Array, v: jax.Array) -> jax.Array:
        """The engine's velocity (n, ...) from ours."""
        return v

    def drift(self, v: jax.Array) -> jax.Array:
        """What is added to our acceleration so that `velocity` maps it to the engine's."""
        return jnp.zeros_like(v)


class AngleOnCircle(Layout):
    """The last coordinate, an angle, as its cosine and sine."""

    more = 1

    def position(self, q: jax.Array, before: jax.Array) -> jax.Array:
        return jnp.concatenate([q[:-1], jnp.cos(q[-1:]), jnp.sin(q[-1:])])

    def position_from(self, x: jax.Array, before: jax.Array) -> jax.Array:
        return jnp.concatenate([x[:-2], jnp.arctan2(x[-1:], x[-2:-1])])


class QuaternionLast(Layout):
    """The quaternion as xyzw, after the translation if there is one; velocities are linear first."""

    def __init__(self, order: tuple[int, ...] = ()) -> None:
        self.order = order

    def position(self, q: jax.Array, before: jax.Array) -> jax.Array:
        return jnp.concatenate([q[4:], quaternions.xyzw_from_wxyz(quaternions.normalize(q[:4]))])

    def position_from(self, x: jax.Array, before: jax.Array) -> jax.Array:
        return jnp.concatenate([quaternions.wxyz_from_xyzw(x[-4:]), x[:-4]])


SAME = Layout()
