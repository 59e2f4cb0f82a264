"""The quadratic program of whole-body inverse dynamics: variables eliminated, level after level solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._errors import ArgumentError
from ..model.model import Model
from ..sweeps.block_matrix import inverse_by_blocks
from ..xla.tiling import tiled
from ..xla.tuning import PROGRAM_TILE
from ._elimination import solutions
from ._quadratic import Program, solve
from ._state import State
from .contacts import ContactModel
from .tasks import Rows, Task

_UNIT = 10.0  # accelerations, and forces by mass [m/s^2], that count as one


class Equations(NamedTuple):
    """M a + c = tau + K^T f and K a = -k, f the forces of contacts and, with the other sign, multipliers of loops.

    Attributes:
        sure: The rows of K that are independent in general.
    """

    M: Float[Array, "n n"]
    c: Float[Array, "n"]
    K: Float[Array, "e n"]
    k: Float[Array, "e"]
    sure: np.ndarray


class Problem(NamedTuple):
    """All that the program is made of."""

    state: State
    tasks: Sequence[Task]
    contacts: Sequence[ContactModel]
    equations: Equations
    driven: np.ndarray
    horizon: Float[Array, ""] | None
    damping: Float[Array, ""]


class Affine(NamedTuple):
    """offset + matrix @ z."""

    offset: Float[Array, "k"]
    matrix: Float[Array, "k f"]

    def at(self, z: Array) -> Array:
        """The value for z."""
        return self.offset + self.matrix @ z

    def of(self, inner: Affine) -> Affine:
        """The same as a function of the variables of `inner`."""
        return Affine(self.at(inner.offset), _product(self.matrix, inner.matrix))


class Optimum(NamedTuple):
    """The best accelerations and forces, and what is known of them."""

    a: Float[Array, "n"]
    tau: Float[Array, "n"]
    forces: Float[Array, "e"]
    errors: tuple[Array, ...]
    optimal: Bool[Array, ""]
    infeasible: Bool[Array, ""]
    regular: Bool[Array, ""]
    finite: Bool[Array, ""]
    iterations: Int[Array, ""]


def _product(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")


def optimum(problem: Problem) -> Optimum:
    """The optimum: of the first level, then of the next one among what is as good for the first, and so on."""
    space = _space(problem)
    a, forces, tau = space.a, space.forces, space.tau
    limits, lower, upper = _limits(problem, space)
    rows = [task.rows(problem.state, problem.driven) for task in problem.tasks]
    levels = sorted({task.priority for task in problem.tasks})
    n, dtype = space.y.matrix.shape[1], problem.damping.dtype
    inner = Affine(jnp.zeros(n, dtype), jnp.eye(n, dtype=dtype))  # what is left to a level
    optimal, infeasible, count = space.consistent, ~space.consistent, jnp.zeros((), jnp.int32)
    for level in levels:
        chosen = [r for r, task in zip(rows, problem.tasks, strict=True) if task.priority == level]
        error, weight = _errors(chosen, problem, space)
        error = error.of(inner)
        found = tiled(solve, tile=PROGRAM_TILE)(
            _program(error, weight, space.y.of(inner), limits.of(inner), lower, upper, problem.damping)
        )
        z = inner.at(found.point.x)
        optimal, infeasible, count = optimal & found.optimal, infeasible | found.infeasible, count + found.iterations
        if level != levels[-1]:
            inner = Affine(z, _product(inner.matrix, _null_space(jnp.where(weight[:, None] > 0.0, error.matrix, 0.0))))
    result = a.at(z), forces.at(z), tau.at(z)
    motors = jnp.zeros_like(problem.equations.c).at[problem.driven].set(result[2])
    errors = tuple(_applied(r, problem, *result) - r.wanted for r in rows)
    wanted, weights = (jnp.concatenate(x) for x in zip(*((r.wanted, r.weight) for r in rows), strict=True))
    finite = jnp.stack([jnp.isfinite(x).all() for x in (limits.matrix, limits.offset, wanted, weights)]).all()
    finite &= ~(jnp.isnan(lower) | jnp.isnan(upper)).any() & (weights >= 0.0).all()
    return Optimum(
        result[0], motors, result[1], errors, optimal & ~infeasible, infeasible, space.regular, finite, count
    )


class _Space(NamedTuple):
    """All motions and forces that satisfy the equations, by the variables that are left.

    Attributes:
        y: Accelerations of the joints with motors and forces, in units of `_UNIT`, whose squares the damping weighs.
        tau: Of the joints with motors.
    """

    y: Affine
    a: Affine
    forces: Affine
    tau: Affine
    consistent: Bool[Array, ""]
    regular: Bool[Array, ""]


def _space(problem: Problem) -> _Space:
    M, c, K, k, sure = problem.equations
    nv = len(c)
    passive = np.setdiff1d(np.arange(nv), problem.driven)
    with_motor, without = _index(problem.driven), _index(passive)
    unit = _UNIT * problem.state.mass  # of forces
    push = K.T * unit
    # Accelerations by y: those of the joints without motors follow from the others.
    block = inverse_by_blocks(M[without][:, without]) if len(passive) else jnp.zeros((0, 0), M.dtype)
    follow = -_product(block, jnp.concatenate([M[without][:, with_motor] * _UNIT, -push[without]], axis=1))
    own = jnp.eye(len(problem.driven), follow.shape[1], dtype=M.dtype) * _UNIT
    order = np.argsort(np.concatenate([passive, problem.driven]))
    offset = jnp.concatenate([-(block @ c[without]), jnp.zeros(len(problem.driven), M.dtype)])
    a = Affine(_permuted(offset, order), _permuted(jnp.concatenate([follow, own]), order))
    if not follow.shape[1]:
        raise ArgumentError("there must be a joint with a motor, a contact or a loop, or nothing can be chosen")
    if sure.sum() == follow.shape[1]:
        sure = np.append(sure[:-1], False)  # a program has at least one variable
    found = solutions(_product(K, a.matrix), -k - K @ a.offset, sure)
    y = Affine(found.offset, found.basis)
    a = a.of(y)
    pushed = Affine(y.offset[len(problem.driven) :], y.matrix[len(problem.driven) :])
    M_motor, push_motor = M[with_motor], push[with_motor]
    tau = Affine(
        M_motor @ a.offset + c[with_motor] - push_motor @ pushed.offset,
        _product(M_motor, a.matrix) - _product(push_motor, pushed.matrix),
    )
    forces = Affine(unit * pushed.offset, unit * pushed.matrix)
    return _Space(y, a, forces, tau, found.consistent, found.regular)


def _index(of: np.ndarray) -> np.ndarray | slice:
    """An index, as a slice where it is one: XLA's gathers are slow."""
    return slice(int(of[0]), int(of[-1]) + 1) if len(of) and (np.diff(of) == 1).all() else of


