r"""Impulses of hard contacts and of dry friction in the joints, with exact Coulomb cones.

With the velocity $u = A\lambda + b$ of the rows, a contact with the unit normal n has
$0 \le \lambda_n \perp u_n - s \ge 0$ and $|\lambda_t| \le \mu\lambda_n$, $\lambda_t$ against $u_t$ where it slides;
a row of joint friction has $|\lambda| \le f$, with $\lambda$ against u where it slides [Moreau 1988; Stewart and
Trinkle 1996]: what sticks has no velocity, and what slides does not lift off. Projected Gauss-Seidel sweeps find what
sticks and what slides; where they are slow, Newton's method on the projected step ends the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..sweeps.plan import is_on_cpu
from ..xla.batch_last import in_lanes
from ..xla.control_flow import while_loop
from ..xla.fusion import kernel
from ..xla.loops import in_kernels
from ..xla.sharding import may_be_split

_NEWTON = 8  # steps at most, where the sweeps have not ended;
_FIRST = 1  # after so many of a batch,
_PART = 16  # so many of it are taken at a time
_SWEEPS = 30  # at most; what rests needs one, since they begin with the impulses of the step before
_NORMAL_COMPLIANCE = 1e-4  # of a contact along its normal, as a part of its own curvature there
_COMPLIANCE = 1e2  # of all rows, in units of rounding


class Rows(NamedTuple):
    """The problem: c contacts of three rows each, in world axes, then k rows of joint friction.

    Attributes:
        matrix: A, symmetric and not negative.
        bias: b, the velocity without impulses.
        normals: Of the contacts.
        speeds: s, the least normal velocity of each contact.
        frictions: mu of each contact.
        limits: f of each row of joint friction.
    """

    matrix: Float[Array, "m m"]
    bias: Float[Array, "m"]
    normals: Float[Array, "c 3"]
    speeds: Float[Array, "c"]
    frictions: Float[Array, "c"]
    limits: Float[Array, "k"]


def _tolerance(dtype: jnp.dtype) -> float:
    """Changes of impulses below this part of the largest one end the sweeps."""
    return float(jnp.finfo(dtype).eps) ** 0.7  # 1e-11 in float64, 1e-5 in float32


def _projected(
    moved: tuple[Array, ...], rate: tuple[Array, ...], rows: tuple[Array, ...]
) -> tuple[Array, Array, Array]:
    """The impulse of one contact after a step against its velocity, onto the cone at its new normal impulse."""
    nx, ny, nz, speed, friction, r_n, r_t = rows
    lx, ly, lz = moved
    ux, uy, uz = rate
    l_n, u_n = nx * lx + ny * ly + nz * lz, nx * ux + ny * uy + nz * uz
    raised = l_n - r_n * (u_n - speed)
    pressed = jnp.where(raised > 0.0, raised, 0.0)
    tx, ty, tz = (x - l_n * n - r_t * (u - u_n * n) for x, u, n in ((lx, ux, nx), (ly, uy, ny), (lz, uz, nz)))
    limit, square = friction * pressed, tx * tx + ty * ty + tz * tz
    sticks = square <= limit * limit  # not at a coefficient that is NaN
    ratio = jnp.where(sticks, 1.0, limit * lax.rsqrt(jnp.where(sticks, 1.0, square)))
    return pressed * nx + ratio * tx, pressed * ny + ratio * ty, pressed * nz + ratio * tz


def _steps(rows: Rows) -> tuple[Array, Array, Array]:
    """Step lengths along the normal and the tangents of contacts, and of single rows: one over their curvature."""
    c = rows.normals.shape[0]
    n = rows.normals
    blocks, along = _blocks(rows.matrix, n)
    pulled = jnp.sum(blocks * n[:, None, :], axis=2)
    across = jnp.trace(blocks, axis1=1, axis2=2) - along
    # The tangential block B has trace t; its largest curvature is (t + sqrt(2 |B|^2 - t^2)) / 2.
    tangential = (
        blocks
        - pulled[:, :, None] * n[:, None, :]
        - n[:, :, None] * pulled[:, None, :]
        + along[:, None, None] * n[:, :, None] * n[:, None, :]
    )
    spread = 2.0 * jnp.sum(tangential**2, axis=(1, 2)) - across**2
    split = spread > 1e-12 * across**2
    root = jnp.where(split, jnp.sqrt(jnp.where(split, spread, 1.0)), 0.0)
    return _inverse(along), _inverse(0.5 * (across + root)), _inverse(jnp.diagonal(rows.matrix)[3 * c :])


def _blocks(A: Array, n: Array) -> tuple[Array, Array]:
    """The block of each contact, and its curvature along the normal."""
    c = n.shape[0]
    blocks = (
        jnp.stack([A[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(c)]) if c else jnp.zeros((0, 3, 3), A.dtype)
    )
    return blocks, jnp.sum(n[:, :, None] * blocks * n[:, None, :], axis=(1, 2))


def _inverse(x: Array) -> Array:
    return jnp.where(x > 0.0, 1.0 / jnp.where(x > 0.0, x, 1.0), 0.0)


def _singly(x: Array, u: Array, limit: Array, r: Array) -> Array:
    """The impulses of single rows after a step against their velocities, within their limits."""
    moved = x - r * u
    return jnp.where(jnp.abs(moved) <= limit, moved, jnp.sign(moved) * limit)


def residual(x: Array, rows: Rows) -> Array:
    """x less its projected step: zero at the impulses."""
    return x - _stepped(x, rows.matrix @ x + rows.bias, rows)


def _stepped(x: Array, u: Array, rows: Rows) -> Array:
    c = rows.normals.shape[0]
    r_n, r_t, r = _steps(rows)
    n, impulse, rate = rows.normals.T, x[: 3 * c].reshape(c, 3).T, u[: 3 * c].reshape(c, 3).T
    numbers = (n[0], n[1], n[2], rows.speeds, rows.frictions, r_n, r_t)
    after = _projected((*impulse,), (*rate,), numbers)
    return jnp.concatenate([jnp.stack(after, axis=1).reshape(-1), _singly(x[3 * c :], u[3 * c :], rows.limits, r)])


def _jacobian(x: Array, rows: Rows) -> Array:
    """The derivative of `residual` by x: the step of each contact depends on its own impulse and velocity alone."""
    c, m = rows.normals.shape[0], x.shape[0]
    u = rows.matrix @ x + rows.bias
    own = np.arange(m) // 3 if m == 3 * c else np.concatenate([np.arange(3 * c) // 3, c + np.arange(m - 3 * c)])
    axis = np.concatenate([np.arange(3 * c) % 3, np.zeros(m - 3 * c, int)])
    seeds = jnp.asarray(axis[None] == np.arange(3 if c else 1)[:, None], x.dtype)  # one axis of every contact at a time

    def by(f: Callable[[Array], Array], at: Array) -> Array:
        columns = jax.vmap(lambda d: jax.jvp(f, (at,), (d,))[1])(seeds)
        return jnp.where(own[:, None] == own[None], columns[axis].T, 0.0)

    by_x, by_u = by(lambda x: _stepped(x, u, rows), x), by(lambda u: _stepped(x, u, rows), u)
    return jnp.eye(m, dtype=x.dtype) - by_x - by_u @ rows.matrix


def _sweep(x: list[Array], A: Array, b: Array, numbers: Array, singles: Array) -> list[Array]:
    """One pass over all rows; scalars of all lanes, in one loop for each contact."""
    x, c = list(x), numbers.shape[0]

    def velocity(x: list[Array], A: Array, b: Array) -> Array:
        return sum((A[j] * y for j, y in enumerate(x)), b)

    def touched(x: list[Array], own: list[Array], A: Array, b: Array, row: Array) -> tuple[Array, ...]:
        rate = tuple(velocity(x, A[k], b[k]) for k in range(3))
        return _projected((*own,), rate, tuple(row[k] for k in range(7)))

    def rubbed(x: list[Array], own: Array, A: Array, b: Array, row: Array) -> Array:
        return _singly(own, velocity(x, A, b), row[0], row[1])

    for k in range(c):
        i = slice(3 * k, 3 * k + 3)
        x[i] = kernel(touched)(x, x[i], A[i], b[i], numbers[k])
    for k in range(singles.shape[0]):
        i = 3 * c + k
        x[i] = kernel(rubbed)(x, x[i], A[i], b[i], singles[k])
    return x


@in_lanes
def _swept(A: Array, b: Array, numbers: Array, singles: Array, start: Array) -> Array:
    """Sweeps until no impulse changes any more."""
    tolerance = _tolerance(A.dtype)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        count, _, change = state
        return (count < _SWEEPS) & jnp.any(change > tolerance)

    def swept(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, x, _ = state
        after = jnp.stack(_sweep([x[i] for i in range(x.shape[0])], A, b, numbers, singles))
        size = jnp.max(jnp.abs(after), axis=0)
        change = jnp.max(jnp.abs(after - x), axis=0) / jnp.where(size > 0.0, size, 1.0)
        return in_kernels(count, change.size) + 1, after, change

    begin = jnp.int32(0), start, jnp.full(start.shape[1:], jnp.inf, start.dtype)
    return while_loop(unfinished, swept, begin)[1]


class _Iterate(NamedTuple):
    """Newton's method: its steps, the impulses, and the best so far with its residual."""

    count: Array
    x: Array
    best: Array
    error: Array

    def unfinished(self, most: int) -> Array:
        return (self.count < most) & (self.error > _tolerance(self.x.dtype) * _size(self.best))


