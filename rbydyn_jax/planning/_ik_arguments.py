"""The arguments of `solve_ik`, checked and brought to one batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_finite, check_not_negative, check_pose, check_sequence, known
from .._errors import ArgumentError, DtypeError, ModelError, ShapeError
from ..model.configuration import neutral
from ..model.model import Model
from ._arguments import related
from ._ik_tasks import Wanted
from .costs import Cost, LinkVelocity, Manipulability, SoftGoal
from .goals import Goal, PoseGoal

Item = TypeVar("Item", bound=Goal | Cost)
Ends = Sequence[tuple[int | None, int | None]]
"""Pairs of links, None for the world, between which joints may move."""


class Poses(NamedTuple):
    """Links, and their targets with an axis for the links."""

    links: tuple[int, ...]
    ref: int | None
    target: Float[Array, "*b k 4 4"] | None

    @property
    def count(self) -> int | None:
        """The size of the batch, if there is one."""
        return None if self.target is None or self.target.ndim == 3 else len(self.target)


def checked_poses(model: Model, link: Any, target: Any, ref: Any) -> Poses:
    """The arguments `link`, `target` and `ref`."""
    base = None if ref is None else model.link_index(ref)
    if link is None and target is None:
        return Poses((), base, None)
    if link is None or target is None:
        missing, other = ("link", "target") if link is None else ("target", "link")
        raise ArgumentError(f"{missing} must be given with {other}")
    single = isinstance(link, str | int)
    if not single and not isinstance(link, tuple):
        raise DtypeError(f"link must be a name, an index, or a tuple of these, got {link!r}")
    links = tuple(related(model, k, ref, "")[0] for k in ((link,) if single else link))
    target = check_array(target, "target")
    shape = (4, 4) if single else (len(links), 4, 4)
    batch = (None,) if target.ndim == len(shape) + 1 else ()
    target = check_array(target, "target", batch + shape, "T_ref_link")
    if target.size == 0:
        raise ShapeError(f"target must hold at least one pose, got shape {target.shape}")
    return Poses(links, base, target.reshape(*target.shape[: len(batch)], len(links), 4, 4))


def checked_types(goals: Any, costs: Any) -> None:
    """Raises unless these are lists of goals and of costs."""
    kinds = {"goals": (goals, (Goal,), "goals such as PoseGoal"), "costs": (costs, (SoftGoal, Manipulability), "costs")}
    for name, (given, allowed, of) in kinds.items():
        for i, item in enumerate(check_sequence(given, name, of)):
            if not isinstance(item, allowed):
                wanted = " or ".join(kind.__name__ for kind in allowed)
                kind = "an array" if isinstance(item, jax.Array) else type(item).__name__
                raise DtypeError(f"{name}[{i}] must be a {wanted}, got {kind}")


def batch_size(poses: Poses, items: Sequence[Goal | Cost]) -> int | None:
    """The number of problems, or None for one without a batch axis."""
    found = {} if poses.count is None else {"target": poses.count}
    for item in items:
        if (goal := _varying(item)) is not None and (size := _count(goal)) is not None:
            found[f"{type(goal).__name__}.{goal.varies[0]}"] = size
    if len(set(found.values())) > 1:
        raise ShapeError(f"batches must have one size, got {', '.join(f'{n} of {name}' for name, n in found.items())}")
    return next(iter(found.values()), None)


def asked(
    model: Model, poses: Poses, goals: Sequence[Goal], costs: Sequence[Cost], count: int, dtype: Any
) -> tuple[Wanted, Ends]:
    """All goals and costs, checked, for `count` problems; and the links that the goals concern."""
    of_poses = []
    if poses.target is not None:
        targets = jnp.broadcast_to(poses.target.astype(dtype), (count, len(poses.links), 4, 4))
        of_poses = [PoseGoal(link, targets[:, k], poses.ref) for k, link in enumerate(poses.links)]
    given = (*of_poses, *goals)
    if not given:
        raise ArgumentError("there is nothing to reach: give link and target, or goals")
    names = [*(f"target[{k}]" for k in range(len(of_poses))), *(f"goals[{k}]" for k in range(len(goals)))]
    found = tuple(_batched(model, goal, dtype, name, count) for goal, name in zip(given, names, strict=True))
    soft = tuple(_batched(model, cost, dtype, f"costs[{k}]", count) for k, cost in enumerate(costs))
    return Wanted(found, soft), ends(model, found)


def ends(model: Model, items: Sequence[Goal | Cost]) -> Ends:
    """The links that goals or costs concern, each with what it is relative to."""
    found: list[tuple[int | None, int | None]] = []
    for item in items:
        links = [model.link_index(k) for k in item.links]
        last = links[1] if len(links) == 2 else None
        found += [(k, last) for k in links if k != last] if links else [(k, None) for k in range(len(model.link_names))]
    return found


def check_goal_values(goals: Any, name: str) -> None:
    """Raises for targets of goals that are no rigid transforms or not finite and for negative weights, where known.

    Of a batch, what is not finite concerns some problems only, whose status tells it.
    """
    for i, goal in enumerate(goals if isinstance(goals, list | tuple) else ()):
        inner = _varying(goal)
        if isinstance(goal, SoftGoal | Manipulability | LinkVelocity):
            check_not_negative(goal.weight, f"{name}[{i}].weight")
        if isinstance(inner, PoseGoal):
            check_pose(inner.target, f"{name}[{i}].target")
        if isinstance(goal, LinkVelocity):
            _check_one(goal.velocity, 1, f"{name}[{i}].velocity")
        if inner is not None:
            key, rank = inner.varies
            within = "" if inner is goal else ".goal"
            _check_one(getattr(inner, key), rank, f"{name}[{i}]{within}.{key}")


def _check_one(x: Any, rank: int, name: str) -> None:
    """Raises unless an array without an axis for a batch is finite, where it is known."""
    if getattr(x, "ndim", None) == rank and known(x) is not None:
        check_finite(x, name)


def start(model: Model, q0: Any, count: int | None) -> Float[Array, "*b nq"]:
    """The argument `q0`, one for all problems or one for each, or its default."""
    if q0 is None:
        q0 = jnp.clip(neutral(model), model.position_lower, model.position_upper)
    q0 = check_array(q0, "q0")
    if q0.ndim == 2 and count is not None:
        return check_array(q0, "q0", (count, model.nq), "number of targets, model.nq")
    return check_array(q0, "q0", (model.nq,), "model.nq")


def moving(model: Model, ends: Ends, joints: Any) -> tuple[int, ...]:
    """The joints that may move, those that others mimic instead of the ones that mimic."""
    tree = model.tree

    def path(link: int | None) -> frozenset[int]:
        return frozenset(() if link is None else tree.path(tree.link_bodies[link]))

    between = frozenset().union(*(path(a) ^ path(b) for a, b in ends))
    leaders = [i if m is None else m.source for i, m in enumerate(tree.mimics)]
    on_the_way = {leaders[i] for i in between}
    if joints is None:
        chosen = sorted(on_the_way)
    else:
        chosen = [model.joint_index(k) for k in check_sequence(joints, "joints", "joints, by name or index")]
    for i in chosen:
        if tree.mimics[i] is not None or chosen.count(i) > 1:
            reason = "is listed twice" if tree.mimics[i] is None else "mimics another: name that one"
            raise ModelError(f"joint {tree.joint_names[i]!r} {reason}")
    if not on_the_way.intersection(chosen):
        names = ", ".join(repr(tree.link_names[k]) for k, _ in ends if k is not None)
        raise ModelError(f"none of the joints that may move moves {names}")
    return tuple(chosen)


def _varying(item: Any) -> Goal | None:
    """The goal whose array may have a batch axis."""
    inner = item.goal if isinstance(item, SoftGoal) else item
    return inner if isinstance(inner, Goal) else None


def _count(goal: Goal) -> int | None:
    name, rank = goal.varies
    x = check_array(getattr(goal, name), f"{type(goal).__name__}.{name}")
    if x.ndim != rank + 1:
        return None
    if not len(x):
        raise ShapeError(f"{type(goal).__name__}.{name} must hold at least one problem, got shape {x.shape}")
    return len(x)


def _bands(goal: Any) -> list[Any]:
    """The bands of a goal along a path."""
    return [getattr(goal, field.name) for field in dataclasses.fields(goal) if field.name.endswith("_band")]


def _batched(model: Model, item: Item, dtype: Any, name: str, count: int) -> Item:
    """A goal or cost, checked, all its arrays with an axis for the problems."""

    def spread(x: Array) -> Array:
        return jnp.broadcast_to(x[None], (count, *x.shape))

    def no_band(x: Any) -> Any:
        return jnp.zeros_like(x) if eqx.is_array_like(x) else x

    goal = _varying(item)
    if goal is not None:  # bands do not matter here, nor whether they are finite
        item = eqx.tree_at(lambda x: _bands(_varying(x)), item, replace_fn=no_band)
    if goal is None or _count(goal) is None:
        return jax.tree.map(spread, item.checked(model, dtype, name))

    def place(x: Any) -> Any:
        return getattr(_varying(x), goal.varies[0])

    one = eqx.tree_at(place, item, place(item)[0]).checked(model, dtype, name)
    return eqx.tree_at(place, jax.tree.map(spread, one), place(item).astype(dtype))
