"""References that know nothing of the library: exponentials and their derivatives, at singular angles on purpose."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm

from tests.helpers import X64

DTYPE = np.dtype(np.float64 if X64 else np.float32)
ANGLES = [0.0, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 2.0, 2.999, 3.0, 3.1]
ANGLES += [np.pi - 1e-6, np.pi, np.pi + 1e-6, 4.0, 6.0, 2 * np.pi]
AXES = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, 3], [-0.6, 0, 0.8], [-1, -1, 0.1]])
AXES = AXES / np.linalg.norm(AXES, axis=1, keepdims=True)


def array(x) -> jax.Array:
    """Numbers in the dtype of the run."""
    return jnp.asarray(x, DTYPE)


# Every angle about every axis: 132 rotation vectors.
PHI = array([angle * axis for angle in ANGLES for axis in AXES])
# The same with a translation.
XI = array(np.concatenate([PHI, np.random.default_rng(0).normal(size=PHI.shape)], axis=1))


def hat(v) -> np.ndarray:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], float)


SO3 = np.stack([hat(e) for e in np.eye(3)])
SE3 = np.zeros((6, 4, 4))
SE3[:3, :3, :3] = SO3
SE3[3:, :3, 3] = np.eye(3)


def exp_derivatives(generators: np.ndarray, coordinates: jax.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrix exponential of sum x_i G_i with its first and second derivatives, from exponentials of block matrices.

    Args:
        generators: (n, m, m).
        coordinates: (batch, n).

    Returns:
        Value (batch, m, m), first (batch, m, m, n) and second derivatives (batch, m, m, n, n).
    """
    n, m = generators.shape[:2]
    A = np.einsum("bn,nij->bij", np.asarray(coordinates, np.float64), generators)
    block = np.zeros((len(A), n, n, 4 * m, 4 * m))
    for k in range(4):
        block[..., k * m : (k + 1) * m, k * m : (k + 1) * m] = A[:, None, None]
    for row, column, pattern in ((0, 1, "i"), (2, 3, "i"), (0, 2, "j"), (1, 3, "j")):
        direction = generators[None, :, None] if pattern == "i" else generators[None, None, :]
        block[..., row * m : (row + 1) * m, column * m : (column + 1) * m] = direction
    full = expm(block)
    first = full[:, :, 0, :m, m : 2 * m]
    second = full[..., :m, 3 * m :]
    return full[:, 0, 0, :m, :m], np.moveaxis(first, 1, -1), np.moveaxis(second, (1, 2), (-2, -1))


def derivatives(f):
    """Batched value, forward and reverse Jacobian, and forward-over-reverse and reverse-over-reverse Hessian of f."""

    def all_of(x):
        forward, reverse = jax.jacfwd(f), jax.jacrev(f)
        return f(x), forward(x), reverse(x), jax.jacfwd(reverse)(x), jax.jacrev(reverse)(x)

    return lambda batch: [np.asarray(y, np.float64) for y in jax.jit(jax.vmap(all_of))(jnp.asarray(batch))]


def wrapped(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """phi - 2 pi phi/|phi|, the same rotation from the other side, with its Jacobian and Hessian."""
    phi = np.asarray(phi, np.float64)
    r = np.linalg.norm(phi)
    u, eye = phi / r, np.eye(3)
    first = (eye - np.outer(u, u)) / r
    three = 3.0 * np.einsum("i,j,k->ijk", u, u, u)
    second = (
        three - np.einsum("ij,k->ijk", eye, u) - np.einsum("ik,j->ijk", eye, u) - np.einsum("jk,i->ijk", eye, u)
    ) / r**2
    return phi - 2 * np.pi * u, eye - 2 * np.pi * first, -2 * np.pi * second


def principal(phi: np.ndarray, got: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What log(exp(phi)) must be with derivatives; within rounding of pi either side is right and `got` decides."""
    margin = 1e-7 if X64 else 1e-3
    r = float(np.linalg.norm(np.asarray(phi, np.float64)))
    beyond = r > np.pi if abs(r - np.pi) > margin else float(np.dot(got, phi)) < 0
    return wrapped(phi) if beyond else (np.asarray(phi, np.float64), np.eye(3), np.zeros((3, 3, 3)))
