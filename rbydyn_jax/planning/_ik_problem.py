"""What a search for configurations works on: the error of poses, and a step that makes it smaller."""

from __future__ import annotations

import abc
from functools import partial
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..algorithms.jacobians import pose_and_jacobian
from ..algorithms.kinematics import link_pose
from ..model.configuration import clamp, integrate
from ..model.model import Model
from ..spatial import so3
from ..spatial._small import matmul
from ..spatial.safe import safe_norm
from ..sweeps.block_matrix import inverse_by_blocks
from ..sweeps.plan import in_one_kernel
from ..xla.control_flow import fori_loop

_DAMPING = 1e-2  # per squared error [rad^2], as of Sugihara 2011
_LEAST_DAMPING = 0.1  # times the root of the machine epsilon: what a singular matrix needs
_LONGEST_STEP = 1.0  # rad or m of one joint

product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


class Setup(NamedTuple):
    """Static data: hashable."""

    joints: tuple[int, ...]
    attempts: int
    iterations: int
    from_q0: bool


class Judgement(NamedTuple):
    """What is known of a configuration.

    Attributes:
        error: Squared error; where the goals are reached, what is lacking of the clearance.
        reached: Whether it is a solution.
        distance: The smallest distance [m]; None where there is no clearance to be kept.
    """

    error: Float[Array, "*n"]
    reached: Bool[Array, "*n"]
    distance: Float[Array, "*n"] | None


class Near(NamedTuple):
    """The smallest distance of each kind [m], and the gradients of their smooth minima by the joints that may move."""

    distances: Float[Array, "r"]
    gradients: Float[Array, "r m"]


class Pursued(NamedTuple):
    """A configuration, what is known of it, and the one a step after it."""

    q: Float[Array, "*n nq"]
    known: Judgement
    following: Float[Array, "*n nq"]


