"""The mass matrix in blocks of limbs, to be solved for.

Eliminated from the leaves to the root, it keeps its zeros between limbs [Featherstone 2008, sec. 6.5, here by blocks].
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..xla.batch_last import broadcast_leading
from ..xla.fusion import barrier
from ..xla.layout import batch_first
from ..xla.reciprocal import reciprocal
from ..xla.tuning import LONGEST_SUM, SMALL_MATRIX
from .sweep import Sweep, Table
from .topology import Blocks, dof_bodies, in_a_row, limbs, masks, whole
from .world_frame import outer, symmetric, symmetric_products

Found = dict[tuple[int, int], jax.Array]
Entries = Mapping[tuple[int, int], jax.Array]  # by the block of the row and that of the column; others are zero


class BlockMatrix(NamedTuple):
    """A symmetric matrix: the entries of each block with itself and with its ancestors, or with those before it."""

    blocks: Blocks
    entries: Entries

    @staticmethod
    def of(blocks: Blocks, dense: jax.Array) -> BlockMatrix:
        """The parts of a whole matrix."""
        part = blocks.slices
        return BlockMatrix(blocks, {(j, i): dense[part[j], part[i]] for j, i in blocks.pairs})

    def dense(self, run: Sweep) -> jax.Array:
        """The whole matrix, in lanes."""
        sizes = [_size(part) for part in self.blocks.slices]
        if not sizes:
            return jnp.zeros((0, 0), run.dtype)

        def block(entries: Entries, j: int, i: int) -> jax.Array:
            if (j, i) in entries:
                return entries[j, i]
            if (i, j) in entries:
                return _T(entries[i, j])
            like = entries[0, 0]
            return jnp.zeros((sizes[j], sizes[i], *like.shape[2:]), like.dtype)

        def joined(entries: Entries) -> jax.Array:
            columns = range(len(sizes))
            rows = [jnp.concatenate([block(entries, j, i) for i in columns], axis=1) for j in columns]
            return jnp.concatenate(rows)

        return run.lanes(joined)(self.entries)


def _size(part: slice) -> int:
    return part.stop - part.start


def mass_matrix(run: Sweep, momenta: Table, S: Table) -> BlockMatrix:
    """The joint-space inertia matrix, of the columns of S and of I_c S."""
    if run.tree.has_mimics:  # they couple distant joints
        return BlockMatrix.of(in_a_row(run.tree.nv), symmetric(run, momenta, S))
    blocks = limbs(run.tree) if run.unrolls else whole(len(dof_bodies(run.tree)))
    below, same = masks(run.tree)

    def entries(momenta: Table, S: Table, armature: jax.Array) -> Found:
        def part(table: Table, block: int) -> list[jax.Array]:
            return [row[blocks.slices[block]] for row in table]

        found = {(j, i): outer(part(momenta, j), part(S, i)) for j, i in blocks.pairs if i != j}
        for k, own in enumerate(blocks.slices):
            own_below, own_same = below[own, own], same[own, own]
            found[k, k] = symmetric_products(part(momenta, k), part(S, k), armature[own], own_below, own_same)
        return found

    return BlockMatrix(blocks, run.fused_map(entries)(momenta, S, run.coordinates.armature))


def _sum_of_products(a: Array, b: Array) -> Array:
    return _sum(a[:, k, None] * b[None, k] for k in range(len(b)))


def _product(a: Array, b: Array) -> Array:
    if max(*a.shape, *b.shape) > SMALL_MATRIX:
        return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
    # XLA:CPU takes several times as long for a batch of products of matrices as small as these.
    a, b = barrier((a, b))
    return barrier(_sum_of_products(a, b))


def inverse_by_blocks(M: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The inverse of a symmetric positive definite matrix, by elimination of blocks, halved down to single entries.

    Nearly all of it is products of matrices: for a batch of small ones several times as fast as Cholesky factors.
    """
    n = M.shape[0]
    if n < 2:
        return 1.0 / M
    k, dense = n // 2, batch_first(M)
    A, B, C = dense[:k, :k], dense[:k, k:], dense[k:, k:]
    A_inverse = inverse_by_blocks(A)
    W = _product(A_inverse, B)
    S_inverse = inverse_by_blocks(C - _product(B.T, W))
    X = _product(W, S_inverse)
    top = jnp.concatenate([A_inverse + _product(X, W.T), -X], axis=1)
    return jnp.concatenate([top, jnp.concatenate([-X.T, S_inverse], axis=1)])


def _swept(M: jax.Array) -> list[jax.Array]:
    """The lower triangle, by rows, of the inverse of a small symmetric matrix: the sweep operator on scalars."""
    n = M.shape[0]
    A = [[M[i, j] for j in range(i + 1)] for i in range(n)]
    for k in range(n):
        inverse = reciprocal(A[k][k])
        column = [A[max(i, k)][min(i, k)] for i in range(n)]
        scaled = [x * inverse for x in column]
        for i in range(n):
            for j in range(i + 1):
                if i == k or j == k:
                    A[i][j] = -inverse if i == j else scaled[j if i == k else i]
                else:
                    A[i][j] = A[i][j] - scaled[i] * column[j]
    return [-x for row in A for x in row]


