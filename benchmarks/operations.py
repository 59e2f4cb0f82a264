"""The operations, as a user of the library writes them, and what DESIGN promises of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

import rbydyn_jax as rb
from rbydyn_jax import collision, identification


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
    largest: int | None = None  # batches above this do not fit into memory, or take minutes
    public: bool = True  # an eager call of one public function


def _half_square(f: Callable) -> Callable:
    """A scalar loss of `f`."""
    return lambda *arguments: 0.5 * jnp.sum(f(*arguments) ** 2)


def _position(link: str) -> Callable:
    return lambda model, q: rb.fk(model, q)[model.link_index(link), :3, 3]


Q, QV, QVA, QVT = ("q",), ("q", "v"), ("q", "v", "a"), ("q", "v", "tau")

OPERATIONS = {
    "fk": Operation("`fk` (all links)", Q, lambda link: rb.fk, (1.8, 3.5), 2),
    "jacobian": Operation(
        "`jacobian` (one link)", Q, lambda link: lambda model, q: rb.jacobian(model, q, link), (3.5, 5.5), 2
    ),
    "rnea": Operation("`rnea`", QVA, lambda link: rb.rnea, (8, 12), 2),
    "crba": Operation("`crba` (full matrix)", Q, lambda link: rb.crba, (2.4, 4.5), 2),
    "aba": Operation("`aba`", QVT, lambda link: rb.aba, (9, 14), 4),
    "mass_matrix_inverse": Operation("`mass_matrix_inverse`", Q, lambda link: rb.mass_matrix_inverse),
    "coriolis_matrix": Operation("`coriolis_matrix`", QV, lambda link: rb.coriolis_matrix),
    "torque_regressor": Operation(
        "`torque_regressor`", QVA, lambda link: identification.torque_regressor, largest=1024
    ),
    "com_jacobian": Operation("`com_jacobian`", Q, lambda link: rb.com_jacobian),
    "centroidal_momentum_matrix": Operation(
        "`centroidal_momentum_matrix`", Q, lambda link: rb.centroidal_momentum_matrix, (1.5, 1.5)
    ),
    "self_distance": Operation(
        "self-distance (all pairs)", Q, lambda link: collision.signed_distances, (240, 480), None, "rby1_sdk"
    ),
    "fk_gradient": Operation(
        "gradient of a loss through `fk`",
        Q,
        lambda link: jax.grad(_half_square(_position(link)), argnums=1),
        (1.2, 2),
        5,
        public=False,
    ),
    "rnea_gradient": Operation(
        "gradient of a loss through `rnea`",
        QVA,
        lambda link: jax.grad(_half_square(rb.rnea), argnums=(1, 2, 3)),
        (9, 13),
        5,
        public=False,
    ),
    "aba_gradient": Operation(
        "gradient of a loss through `aba`",
        QVT,
        lambda link: jax.grad(_half_square(rb.aba), argnums=(1, 2, 3)),
        compile_seconds=5,
        public=False,
    ),
    "rnea_derivatives": Operation("`rnea_derivatives`", QVA, lambda link: rb.rnea_derivatives, (3, 5), 5),
    "aba_derivatives": Operation("`aba_derivatives`", QVT, lambda link: rb.aba_derivatives, (2.5, 5), 5),
    "rnea_jacobian": Operation(
        "`jacfwd` of `rnea` (q, v, a)",
        QVA,
        lambda link: jax.jacfwd(rb.rnea, argnums=(1, 2, 3)),
        largest=1024,
        public=False,
    ),
}
