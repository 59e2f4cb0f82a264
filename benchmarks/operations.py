"""The operations, as a user of the library writes them, and what DESIGN promises of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from rbydyn_jax import aba, collision, crba, fk, jacobian, rnea


@dataclass(frozen=True)
class Operation:
    """`function(link)` returns f(model, *inputs) on one configuration.

    `ratio` is the promised peer's time / ours at B = 1024 for (float64, float32), `compile_seconds` the promised
    compile time; both on RB-Y1 A.
    """

    title: str
    inputs: tuple[str, ...]
    function: Callable[[str], Callable]
    ratio: tuple[float, float] | None = None
    compile_seconds: float | None = None
    peer: str = "pinocchio"
    batches: tuple[int, ...] | None = None  # the only ones to be measured
    public: bool = True  # an eager call of one public function


def _loss(model, q, v, a):
    return 0.5 * jnp.sum(rnea(model, q, v, a) ** 2)


OPERATIONS = {
    "fk": Operation("`fk` (all links)", ("q",), lambda link: fk, (1, 2), 3),
    "jacobian": Operation(
        "`jacobian` (one link)", ("q",), lambda link: lambda model, q: jacobian(model, q, link), (2.5, 5), 3
    ),
    "rnea": Operation("`rnea`", ("q", "v", "a"), lambda link: rnea, (4, 8), 3),
    "crba": Operation("`crba` (full matrix)", ("q",), lambda link: crba, (1.2, 2.5), 6),
    "aba": Operation("`aba`", ("q", "v", "tau"), lambda link: aba, (2.5, 4.5), 6),
    "self_distance": Operation(
        "self-distance (all pairs)", ("q",), lambda link: collision.signed_distances, (50, 100), None, "rby1_sdk"
    ),
    "rnea_gradient": Operation(
        "gradient of a loss through `rnea`",
        ("q", "v", "a"),
        lambda link: jax.grad(_loss, argnums=(1, 2, 3)),
        (3.5, 6),
        None,
        batches=(1024,),
        public=False,
    ),
    "rnea_jacobian": Operation(
        "`jacfwd` of `rnea` (q, v, a)",
        ("q", "v", "a"),
        lambda link: jax.jacfwd(rnea, argnums=(1, 2, 3)),
        batches=(1024,),
        public=False,
    ),
}