def _size(x: Array) -> Array:
    return jnp.max(jnp.abs(x), initial=0.0)


def _begun(rows: Rows, x: Array) -> _Iterate:
    return _Iterate(jnp.int32(0), x, x, _size(residual(x, rows)))


def _iterated(rows: Rows, start: _Iterate, most: int) -> _Iterate:
    """After so many steps at most."""

    def newton(s: _Iterate) -> _Iterate:
        x = s.x - jnp.linalg.solve(_jacobian(s.x, rows), residual(s.x, rows))  # not always nearer at first
        left = _size(residual(x, rows))
        better = left < s.error
        return _Iterate(s.count + 1, x, jnp.where(better, x, s.best), jnp.where(better, left, s.error))

    return while_loop(lambda s: s.unfinished(most), newton, start)


@jax.custom_batching.custom_vmap
def _polished(rows: Rows, x: Float[Array, "m"]) -> Float[Array, "m"]:
    """The best of Newton's method.

    On a CPU, of a batch those few that take many steps are computed some at a time, while the others wait.
    """
    return _iterated(rows, _begun(rows, x), _NEWTON).best


@_polished.def_vmap
def _(size: Any, batched: list[Any], rows: Rows, x: Array) -> tuple[Array, bool]:
    given = jax.tree.map(
        lambda y, is_batched: y if is_batched else jnp.broadcast_to(y[None], (size, *y.shape)), (rows, x), (*batched,)
    )
    rows, start = given[0], jax.vmap(_begun)(*given)
    if not is_on_cpu() or may_be_split() or not isinstance(size, int) or size <= _PART:
        return jax.vmap(lambda rows, start: _iterated(rows, start, _NEWTON))(rows, start).best, True
    every = jax.vmap(lambda rows, start: _iterated(rows, start, _FIRST))(rows, start)
    left = jax.vmap(lambda s: s.unfinished(_NEWTON))(every)
    order, count = jnp.argsort(~left).astype(jnp.int32), jnp.sum(left, dtype=jnp.int32)
    order = jnp.pad(order, (0, _PART))  # the last part may have others too

    def part(state: tuple[Array, Array]) -> tuple[Array, Array]:
        k, best = state
        at = lax.dynamic_slice_in_dim(order, k, _PART)
        chosen = jax.tree.map(lambda y: y[at], (rows, every))
        found = jax.vmap(lambda rows, start: _iterated(rows, start, _NEWTON))(*chosen)
        return k + _PART, best.at[at].set(found.best)

    return while_loop(lambda s: s[0] < count, part, (jnp.int32(0), every.best))[1], True


