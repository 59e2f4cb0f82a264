r"""The momenta of composite bodies, and how they change with the configuration.

In world axes the column $S_j$ of a joint's motions and the momentum $F_j = I^c_j S_j$ that it gives to all that the
joint carries make up the joint-space inertia matrix ($F_i \cdot S_j$) and the centroidal ones ($F_j$). A joint moved
along $s$ takes its subtree along as one: there $S$ and $F$ change by $s \times S$ and $s \times^* F$. Above it, the
composite inertias change by $s \times^* I^c - I^c s \times$, where $I^c$ is that of the joint.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array

from ..spatial.algebra import Force, Inertia, Motion, Sym3, Vec3
from ..sweeps.sweep import Sweep, Table
from ..sweeps.world_frame import Composites, force, inertia, motion, of_joints, per_dof
from ..xla.structural import Scalar, add, sub


def rates(run: Sweep, found: Composites, v: Array) -> tuple[Table, Table]:
    """The rates of S and of I_c S at a velocity."""
    driven = run.map_tables(lambda S, v: motion(S).scale(v), found.S, run.coordinates.spread_v(v))
    V, _ = run.sum_paths(driven)
    changes = run.map_tables(lambda N, V: inertia(N).rate(motion(V)), found.inertias, V)
    changes = run.sum_subtrees(changes)

    def moved(S: Table, C: Table, V: Table, change: Table) -> tuple[Motion, Force]:
        s = motion(S)
        rate = motion(V).cross(s)
        return rate, inertia(C).apply(rate) + inertia(change).apply(s)

    rows = run.map_tables(moved, found.S, *(per_dof(run, x) for x in (found.composite, V, changes)))
    return rows[:6], rows[6:]


class _Pairing(NamedTuple):
    """The sum of a . I b over pairs of motions, as a function of the inertia I: m m' + h . h' + tr(I T') / 2."""

    m: Scalar
    h: Vec3
    T: Sym3

    @staticmethod
    def of(a: Motion, b: Motion) -> _Pairing:
        """That of one pair."""
        both = a.w.outer(b.w)
        return _Pairing(a.v.dot(b.v), b.v.cross(a.w) + a.v.cross(b.w), (both + both.T).symmetric())

    def gradient(self, I: Inertia) -> Force:  # noqa: E741 - Featherstone's letter
        """The force whose power on a motion is the rate of the sum when the body moves along it."""
        T = self.T.full
        X = I.I.full @ T
        n = Vec3(sub(X.r1.z, X.r2.y), sub(X.r2.x, X.r0.z), sub(X.r0.y, X.r1.x)) + I.h.cross(self.h)
        trace = add(add(self.T.xx, self.T.yy), self.T.zz)
        return Force(n, self.h.scale(I.m) + I.h.scale(trace) - T.apply(I.h))


def gradient(run: Sweep, found: Composites, of_S: Table | None, of_momenta: Table) -> Array:
    """The gradient by q, as for velocities, of a function whose gradients by S and by I_c S are tables of 6 rows.

    Those by S are forces, those by momenta are motions.
    """

    def loads(S: Table, F: Table, W: Table, *f: Table) -> tuple[_Pairing, Force]:
        turned = motion(W).cross_force(force(F))
        return _Pairing.of(motion(W), motion(S)), turned - motion(S).cross_force(force(f[0])) if f else turned

    rows = run.map_tables(loads, found.S, found.momenta, of_momenta, *([] if of_S is None else [of_S]))
    _, above = run.sum_paths(rows[:10])
    below = run.sum_subtrees(of_joints(run, rows[10:]))

    def powers(C: Table, P: Table, f: Table) -> Force:
        pairing = _Pairing(P[0], Vec3(*P[1:4]), Sym3(*P[4:10]))
        return pairing.gradient(inertia(C)) - force(f)

    wrenches = run.map_tables(powers, found.composite, above, below)
    power = run.lanes(lambda S, f: motion(S).dot(force(f)))
    return run.coordinates.gather(power(found.S, per_dof(run, wrenches)))
