"""Distances between the shapes of a robot: all pairs, the nearest ones, the minimum and a smooth minimum."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from .._check import check_array, check_integer
from .._errors import ArgumentError
from .._jit import jit_public
from ..algorithms.arguments import arguments
from ..model.model import Model, check_model
from ..sweeps.sweep import Sweep
from .distances import distances
from .groups import PairGroup, in_order, on_pairs
from .pairing import ShapePairs, resolve
from .witness import CapsuleDistance, Witness


class NearestPairs(CapsuleDistance):
    """The nearest pairs of a robot, in ascending order of distance; see `CapsuleDistance` for the other fields.

    Args:
        pair: Which pair each row is: an index into the pairs that were tested.
    """

    pair: Int[Array, "k"]


@jit_public("pairs")
def signed_distances(model: Model, q: Float[Array, "nq"], pairs: ShapePairs | None = None) -> Float[Array, "n"]:
    """Signed distances of pairs of the robot's collision shapes.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        pairs: The pairs, as `collision.pairs` chooses them; `collision.pairs(model)` if not given.

    Returns:
        One distance for each pair [m]; negative means overlap.

    Raises:
        ModelError: The robot has no collision shapes, or the pairs are of another robot, or none.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        At its zero pose, arms down, the RB-Y1 A touches itself nowhere:

        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import robots
        >>> model = robots.rby1a()
        >>> bool((signed_distances(model, jnp.zeros(model.nq)) > 0).all())
        True
    """
    chosen = resolve(check_model(model), pairs)
    model, q = arguments(model, q=q)
    return distances(model, q, chosen.indices)[0]


@jit_public("pairs")
def capsule_distances(model: Model, q: Float[Array, "nq"], pairs: ShapePairs | None = None) -> CapsuleDistance:
    """Signed distances of pairs of the robot's collision shapes with their witness points; see `capsule_distance`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        pairs: The pairs, as `collision.pairs` chooses them; `collision.pairs(model)` if not given.

    Returns:
        Distances (n,) [m] and witness points (n, 3) in world coordinates [m], one row for each pair.

    Raises:
        DtypeError: `model` is no model, or `q` no array of floats.
        ModelError: The robot has no collision shapes, or the pairs are of another robot, or none.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        Where nothing overlaps, the points on the surfaces are as far apart as the distance says:

        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import robots
        >>> model = robots.rby1a()
        >>> found = capsule_distances(model, jnp.zeros(model.nq))
        >>> bool(jnp.allclose(jnp.linalg.norm(found.point_a - found.point_b, axis=1), found.distance, atol=1e-6))
        True
    """

    def witnesses(run: Sweep, groups: Sequence[PairGroup]) -> Witness:
        return in_order(groups, [g.mapped(run, g.function)(g.a, g.b) for g in groups])

    return CapsuleDistance(*on_pairs(model, q, resolve(check_model(model), pairs), witnesses).stacked())


def nearest(model: Model, q: Float[Array, "nq"], k: int, pairs: ShapePairs | None = None) -> NearestPairs:
    """The `k` nearest pairs, the nearest first; see `signed_distances`.

    Derivatives cost what the `k` pairs cost; which pairs these are counts as constant.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        k: How many pairs, an integer of at least 1 and at most as many as there are; static.
        pairs: The pairs to choose from; `collision.pairs(model)` if not given.

    Returns:
        Distances (k,) [m], witness points (k, 3) in world coordinates [m], and the indices of the pairs (k,).

    Raises:
        ArgumentError: There are fewer than `k` pairs, or `k` is less than 1.
        DtypeError: `k` is no integer that is known while tracing, `model` no model, or `q` no array of floats.
        ModelError: The robot has no collision shapes, or the pairs are of another robot, or none.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import collision, robots
        >>> model = robots.rby1a()
        >>> found = nearest(model, jnp.zeros(model.nq), 3)
        >>> [collision.pairs(model).links[i] for i in found.pair]  # doctest: +ELLIPSIS
        [('link_...
    """
    # Checked here: to jax.jit True is the same static argument as 1.
    return _nearest(model, q, check_integer(k, "k"), pairs)


@jit_public("k", "pairs")
def _nearest(model: Model, q: Array, k: int, pairs: ShapePairs | None) -> NearestPairs:
    chosen = resolve(check_model(model), pairs)
    if not 1 <= k <= len(chosen):
        raise ArgumentError(f"k must be between 1 and {len(chosen)}, the number of pairs, got {k}")

    def nearest_of(run: Sweep, g: PairGroup) -> tuple[Witness, Array]:
        _, row = lax.top_k(-g.mapped(run, g.distance)(*lax.stop_gradient((g.a, g.b))), min(k, len(g.places)))
        return g.mapped(run, g.function)(*jax.tree.map(lambda x: x[row], (g.a, g.b))), row

    def select(run: Sweep, groups: Sequence[PairGroup]) -> tuple[Witness, Array]:
        found = [nearest_of(run, g) for g in groups]
        if len(found) == 1:
            return found[0]
        places = [jnp.asarray(g.places, row.dtype)[row] for g, (_, row) in zip(groups, found, strict=True)]
        every = jax.tree.map(lambda *x: jnp.concatenate(x), *(w for w, _ in found)), jnp.concatenate(places)
        _, row = lax.top_k(-lax.stop_gradient(every[0].distance), k)
        return jax.tree.map(lambda x: x[row], every)

    found, pair = on_pairs(model, q, chosen, select)
    return NearestPairs(*found.stacked(), pair=pair)


@jit_public("pairs")
def min_distance(model: Model, q: Float[Array, "nq"], pairs: ShapePairs | None = None) -> Float[Array, ""]:
    """The minimum signed distance of any pair; where two pairs tie, its gradient is the mean of theirs.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        pairs: The pairs, as `collision.pairs` chooses them; `collision.pairs(model)` if not given.

    Returns:
        The distance [m]; negative means overlap.

    Raises:
        DtypeError: `model` is no model, or `q` no array of floats.
        ModelError: The robot has no collision shapes, or the pairs are of another robot, or none.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import robots
        >>> model = robots.rby1a()
        >>> bool(min_distance(model, jnp.zeros(model.nq)) > 0)
        True
    """
    return jnp.min(signed_distances(model, q, pairs))


def smooth_min_distance(
    model: Model,
    q: Float[Array, "nq"],
    temperature: Float[Array, ""] | float = 0.005,
    pairs: ShapePairs | None = None,
) -> Float[Array, ""]:
    r"""A smooth lower bound of the minimum signed distance, $-\alpha \log \sum_i \exp(-d_i / \alpha)$.

    With n pairs and d the minimum distance it lies in $[d - \alpha \log n,\, d]$, and never above d to the last bit.
    Its gradient is the mean of the pairs' gradients with weights softmax(-d / alpha).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        temperature: alpha > 0 [m]: pairs that are nearer than a few alpha to the nearest one have a say. While it is
            traced its sign is not checked.
        pairs: The pairs; `collision.pairs(model)` if not given.

    Returns:
        The bound [m].

    Raises:
        ModelError: The robot has no collision shapes, or the pairs are of another robot, or none.
        ArgumentError: `temperature` is not positive.
        ShapeError: `q` is not of shape `(model.nq,)`, or `temperature` is not a scalar.

    Example:
        >>> import jax.numpy as jnp
        >>> from rbydyn_jax import robots
        >>> model = robots.rby1a()
        >>> q = jnp.zeros(model.nq)
        >>> bool(smooth_min_distance(model, q) <= min_distance(model, q))
        True
    """
    alpha = check_array(temperature, "temperature", ())
    if not isinstance(alpha, Tracer) and not alpha > 0:
        raise ArgumentError(f"temperature must be positive, got {temperature}")
    return _smooth_min_distance(model, q, alpha, pairs)


@jit_public("pairs")
def _smooth_min_distance(model: Model, q: Array, temperature: Array, pairs: ShapePairs | None) -> Float[Array, ""]:
    d = signed_distances(model, q, pairs)
    return smooth_minimum(d, temperature.astype(d.dtype))


def smooth_minimum(d: Array, alpha: Array | float) -> Array:
    """The lower bound of the minimum of numbers in `smooth_min_distance`."""
    least = lax.stop_gradient(jnp.min(d))
    return least - alpha * jnp.log(jnp.sum(jnp.exp((least - d) / alpha)))