@jax.custom_jvp
def solve_impulses(rows: Rows, start: Float[Array, "m"]) -> Float[Array, "m"]:
    """The impulses, from those of the step before.

    Derivatives are those of the exact solution, by the implicit function theorem on `residual`.
    """
    r_n, r_t, r = _steps(rows)
    numbers = jnp.concatenate([rows.normals, jnp.stack([rows.speeds, rows.frictions, r_n, r_t], axis=1)], axis=1)
    singles = jnp.stack([rows.limits, r], axis=1)
    best = _polished(rows, _swept(rows.matrix, rows.bias, numbers, singles, start))
    return best - residual(best, rows)  # within the cones, whatever is left


@solve_impulses.defjvp
def _solve_jvp(primals: tuple[Rows, Array], tangents: tuple[Rows, Array]) -> tuple[Array, Array]:
    rows, start = primals
    x = solve_impulses(rows, start)
    changed = jax.jvp(lambda rows: residual(x, rows), (rows,), (tangents[0],))[1]
    return x, -jnp.linalg.solve(_jacobian(x, rows), changed)


def softened(A: Array, normals: Array, scales: Array) -> Array:
    """A with a compliance that makes impulses of redundant rows unique, and with them the friction that they allow.

    That of a contact along its normal is in proportion to its own curvature there, whatever other rows there are. A
    body that rests by its weight sinks by 5e-4 g dt^2, 0.1 um at steps of 5 ms, where the recovery from penetration
    holds it. What sticks has a compliance next to rounding.

    Args:
        A: The matrix of the rows.
        normals: Of the contacts.
        scales: The diagonal of A without loops: loops can make that of A zero to rounding.
    """
    c, eps = normals.shape[0], float(jnp.finfo(A.dtype).eps)
    sizes = jnp.max(scales[: 3 * c].reshape(c, 3), axis=1)
    along = _blocks(A, normals)[1] + _NORMAL_COMPLIANCE * sizes  # a slide along the surface does not move the normal
    soft = _NORMAL_COMPLIANCE * (along[:, None] * normals).reshape(-1)
    own = jnp.where(np.kron(np.eye(c, dtype=bool), np.ones((3, 3), bool)), jnp.outer(soft, normals.reshape(-1)), 0.0)
    every = jnp.concatenate([jnp.repeat(sizes, 3), scales[3 * c :]])
    return A + _COMPLIANCE * eps * jnp.diag(every) + jnp.pad(own, (0, A.shape[0] - 3 * c))