def _inverses(run: Sweep, of: Mapping[int, jax.Array]) -> dict[int, jax.Array]:
    if not run.unrolls:
        return {b: _mirrored(inverse_by_blocks(x)) for b, x in of.items()}

    def full(triangles: dict[int, list[Any]]) -> dict[int, jax.Array]:
        found = {}
        for b, entries in triangles.items():
            n = len(of[b])
            places = [(max(i, j), min(i, j)) for i in range(n) for j in range(n)]
            rows = jnp.stack([entries[i * (i + 1) // 2 + j] for i, j in places])
            found[b] = rows.reshape(n, n, *rows.shape[1:])
        return found

    return run.lanes(full)(run.fused_map(lambda of: {b: _swept(x) for b, x in of.items()})(of))


def _times(a: jax.Array, b: jax.Array) -> jax.Array:
    """a b, in lanes."""
    if len(b) > LONGEST_SUM:
        return jnp.einsum("ij...,jk...->ik...", a, b, precision=jax.lax.Precision.HIGHEST)
    return _sum_of_products(a, b)


def _apply(M: jax.Array, x: jax.Array) -> jax.Array:
    return _times(M, x[:, None])[:, 0]


def refined_solve(run: Sweep, M: BlockMatrix, M_inverse: jax.Array, b: jax.Array) -> jax.Array:
    """M^-1 b by the inverse, in lanes, and one step of iterative refinement [Higham 2002, chapter 12].

    An inverse alone leaves a residual that grows with the condition of M, which mass matrices of 1e8 show.
    """

    def applied(entries: Entries, x: jax.Array) -> jax.Array:
        parts = [x[part] for part in M.blocks.slices]
        rows = [_apply(entries[k, k], part) for k, part in enumerate(parts)]
        for (j, i), entry in entries.items():
            if i != j:
                rows[j] = rows[j] + _apply(entry, parts[i])
                rows[i] = rows[i] + _apply(_T(entry), parts[j])
        return jnp.concatenate(rows)

    def refined(entries: Entries, M_inverse: jax.Array, b: jax.Array) -> jax.Array:
        x = _apply(M_inverse, b)
        return x + _apply(M_inverse, b - applied(entries, x))

    return run.lanes(refined)(M.entries, M_inverse, b) if len(b) else b


def _T(x: jax.Array) -> jax.Array:
    return jnp.swapaxes(x, 0, 1)


def _mirrored(x: jax.Array) -> jax.Array:
    """A matrix made symmetric to the last bit; a mean would not be, where a product and the sum are rounded as one."""
    return jnp.where(broadcast_leading(np.tri(len(x), dtype=bool), x), x, _T(x))


def _sum(terms: Iterable[jax.Array]) -> jax.Array:
    return functools.reduce(jax.lax.add, terms)


def inverse(run: Sweep, M: BlockMatrix) -> BlockMatrix:
    """The inverse of a positive definite matrix; blocks that carry as many others below each other at once."""
    blocks, levels = M.blocks, M.blocks.levels
    # M is L^T D L: of each block and its ancestors, D^-1, L, and D L.
    D_inverse: dict[int, jax.Array] = {}
    L: dict[tuple[int, int], jax.Array] = {}
    DL: dict[tuple[int, int], jax.Array] = {}

    def less(rows: Found, L: Found, DL: Found) -> Found:
        def carried(b: int, i: int) -> jax.Array:
            return _sum(_times(_T(DL[d, b]), L[d, i]) for d in blocks.below[b])

        return {(b, i): x - carried(b, i) for (b, i), x in rows.items()}

    for level in reversed(levels):
        rows = {(b, i): M.entries[b, i] for b in level for i in (*blocks.above[b], b)}
        if any(blocks.below[b] for b in level):
            rows |= run.fused_map(less)({key: x for key, x in rows.items() if blocks.below[key[0]]}, L, DL)
        D_inverse |= _inverses(run, {b: rows.pop((b, b)) for b in level})
        DL.update(rows)
        if rows:
            scaled = run.fused_map(lambda D, rows: {(b, i): _times(D[b], x) for (b, i), x in rows.items()})
            L.update(scaled(D_inverse, rows))

    def across(b: int, k: int, L: Found, X: Found) -> jax.Array:
        return _sum(_times(L[b, a], X[a, k] if (a, k) in X else _T(X[k, a])) for a in blocks.above[b])

    def to_those_above(L: Found, X: Found, pairs: Sequence[tuple[int, int]]) -> Found:
        return {(b, k): -across(b, k, L, X) for b, k in pairs}

    def to_those_beside(D: dict[int, jax.Array], L: Found, X: Found, level: Sequence[int]) -> Found:
        pairs = [(b, k) for b in level for k in level if k < b and blocks.root(k) == blocks.root(b)]
        found = to_those_above(L, X, pairs)
        for b in level:
            found[b, b] = D[b] - _mirrored(across(b, b, L, X))
        return found

    X = {(b, b): D_inverse[b] for b in levels[0]} if levels else {}
    for depth, level in enumerate(levels[1:], start=1):
        known = [k for upper in levels[:depth] for k in upper]
        pairs = [(b, k) for b in level for k in known if blocks.root(k) == blocks.root(b)]
        X.update(run.fused_map(functools.partial(to_those_above, pairs=pairs))(L, X))
        X.update(run.fused_map(functools.partial(to_those_beside, level=level))(D_inverse, L, X))
    return BlockMatrix(blocks, X)