def _permuted(x: Array, order: np.ndarray) -> Array:
    return x if (order == np.arange(len(order))).all() else x[order]


def _limits(problem: Problem, space: _Space) -> tuple[Affine, Array, Array]:
    """The rows that are limited, and their limits."""
    model, v = problem.state.model, problem.state.v
    dtype = v.dtype
    effort = model.effort_limit[_index(problem.driven)]
    rows, lower, upper = [space.tau], [-effort], [effort]
    if problem.horizon is not None:
        at, low, high = _accelerations(model, problem.state.q, v, problem.horizon)
        index = _index(at)
        rows.append(Affine(space.a.offset[index], space.a.matrix[index]))
        lower.append(low)
        upper.append(high)
    at = 0
    for contact in problem.contacts:
        own = Affine(space.forces.offset[at : at + contact.size], space.forces.matrix[at : at + contact.size])
        at += contact.size
        F = contact.faces().astype(dtype)
        rows += [Affine(F @ own.offset, _product(F, own.matrix)), Affine(own.offset[-1:], own.matrix[-1:])]
        lower += [jnp.full(len(F), -jnp.inf, dtype), jnp.asarray(contact.least)[None]]
        upper += [jnp.zeros(len(F), dtype), jnp.asarray(contact.most)[None]]
    all_rows = Affine(jnp.concatenate([r.offset for r in rows]), jnp.concatenate([r.matrix for r in rows]))
    return all_rows, jnp.concatenate(lower), jnp.concatenate(upper)


