"""The search behind `solve_ik`: damped least squares from many starts, in a fixed number of lanes that share the work.

A lane works on one start of one problem. When it is done, it takes the next start of an unsolved problem, so that hard
problems get more starts without blocking easy ones.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from ..algorithms.jacobians import jacobian
from ..algorithms.kinematics import link_pose
from ..model.configuration import clamp, integrate, random_configuration
from ..model.model import Model
from ..spatial import so3
from ..spatial._small import matmul
from ..spatial.safe import safe_norm
from ..sweeps.block_matrix import inverse_by_blocks

LANES = 256  # on a CPU the arrays of this many stay in the cache of a core
_STEPS = 4  # of a lane between two checks of its progress
_CHOICE = 16  # random configurations, of which the one nearest to the target is a start
_SLOW = 0.5  # a lane whose squared error falls less than by this factor in `_STEPS` steps gives up
_DAMPING = 1e-2  # per squared error [rad^2], as of Sugihara 2011
_LEAST_DAMPING = 0.1  # times the root of the machine epsilon: what a singular matrix needs
_LONGEST_STEP = 1.0  # rad or m of one joint

product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


class Setup(NamedTuple):
    """Static data: hashable."""

    links: tuple[int, ...]
    ref: int | None
    joints: tuple[int, ...]
    attempts: int
    iterations: int
    from_q0: bool


class Problem(eqx.Module):
    """The data shared by all problems of a batch.

    Args:
        model: The robot.
        tolerance: Of position [m] and of orientation [rad].
        length: How many metres of error count as much as one radian.
        setup: Static data.
    """

    model: Model
    tolerance: Float[Array, "2"]
    length: Float[Array, ""]
    setup: Setup = eqx.field(static=True)

    @property
    def velocities(self) -> np.ndarray:
        """Indices into v of the joints that may move."""
        return np.concatenate([np.r_[self.model.tree.v_slices[i]] for i in self.setup.joints])

    @property
    def moving(self) -> np.ndarray:
        """For each coordinate of q, whether its joint may move."""
        mask = np.zeros(self.model.nq, bool)
        for i in self.setup.joints:
            mask[self.model.tree.q_slices[i]] = True
        return mask

    def poses(self, q: Float[Array, "nq"]) -> Float[Array, "k 4 4"]:
        """Poses of the links that have targets."""
        return jnp.stack([link_pose(self.model, q, k, self.setup.ref) for k in self.setup.links])

    def jacobian(self, q: Float[Array, "nq"]) -> Float[Array, "k 6 m"]:
        """Their Jacobians with respect to the joints that may move, lengths measured in `length`."""
        rows = [jacobian(self.model, q, k, ref=self.setup.ref) for k in self.setup.links]
        unit = jnp.concatenate([jnp.ones(3, q.dtype), jnp.full(3, 1.0 / self.length, q.dtype)])
        return jnp.stack(rows)[:, :, self.velocities] * unit[None, :, None]

    def error(self, q: Float[Array, "nq"], target: Float[Array, "k 4 4"]) -> Float[Array, "k 6"]:
        """Rotation vectors [rad] and distances [`length`] that lead from the poses to the targets."""
        pose = self.poses(q)
        turn = jax.vmap(lambda T, G: so3.log(matmul(G[:3, :3], T[:3, :3].T)))(pose, target)
        return jnp.concatenate([turn, (target[:, :3, 3] - pose[:, :3, 3]) / self.length], axis=1)

    def size(self, error: Float[Array, "k 6"]) -> Float[Array, "2"]:
        """The largest distance [m] and angle [rad] of an error."""
        distance, angle = safe_norm(error[:, 3:]).max(), safe_norm(error[:, :3]).max()
        return jnp.stack([distance * self.length, angle])

    def blocked(self, q: Float[Array, "nq"], push: Float[Array, "m"] | float) -> Bool[Array, "m"]:
        """Which of the moving joints are at a limit and pushed against it."""
        tree, infinite = self.model.tree, jnp.full(1, jnp.inf, q.dtype)
        single = {tree.v_slices[i].start: tree.q_slices[i].start for i in self.setup.joints if tree.joints[i].nq == 1}
        at = np.array([single.get(v, self.model.nq) for v in self.velocities.tolist()])
        below = jnp.concatenate([q - self.model.position_lower, infinite])[at]
        above = jnp.concatenate([self.model.position_upper - q, infinite])[at]
        return ((above <= 0) & (push > 0)) | ((below <= 0) & (push < 0))

    def move(self, q: Float[Array, "nq"], step: Float[Array, "m"]) -> Float[Array, "nq"]:
        """The configuration after a step, within the limits."""
        dv = jnp.zeros(self.model.nv, q.dtype).at[self.velocities].set(step, unique_indices=True)
        return jnp.where(self.moving, clamp(self.model, integrate(self.model, q, dv)), q)

    def improved(self, q: Float[Array, "nq"], target: Float[Array, "k 4 4"]) -> Float[Array, "nq"]:
        r"""One step of damped least squares, $J^T (J J^T + \lambda I)^{-1} e$ with $\lambda \propto |e|^2$."""
        e, J = self.error(q, target).reshape(-1), self.jacobian(q).reshape(-1, len(self.velocities))
        J = jnp.where(self.blocked(q, jnp.sum(J * e[:, None], axis=0))[None, :], 0.0, J)
        damping = _DAMPING * jnp.sum(e * e) + _LEAST_DAMPING * np.sqrt(jnp.finfo(e.dtype).eps)
        inverse = inverse_by_blocks(product(J, J.T) + damping * jnp.eye(e.size, dtype=e.dtype))
        step = product(J.T, product(inverse, e))
        return self.move(q, step * jnp.minimum(1.0, _LONGEST_STEP / jnp.maximum(jnp.abs(step).max(), 1e-30)))


class Found(NamedTuple):
    """The best of each problem; `merit` is its squared error, and 0 once it is solved."""

    merit: Float[Array, "n"]
    q: Float[Array, "n nq"]
    attempts: Int[Array, "n"]
    iterations: Int[Array, "n"]


class _Lanes(NamedTuple):
    """`problem` is n where a lane has none."""

    problem: Int[Array, "p"]
    attempt: Int[Array, "p"]
    q: Float[Array, "p nq"]
    merit: Float[Array, "p"]
    steps: Int[Array, "p"]


class _Queue(NamedTuple):
    """The problems from `cursor` on, and then all of them again, are to be started for the `sweep`-th time."""

    sweep: Int[Array, ""]
    cursor: Int[Array, ""]


class _Starts(eqx.Module):
    """Random configurations, and for each problem and attempt the index of the one to start from."""

    seeds: Float[Array, "s nq"]
    chosen: Int[Array, "n a"]


def search(problem: Problem, target: Float[Array, "n k 4 4"], q0: Float[Array, "n nq"], key: PRNGKeyArray) -> Found:
    """Solves a batch of problems."""
    n, attempts = len(target), problem.setup.attempts
    lanes = min(LANES, max(8, n), n * attempts)
    problem, starts = _prepare(problem, target, q0, key)
    usable = jnp.isfinite(target).all(axis=(1, 2, 3)) & jnp.isfinite(q0).all(axis=1)
    none, zero = jnp.full(lanes, n), jnp.zeros(lanes, int)
    state = (
        _Lanes(none, zero, jnp.zeros((lanes, q0.shape[1]), q0.dtype), jnp.zeros(lanes, q0.dtype), zero),
        Found(jnp.where(usable, jnp.inf, 0.0).astype(q0.dtype), q0, jnp.zeros(n, int), jnp.zeros(n, int)),
        _Queue(jnp.zeros((), int), jnp.zeros((), int)),
    )

    def unfinished(state: tuple[_Lanes, Found, _Queue]) -> Array:
        lanes, found, queue = state
        return (found.merit > 0).any() & ((lanes.problem < n).any() | (queue.sweep < attempts))

    def advance(state: tuple[_Lanes, Found, _Queue]) -> tuple[_Lanes, Found, _Queue]:
        lanes, queue = _refill(problem, starts, q0, *state)
        own = target[jnp.minimum(lanes.problem, n - 1)]
        q, error = jax.vmap(_pursue, in_axes=(None, 0, 0))(problem, lanes.q, own)
        lanes, found = _collect(problem, lanes, q, error, state[1])
        return lanes, found, queue

    return jax.lax.while_loop(unfinished, advance, state)[1]


def _prepare(problem: Problem, target: Array, q0: Array, key: PRNGKeyArray) -> tuple[Problem, _Starts]:
    """The scale of lengths, and starts that are near to the targets."""
    model, attempts = problem.model, problem.setup.attempts
    seeds = jax.vmap(random_configuration, in_axes=(None, 0))(model, jax.random.split(key, attempts * _CHOICE))
    seeds = jnp.where(problem.moving[None], seeds.astype(q0.dtype), q0[:1])
    poses = jax.vmap(problem.poses)(seeds)
    spread = jnp.sqrt(jnp.mean(jnp.var(poses[:, :, :3, 3], axis=0).sum(axis=-1)))
    problem = eqx.tree_at(lambda p: p.length, problem, jnp.where(spread > 0, spread, 1.0).astype(q0.dtype))

    def features(T: Array) -> Array:
        R, p = T[..., :3, :3] / np.sqrt(2.0), T[..., :3, 3] / problem.length
        return jnp.concatenate([R.reshape(len(T), -1), p.reshape(len(T), -1)], axis=1)

    own, wanted = features(poses), features(target)
    distance = jnp.sum(own * own, axis=1)[None] - 2.0 * wanted @ own.T
    nearest = jnp.argmin(distance.reshape(len(target), attempts, _CHOICE), axis=2)
    return problem, _Starts(seeds, nearest + _CHOICE * jnp.arange(attempts)[None])


def _refill(
    problem: Problem, starts: _Starts, q0: Array, lanes: _Lanes, found: Found, queue: _Queue
) -> tuple[_Lanes, _Queue]:
    """Gives the lanes that are free the next starts of unsolved problems."""
    n, attempts = starts.chosen.shape
    unsolved = found.merit > 0
    count = jnp.maximum(unsolved.sum(), 1)
    order = jnp.nonzero(unsolved, size=n, fill_value=0)[0]
    free = lanes.problem == n
    first = jnp.sum(unsolved & (jnp.arange(n) < queue.cursor))
    place = first + jnp.cumsum(free) - 1
    attempt, which = queue.sweep + place // count, order[place % count]
    takes = free & (attempt < attempts)
    start = starts.seeds[starts.chosen[which, jnp.minimum(attempt, attempts - 1)]]
    start = jnp.where(problem.moving[None], start, q0[which])
    if problem.setup.from_q0:
        start = jnp.where((attempt == 0)[:, None], q0[which], start)
    last = first + free.sum()
    lanes = _Lanes(
        jnp.where(takes, which, lanes.problem),
        jnp.where(takes, attempt, lanes.attempt),
        jnp.where(takes[:, None], start, lanes.q),
        jnp.where(takes, jnp.inf, lanes.merit),
        jnp.where(takes, 0, lanes.steps),
    )
    return lanes, _Queue(queue.sweep + last // count, order[last % count])


def _pursue(problem: Problem, q: Array, target: Array) -> tuple[Array, Array]:
    """The configuration some steps later, and its error."""
    q = jax.lax.fori_loop(0, _STEPS, lambda _, q: problem.improved(q, target), q)
    return q, problem.error(q, target)


def _collect(problem: Problem, lanes: _Lanes, q: Array, error: Array, found: Found) -> tuple[_Lanes, Found]:
    """Takes over what is better than what was found, and frees the lanes that are done."""
    n, p = len(found.merit), len(lanes.problem)
    active, steps = lanes.problem < n, lanes.steps + _STEPS
    reached = active & (jax.vmap(problem.size)(error) <= problem.tolerance[None]).all(axis=1)
    merit = jnp.where(reached, 0.0, jnp.sum(error * error, axis=(1, 2)))
    hopeless = (steps >= problem.setup.iterations) | ~(merit < _SLOW * lanes.merit)
    known = jnp.concatenate([found.merit, jnp.zeros(1, merit.dtype)])
    candidate = jnp.where(active & (merit < known[lanes.problem]), merit, jnp.inf)
    best = known.at[lanes.problem].min(candidate)
    holder = (
        jnp.full(n + 1, -1)
        .at[lanes.problem]
        .max(jnp.where(jnp.isfinite(candidate) & (candidate == best[lanes.problem]), jnp.arange(p), -1))
    )
    taken = jnp.where(holder[lanes.problem] == jnp.arange(p), lanes.problem, n)
    found = Found(
        best[:n],
        found.q.at[taken].set(q, mode="drop"),
        found.attempts.at[taken].set(lanes.attempt + 1, mode="drop"),
        found.iterations.at[taken].set(steps, mode="drop"),
    )
    done = reached | hopeless | (best[lanes.problem] == 0)
    return _Lanes(jnp.where(done, n, lanes.problem), lanes.attempt, q, merit, steps), found
