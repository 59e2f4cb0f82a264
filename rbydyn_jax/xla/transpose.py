"""Linear maps that know their own transpose, for the derivative rules of the algorithms.

JAX transposes the rule of a `custom_jvp` operation by operation. Where the transpose is known as a sweep over the tree,
and the whole matrix as another, that costs several times too much. `apply_linear` applies a map to its arguments such
that reverse mode runs the sweep of the transpose, a batch of arguments for one set of parameters (`jacfwd`, `jacrev`)
multiplies with the matrix, and every other batch runs the sweep with the batch as the last axis. What the map depends
on (its parameters) is differentiated as plain JAX code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir, partial_eval

from .nested import merged, size_along
from .partitioned import devices_needed
from .sharding import on_each_shard, replicated, vary_alike
from .tuning import FEW_ARGUMENTS

Arrays = tuple[jax.Array, ...]
Shape = tuple[int, ...]
Pull = Callable[[jax.Array], jax.Array]


class LinearMap(ABC):
    """A map that is linear in a tuple of arrays and depends on a pytree of parameters. Hashable by value.

    `matrix` may return None: then there is none, and batches of arguments run the sweep.
    """

    @abstractmethod
    def apply(self, parameters: Any, arguments: Arrays) -> Arrays:
        """The image of the arguments."""

    @abstractmethod
    def transpose(self) -> LinearMap:
        """The transposed map, of the same parameters."""

    def matrix(self, parameters: Any) -> Sequence[Sequence[jax.Array]] | None:
        """Blocks [output][argument] of shape (output size, argument size) for arrays of one axis."""
        return None


@dataclass(frozen=True)
class _Batched(LinearMap):
    """A map applied along the last axis of its arguments, with parameters of which some have a batch axis."""

    inner: LinearMap
    axes: tuple[int | None, ...]

    def apply(self, parameters: Any, arguments: Arrays) -> Arrays:
        leaves, tree = jax.tree.flatten(parameters)

        def one(leaves: list[Any], arguments: Arrays) -> Arrays:
            return self.inner.apply(jax.tree.unflatten(tree, leaves), arguments)

        return jax.vmap(one, in_axes=(list(self.axes), -1), out_axes=-1)(leaves, arguments)

    def transpose(self) -> LinearMap:
        return _Batched(self.inner.transpose(), self.axes)


_linear_p = Primitive("rbydyn_linear")
_linear_p.multiple_results = True


def apply_linear(linear: LinearMap, parameters: Any, arguments: Arrays, shapes: Sequence[Shape]) -> Arrays:
    """The image of `arguments` under `linear`; `shapes` are those of the image."""
    arguments = vary_alike(arguments, parameters)
    leaves, tree = jax.tree.flatten(vary_alike(parameters, arguments))
    params = {"linear": linear, "tree": tree, "out": tuple(shapes), "devices": devices_needed()}
    return tuple(_linear_p.bind(*leaves, *arguments, **params))


def _images(*operands: ShapedArray, tree: Any, out: tuple[Shape, ...], **_: Any) -> list[ShapedArray]:
    """Arrays of these shapes that vary over the same devices as the arguments."""
    like = operands[tree.num_leaves]
    return [like.update(shape=shape, sharding=replicated(like, len(shape)), weak_type=False) for shape in out]


def _split(operands: Sequence[Any], tree: Any) -> tuple[list[Any], tuple[Any, ...]]:
    count = tree.num_leaves
    return list(operands[:count]), tuple(operands[count:])


def apply_operands(*operands: jax.Array, linear: LinearMap, tree: Any, **_: Any) -> Arrays:
    """The image of the arguments, which stand behind the parameters."""
    leaves, arguments = _split(operands, tree)
    return linear.apply(jax.tree.unflatten(tree, leaves), arguments)


def pruned(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program without unused computations; lowering does that for whole programs, not for a primitive's."""
    jaxpr, _ = partial_eval.dce_jaxpr(program.jaxpr, [True] * len(program.out_avals), instantiate=True)
    return ClosedJaxpr(jaxpr, program.consts)


