"""A user's function of several others, a batch of which is computed a tile at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax

from .._batched import Constant, check_result, constant, is_input
from .._errors import DtypeError
from .._process import check_process
from ..sweeps.plan import together

P = ParamSpec("P")
T = TypeVar("T")


def tiled(f: Callable[P, T]) -> Callable[P, T]:
    """`f`, of one configuration, such that `jax.vmap` of it computes 128 configurations at a time on a CPU, and is one
    kernel on a GPU.

    Each function of this library works in tiles that stay in cache. But what one hands to the next, such as an inertia
    matrix of 4 KB, is that of the whole batch, and goes to memory and back. With `tiled` the loop over tiles goes
    around all of `f`, and gives the same numbers. Its derivatives, ``jax.vmap(jax.grad(tiled(f)))``, are in tiles as
    well.

    A gradient computes `f` once more, in the same tile; of a single configuration it may take longer for that. On
    several devices `tiled` works inside of `shard_map` and `map_batch` only. It does nothing for an `f` with
    collectives over the named axis of a `vmap`, such as `jax.lax.pmean`: they need all rows.

    On a CUDA GPU `f` is one kernel, or a few where it is large, and so is its derivative, if it consists of sums,
    products, divisions, roots, comparisons, trigonometric functions, branches and loops (but those over more than 64
    rows of an array), and of 80,000 such operations at most; there the sine of an angle of more than 8e3 rad, in
    float64 1e6 rad, is not a number. Any other `f` is left as it is, as all are on other accelerators.

    Args:
        f: Function of arrays and of pytrees of arrays, such as robots; it may close over others. What is neither an
            array nor a float, such as names of links, is a constant of the program.

    Returns:
        A function with the arguments of `f`, for all transformations of JAX but `jax.linear_transpose`, which raises
        NotImplementedError.

    Raises:
        DtypeError: `f` is not a function, does not return arrays, or an argument is neither hashable nor an
            array that JAX can read.

    Example:
        The power that gravity does on a batch of moving arms:

        >>> @tiled
        ... def power(model, q, v):
        ...     return -gravity_forces(model, q) @ v
        >>> arm = robots.two_link_arm()
        >>> jax.vmap(power, in_axes=(None, 0, 0))(arm, jnp.zeros((1000, 2)), jnp.ones((1000, 2))).shape
        (1000,)
    """
    if not callable(f):
        raise DtypeError(f"f must be a function of one configuration, got {type(f).__name__}")

    @functools.partial(jax.jit, static_argnums=0)
    def run(call: _Call, arrays: list[Any]) -> Any:
        def of_arrays(*arrays: Any) -> Any:
            args, kwargs = call.arguments(arrays)
            return check_result(f(*args, **kwargs))

        return together(of_arrays)(*arrays)

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        check_process()
        return run(*_split(args, kwargs))

    return call


class _Call(NamedTuple):
    """The arguments of a call without its arrays: hashable, and equal for equal programs."""

    tree: Any
    places: tuple[Constant | None, ...]

    def arguments(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with these arrays."""
        rest = iter(arrays)
        return jax.tree.unflatten(self.tree, [next(rest) if x is None else x.value for x in self.places])


def _split(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Call, list[Any]]:
    paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))

    def place(path: Any, x: Any) -> Constant | None:
        if is_input(x):
            return None
        return constant(x, ("args", "kwargs")[path[0].idx] + jax.tree_util.keystr(path[1:]))

    return _Call(tree, tuple(place(*each) for each in paths)), [x for _, x in paths if is_input(x)]
