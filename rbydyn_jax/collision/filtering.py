"""Pairs that need no test: those that an SRDF file disables, and those that never touch or always do."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from .._check import check_integer, check_key, check_number
from ..io.findings import fail
from ..io.urdf import read_bytes
from ..io.xml import parse_xml
from ..model.configuration import random_configuration
from ..model.model import Model, check_model
from .pairing import ShapePairs, resolve
from .pairing import pairs as pairs_of
from .robot import signed_distances

_TOGETHER = 256  # configurations at a time


def srdf_pairs(model: Model, path: str | Path, pairs: ShapePairs | None = None) -> ShapePairs:
    """The pairs without those that an SRDF file disables.

    These are the pairs in `<disable_collisions>`, and all pairs of a link in `<disable_default_collisions>` but those
    in `<enable_collisions>`. Links that the robot lacks are passed over: such files are often written for a robot with
    a tool.

    Args:
        model: The robot.
        path: The SRDF file.
        pairs: The pairs to choose from; `collision.pairs(model, by="adjacency")` if not given.

    Raises:
        DtypeError: `model` is no model, or `path` no path.
        ModelError: The robot has no collision shapes, or the pairs are of another robot, or none.
        ParseError: The file cannot be read, is not well-formed XML, has another root element than `<robot>`, or one of
            these elements does not name its links.
    """
    data, source = read_bytes(path), os.fspath(path)
    root = parse_xml(data, source)
    if root.tag != "robot":
        raise fail(f"the root element is <{root.tag}>, expected <robot>", source, root.line)

    def listed(tag: str, *attributes: str) -> set[frozenset[str]]:
        for x in root.children(tag):
            if missing := [k for k in attributes if k not in x.attributes]:
                raise fail(f"<{tag}> has no attribute {missing[0]!r}", source, x.line)
        return {frozenset(x.attributes[k] for k in attributes) for x in root.children(tag)}

    disabled = listed("disable_collisions", "link1", "link2")
    enabled = listed("enable_collisions", "link1", "link2")
    by_default: frozenset[str] = frozenset().union(*listed("disable_default_collisions", "link"))
    chosen = _candidates(model, pairs)
    links = [frozenset(names) for names in chosen.links]
    return _kept(chosen, [x not in disabled and (x in enabled or not x & by_default) for x in links])


def sampled_pairs(
    model: Model,
    pairs: ShapePairs | None = None,
    *,
    samples: int = 4096,
    margin: float = 0.0,
    key: PRNGKeyArray | None = None,
) -> ShapePairs:
    """The pairs that touch in some, but not in all, of many random configurations within the limits.

    A pair that never touches cannot collide, as far as samples tell, and one that always does is part of the robot.
    With a `margin`, pairs that come as near as that are kept as well: give at least the clearance that is wanted.

    Args:
        model: The robot.
        pairs: The pairs to choose from; `collision.pairs(model, by="adjacency")` if not given.
        samples: Number of configurations.
        margin: Distance below which two shapes count as touching [m].
        key: Key of the random configurations; default is `jax.random.key(0)`.

    Raises:
        ArgumentError: `samples` is less than 1, or `margin` not finite.
        DtypeError: `model` is no model, `samples` no integer, `margin` no number, or `key` no key.
        ModelError: The robot has no collision shapes, or the pairs are of another robot, or none.

    Example:
        >>> from rbydyn_jax import robots
        >>> from rbydyn_jax.collision import pairs, sampled_pairs
        >>> arm = robots.panda_like()
        >>> len(sampled_pairs(arm)) < len(pairs(arm, by="adjacency"))
        True
    """
    chosen = _candidates(model, pairs)
    count, margin = check_integer(samples, "samples", 1), check_number(margin, "margin")
    keys = jax.random.split(jax.random.key(0) if key is None else check_key(key), count)
    nearest, farthest = _extremes(model, keys, chosen)
    return _kept(chosen, (nearest <= margin) & (farthest > margin))


@partial(jax.jit, static_argnums=2)
def _extremes(model: Model, keys: jax.Array, pairs: ShapePairs) -> tuple[jax.Array, jax.Array]:
    def distances(key: jax.Array) -> jax.Array:
        return signed_distances(model, random_configuration(model, key), pairs)

    d = jax.lax.map(distances, keys, batch_size=_TOGETHER)
    return jnp.min(d, axis=0), jnp.max(d, axis=0)


def _candidates(model: Model, pairs: ShapePairs | None) -> ShapePairs:
    model = check_model(model)
    return resolve(model, pairs_of(model, by="adjacency") if pairs is None else pairs)


def _kept(pairs: ShapePairs, keep: object) -> ShapePairs:
    rows = np.flatnonzero(np.asarray(keep)).tolist()
    return ShapePairs(tuple(pairs.indices[k] for k in rows), tuple(pairs.links[k] for k in rows))