def _accelerations(model: Model, q: Array, v: Array, T: Array) -> tuple[np.ndarray, Array, Array]:
    """The velocities of joints of one coordinate, and the limits of their accelerations."""
    tree = model.tree
    joints = [i for i, joint in enumerate(tree.joints) if joint.scalar and tree.mimics[i] is None]
    at_v, at_q = (np.array([s[i].start for i in joints], int) for s in (tree.v_slices, tree.q_slices))
    x, rate = q[_index(at_q)], v[_index(at_v)]
    position_lower, position_upper = model.position_lower[_index(at_q)], model.position_upper[_index(at_q)]
    most, fastest = model.acceleration_limit[_index(at_v)], model.velocity_limit[_index(at_v)]
    ahead = x + rate * T
    lower = jnp.maximum(-most, _moved(-fastest, -rate, 1.0 / T))
    upper = jnp.minimum(most, _moved(fastest, -rate, 1.0 / T))
    lower = jnp.maximum(lower, _moved(position_lower, -ahead, 2.0 / (T * T)))
    upper = jnp.minimum(upper, _moved(position_upper, -ahead, 2.0 / (T * T)))
    return at_v, lower, upper


def _moved(limit: Array, by: Array, scale: Array) -> Array:
    """(limit + by) scale; an infinite limit stays as it is, with derivatives of zero."""
    finite = jnp.isfinite(limit)
    return jnp.where(finite, (jnp.where(finite, limit, 0.0) + by) * scale, limit)


def _errors(rows: Sequence[Rows], problem: Problem, space: _Space) -> tuple[Affine, Array]:
    """What tasks have minus what they want, and the weights."""
    offset = [_applied(r, problem, space.a.offset, space.forces.offset, space.tau.offset) - r.wanted for r in rows]
    matrix = [_applied(r, problem, space.a.matrix, space.forces.matrix, space.tau.matrix) for r in rows]
    return Affine(jnp.concatenate(offset), jnp.concatenate(matrix)), jnp.concatenate([r.weight for r in rows])


def _applied(rows: Rows, problem: Problem, a: Array, forces: Array, tau: Array) -> Array:
    """J x of a task, x being a column or a matrix."""
    if isinstance(rows.of, int):
        at = sum(contact.size for contact in problem.contacts[: rows.of])
        x = forces[at : at + problem.contacts[rows.of].size]
    else:
        x = {"acceleration": a, "effort": tau}[rows.of]
    return x if rows.matrix is None else _product(rows.matrix, x)


def _null_space(matrix: Float[Array, "k n"]) -> Float[Array, "n n"]:
    """Orthonormal columns that the rows do not see; other columns are zero."""
    k, n = matrix.shape
    rows = matrix if k <= n else _product(matrix.T, matrix)
    return solutions(rows, jnp.zeros(len(rows), matrix.dtype), np.zeros(len(rows), bool)).basis


def _program(
    error: Affine, weight: Array, y: Affine, limits: Affine, lower: Array, upper: Array, damping: Array
) -> Program:
    """The program of one level, its rows of length one, its objective of the order of one."""
    mu = damping * _UNIT * _UNIT
    weighted = error.matrix * weight[:, None]
    P = _product(weighted.T, error.matrix) + mu * jnp.eye(y.matrix.shape[1], dtype=mu.dtype)
    c = weighted.T @ error.offset + mu * (y.matrix.T @ y.offset)
    size = jnp.maximum(jnp.max(jnp.diagonal(P)), jnp.max(jnp.abs(c)))
    square = jnp.sum(limits.matrix * limits.matrix, axis=1)
    length = jnp.where(square > 0.0, jnp.sqrt(jnp.where(square > 0.0, square, 1.0)), 1.0)
    F = limits.matrix / length[:, None]
    low, high = (_moved(x, -limits.offset, 1.0 / length) for x in (lower, upper))
    return Program(P / size, c / size, F, low, high)