def with_operands(program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The program with those of its constants that a transformation outside follows as operands, before the others."""
    places = [k for k, x in enumerate(program.consts) if isinstance(x, Tracer)]
    if not places:
        return program, []
    jaxpr, constants = program.jaxpr, [k for k in range(len(program.consts)) if k not in places]
    moved = jaxpr.replace(
        constvars=[jaxpr.constvars[k] for k in constants],
        invars=[*(jaxpr.constvars[k] for k in places), *jaxpr.invars],
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return ClosedJaxpr(moved, [program.consts[k] for k in constants]), [program.consts[k] for k in places]


def _pruned(*operands: jax.Array, **static: Any) -> list[Any]:
    return jaxpr_as_fun(pruned(jax.make_jaxpr(lambda *xs: apply_operands(*xs, **static))(*operands)))(*operands)


_linear_p.def_impl(jax.jit(apply_operands, static_argnames=("linear", "tree", "out", "devices")))
_linear_p.def_abstract_eval(_images)
mlir.register_lowering(_linear_p, mlir.lower_fun(_pruned, multiple_results=True))


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, linear: LinearMap, tree: Any, **params: Any
) -> tuple[Sequence[Any], list[Any]]:
    leaves, arguments = _split(primals, tree)
    d_leaves, d_arguments = _split(tangents, tree)
    results = _linear_p.bind(*primals, linear=linear, tree=tree, **params)
    total = None
    if any(type(t) is not ad.Zero for t in d_arguments):
        dense = [ad.instantiate_zeros(t) for t in d_arguments]
        total = _linear_p.bind(*leaves, *dense, linear=linear, tree=tree, **params)
    moved = {k: t for k, t in enumerate(d_leaves) if type(t) is not ad.Zero}
    if moved:
        part = jvp_along(lambda xs: tuple(linear.apply(jax.tree.unflatten(tree, xs), arguments)), leaves, moved)[1]
        total = part if total is None else [a + b for a, b in zip(total, part, strict=True)]
    if total is None:
        total = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in results]
    return results, list(total)


def _transpose(
    cts: Sequence[Any], *operands: Any, linear: LinearMap, tree: Any, out: tuple[Shape, ...], devices: Any
) -> list[Any]:
    leaves, arguments = _split(operands, tree)
    if any(ad.is_undefined_primal(x) for x in leaves):
        raise TypeError("a linear map is not linear in its parameters")
    if all(type(ct) is ad.Zero for ct in cts):
        return [None] * len(operands)
    dense = [ad.instantiate_zeros(ct) for ct in cts]
    back = tuple(x.aval.shape for x in arguments)
    images = _linear_p.bind(*leaves, *dense, linear=linear.transpose(), tree=tree, out=back, devices=devices)
    return [None] * len(leaves) + list(images)


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    linear: LinearMap,
    tree: Any,
    out: tuple[Shape, ...],
    devices: Any,
) -> tuple[Sequence[Any], list[int]]:
    size = size_along(operands, axes)
    leaves, arguments = _split(operands, tree)
    leaf_axes, argument_axes = _split(axes, tree)
    last = tuple(
        jnp.broadcast_to(x[..., None], (*x.shape, size)) if axis is None else jnp.moveaxis(x, axis, -1)
        for x, axis in zip(arguments, argument_axes, strict=True)
    )
    if all(axis is None for axis in leaf_axes) and size >= FEW_ARGUMENTS:
        blocks = linear.matrix(jax.tree.unflatten(tree, leaves))
        if blocks is not None:
            images = []
            below = jnp.concatenate([x.reshape(-1, size) for x in last])
            for row, shape in zip(blocks, out, strict=True):
                image = jnp.matmul(jnp.concatenate(row, axis=1), below, precision=jax.lax.Precision.HIGHEST)
                images.append(image.reshape(*shape, size))
            return images, [x.ndim - 1 for x in images]
    if isinstance(linear, _Batched) and any(axis is not None for axis in leaf_axes):
        return _batch_again(linear, leaves, leaf_axes, last, tree=tree, out=out, devices=devices)
    batched = _Batched(linear, tuple(leaf_axes))
    grown = tuple((*shape, size) for shape in out)
    images = _linear_p.bind(*leaves, *last, linear=batched, tree=tree, out=grown, devices=devices)
    return images, [len(shape) - 1 for shape in grown]


def _batch_again(
    linear: _Batched,
    leaves: list[Any],
    leaf_axes: list[Any],
    arguments: Arrays,
    *,
    out: tuple[Shape, ...],
    **params: Any,
) -> tuple[Sequence[Any], list[int]]:
    """A batch of batches is one batch: the last two axes of the arguments, of which the last one is the outer."""
    inner, outer = arguments[0].shape[-2:]
    flat = [merged(*each, (outer, inner)) for each in zip(leaves, leaf_axes, linear.axes, strict=True)]
    either = (None if a is None and b is None else 0 for a, b in zip(leaf_axes, linear.axes, strict=True))
    rows = [jnp.swapaxes(x, -1, -2).reshape(*x.shape[:-2], outer * inner) for x in arguments]
    grown = tuple((*shape[:-1], outer * inner) for shape in out)
    images = _linear_p.bind(*flat, *rows, linear=_Batched(linear.inner, tuple(either)), out=grown, **params)
    return [x.reshape(*x.shape[:-1], outer, inner) for x in images], [len(shape) - 1 for shape in grown]


ad.primitive_jvps[_linear_p] = _jvp
ad.primitive_transposes[_linear_p] = _transpose
batching.primitive_batchers[_linear_p] = on_each_shard(_batch)


def is_zero(tangents: Any) -> bool:
    """Whether all tangents of a pytree, as a rule with symbolic zeros gets them, are zero."""
    return all(isinstance(t, SymbolicZero) for t in jax.tree.leaves(tangents, is_leaf=_is_symbolic))


def _is_symbolic(x: Any) -> bool:
    return isinstance(x, SymbolicZero)


def rule_of(f: Any) -> Callable[[Callable[..., Any]], None]:
    """Makes a function the rule of a `jax.custom_jvp`; it may give `no_tangent` for results."""

    def register(rule: Callable[..., Any]) -> None:
        def of_zeros(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            return rule(primals, jax.tree.map(_dense_tangent, tangents, is_leaf=_is_symbolic))

        f.defjvp(of_zeros, symbolic_zeros=True)

    return register


def no_tangent(x: jax.Array) -> Any:
    """The tangent of a result that has none."""
    return SymbolicZero(jax.typeof(x).to_tangent_aval())


def _dense_tangent(x: Any) -> Any:
    if not _is_symbolic(x):
        return x
    return np.zeros(x.shape, x.dtype) if x.dtype == jax.dtypes.float0 else jnp.zeros(x.shape, x.dtype)


def jvp_along(f: Callable[..., Any], values: Sequence[Any], tangents: Mapping[int, Any]) -> tuple[Any, Any]:
    """`f(values)`, and its derivative when those of the values move for which there is a tangent."""

    def of_moved(*moved: Any) -> Any:
        full = list(values)
        for k, x in zip(tangents, moved, strict=True):
            full[k] = x
        return f(full)

    return jax.jvp(of_moved, tuple(values[k] for k in tangents), tuple(tangents.values()))


def value_and_jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """`f` and its derivative along tangents of which some are symbolic zeros, but not all."""
    leaves, tree = jax.tree.flatten(primals)
    d_leaves = jax.tree.leaves(tangents, is_leaf=_is_symbolic)
    moved = {k: t for k, t in enumerate(d_leaves) if not _is_symbolic(t)}
    return jvp_along(lambda xs: f(*jax.tree.unflatten(tree, xs)), leaves, moved)


def jvp_of(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The derivative of `f` alone; None where all tangents are zero."""
    return None if is_zero(tangents) else value_and_jvp(f, primals, tangents)[1]


def values_and_pulls(f: Callable[[jax.Array], Arrays], x: jax.Array) -> tuple[Arrays, list[Pull]]:
    """The results of a function of one array, and for each what takes its cotangent to a gradient.

    The `jax.vjp` of all of them would pull zeros back for the others.
    """
    found, push = jax.linearize(f, x)

    def pull(k: int) -> Pull:
        transposed = jax.linear_transpose(lambda dx: push(dx)[k], x)
        return lambda cotangent: transposed(cotangent)[0]

    return found, [pull(k) for k in range(len(found))]