class Problem(eqx.Module):
    """The data shared by all problems of a batch. What differs between them is an argument: `target`, a pytree.

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

    @abc.abstractmethod
    def deviation(self, q: Float[Array, "nq"], target: Any) -> Float[Array, "2"]:
        """The largest distance [m] and angle [rad] from what is to be reached."""

    @abc.abstractmethod
    def judged(self, q: Float[Array, "nq"], target: Any, error: Float[Array, "e"], near: Near | None) -> Judgement:
        """How far a configuration is from a solution, given its error and what it is near to."""

    @abc.abstractmethod
    def ranked(self, seeds: Float[Array, "s nq"], target: Any) -> tuple[Problem, Float[Array, "n s"]]:
        """The problem with its scale of lengths, and how promising each seed is for each target: less is better."""

    @abc.abstractmethod
    def rows(self, q: Float[Array, "nq"], target: Any) -> tuple[Float[Array, "e"], Float[Array, "e m"]]:
        """The error, and minus its derivatives by the joints that may move."""

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

    @property
    def has_clearance(self) -> bool:
        """Whether there is something that a step must not come near to."""
        return False

    def near(self, q: Float[Array, "nq"]) -> Near | None:
        """How near that is; None if there is nothing."""
        return None

    def pursued(self, q: Float[Array, "nq"], target: Any, steps: int) -> Pursued:
        """A configuration so many steps later."""

        def examined(problem: Problem, q: Array, target: Any) -> tuple[Judgement, Array]:
            return problem._examined(q, target)

        # The distances of many pairs are kernels of their own.
        examine = examined if self.has_clearance else in_one_kernel(examined)

        def advance(_: int, state: Pursued) -> Pursued:
            return Pursued(state.following, *examine(self, state.following, target))

        # To judge a configuration by itself would be one program more, in which all distances are computed again.
        zero = jnp.zeros((), q.dtype)
        unknown = Judgement(zero, jnp.zeros((), bool), zero if self.has_clearance else None)
        return fori_loop(0, steps + 1, advance, Pursued(q, unknown, q))

    def _examined(self, q: Float[Array, "nq"], target: Any) -> tuple[Judgement, Float[Array, "nq"]]:
        r"""What is known of a configuration, and one step of damped least squares from it.

        The step is $J^T (J J^T + \lambda I)^{-1} e$ with $\lambda \propto |e|^2$.
        """
        (e, J), near = self.rows(q, target), self.near(q)
        known = self.judged(q, target, e, near)
        J = jnp.where(self.blocked(q, jnp.sum(J * e[:, None], axis=0))[None, :], 0.0, J)
        inverse = damped_inverse(J, jnp.sum(e * e))
        step = product(J.T, product(inverse, e))
        if near is not None:
            step = self.led(q, step, near, J, inverse)
        return known, self.move(q, self.shortened(step))

    def led(
        self,
        q: Float[Array, "nq"],
        step: Float[Array, "m"],
        near: Near,
        J: Float[Array, "e m"],
        inverse: Float[Array, "e e"],
    ) -> Float[Array, "m"]:
        """A step led away from what it must not come near to."""
        return step

    def blocked(self, q: Float[Array, "nq"], push: Float[Array, "m"] | float) -> Bool[Array, "m"]:
        """Which of the moving joints are at a limit and pushed against it."""
        below, above = room(self.model, q, self.velocities)
        return ((above <= 0) & (push > 0)) | ((below <= 0) & (push < 0))

    def move(self, q: Float[Array, "nq"], step: Float[Array, "m"]) -> Float[Array, "nq"]:
        """The configuration after a step, within the limits."""
        dv = jnp.zeros(self.model.nv, q.dtype).at[self.velocities].set(step, unique_indices=True)
        return jnp.where(self.moving, clamp(self.model, integrate(self.model, q, dv)), q)

    def shortened(self, step: Float[Array, "m"]) -> Float[Array, "m"]:
        """The step, its largest entry at most 1 rad or 1 m."""
        return step * jnp.minimum(1.0, _LONGEST_STEP / jnp.maximum(jnp.abs(step).max(), 1e-30))

    def scaled(self, spread: Float[Array, ""]) -> Self:
        """The problem with a scale of lengths, of how far positions are spread."""
        return eqx.tree_at(lambda p: p.length, self, jnp.where(spread > 0, spread, 1.0).astype(self.length.dtype))


class PoseProblem(Problem):
    """Links are to have poses.

    Args:
        links: The links; static.
        ref: The link relative to which their targets are given, or None; static.
    """

    links: tuple[int, ...] = eqx.field(static=True)
    ref: int | None = eqx.field(static=True)

    def poses(self, q: Float[Array, "nq"]) -> Float[Array, "k 4 4"]:
        """Poses of the links that have targets."""
        return jnp.stack([link_pose(self.model, q, k, self.ref) for k in self.links])

    def error(self, pose: Float[Array, "k 4 4"], target: Float[Array, "k 4 4"]) -> Float[Array, "k 6"]:
        """Rotation vectors [rad] and distances [`length`] that lead from the poses to the targets."""
        turn = jax.vmap(lambda T, G: so3.log(matmul(G[:3, :3], T[:3, :3].T)))(pose, target)
        return jnp.concatenate([turn, (target[:, :3, 3] - pose[:, :3, 3]) / self.length], axis=1)

    def size(self, error: Float[Array, "k 6"]) -> Float[Array, "2"]:
        """The largest distance [m] and angle [rad] of an error."""
        distance, angle = safe_norm(error[:, 3:]).max(), safe_norm(error[:, :3]).max()
        return jnp.stack([distance * self.length, angle])

    def judged(
        self, q: Float[Array, "nq"], target: Float[Array, "k 4 4"], error: Array, near: Near | None
    ) -> Judgement:
        size = self.size(error.reshape(-1, 6))
        return Judgement(jnp.sum(error * error), (size <= self.tolerance).all(), None)

    def deviation(self, q: Float[Array, "nq"], target: Float[Array, "k 4 4"]) -> Array:
        return self.size(self.error(self.poses(q), target))

    def rows(self, q: Float[Array, "nq"], target: Float[Array, "k 4 4"]) -> tuple[Array, Array]:
        poses, rows = zip(*(pose_and_jacobian(self.model, q, k, self.ref) for k in self.links), strict=True)
        unit = jnp.concatenate([jnp.ones(3, q.dtype), jnp.full(3, 1.0 / self.length, q.dtype)])
        J = jnp.stack(rows)[:, :, self.velocities] * unit[None, :, None]
        return self.error(jnp.stack(poses), target).reshape(-1), J.reshape(-1, len(self.velocities))

    def ranked(self, seeds: Float[Array, "s nq"], target: Float[Array, "n k 4 4"]) -> tuple[PoseProblem, Array]:
        poses = jax.vmap(self.poses)(seeds)
        spread = jnp.sqrt(jnp.mean(jnp.var(poses[:, :, :3, 3], axis=0).sum(axis=-1)))
        scaled = self.scaled(spread)

        def features(T: Array) -> Array:
            R, p = T[..., :3, :3] / np.sqrt(2.0), T[..., :3, 3] / scaled.length
            return jnp.concatenate([R.reshape(len(T), -1), p.reshape(len(T), -1)], axis=1)

        return scaled, squared_distances(features(target), features(poses))


def squared_distances(wanted: Float[Array, "n f"], own: Float[Array, "s f"]) -> Float[Array, "n s"]:
    """Between rows, without what is the same for all columns."""
    return jnp.sum(own * own, axis=1)[None] - 2.0 * wanted @ own.T


def damped_inverse(J: Float[Array, "e m"], size: Array) -> Float[Array, "e e"]:
    r"""$(J J^T + \lambda I)^{-1}$, damped in proportion to a squared error."""
    return inverse_by_blocks(product(J, J.T) + damping(size) * jnp.eye(len(J), dtype=J.dtype))


def damping(size: Float[Array, ""]) -> Float[Array, ""]:
    r"""The $\lambda$ of damped least squares for a squared error."""
    return _DAMPING * size + _LEAST_DAMPING * np.sqrt(jnp.finfo(size.dtype).eps)


def room(model: Model, q: Float[Array, "nq"], velocities: np.ndarray) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
    """How far the joints with these indices into v are from their lower and upper limits.

    Infinite for joints of several coordinates.
    """
    tree, infinite = model.tree, jnp.full(1, jnp.inf, q.dtype)
    own = [i for i, joint in enumerate(tree.joints) if joint.nq == 1 and tree.mimics[i] is None]
    single = {tree.v_slices[i].start: tree.q_slices[i].start for i in own}
    at = np.array([single.get(v, model.nq) for v in velocities.tolist()])
    below = jnp.concatenate([q - model.position_lower, infinite])[at]
    return below, jnp.concatenate([model.position_upper - q, infinite])[at]
