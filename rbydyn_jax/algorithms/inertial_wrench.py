"""The wrench that accelerates all bodies of a robot."""

from __future__ import annotations

from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial.algebra import Force
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep, Table
from ..sweeps.world_frame import inertia, inertias, motion, moving, total


def _taken(run: Sweep, v: Array, a: Array) -> Float[Array, "6"]:
    state = moving(run, v, a)

    def forces(N: Table, V: Table, A: Table) -> Force:
        body = inertia(N)
        return body.apply(motion(A)) + motion(V).cross_force(body.apply(motion(V)))

    return total(run, run.map_tables(forces, inertias(run, state.poses), state.V, state.A))


def inertial_wrench(model: Model, q: Array, v: Array, a: Array) -> Float[Array, "6"]:
    r"""The wrench $\sum_i I_i A_i + V_i \times^* I_i V_i$ that the moving bodies take, about the world origin.

    It is the rate of their momentum, less their weight; O(n).
    """
    return traverse(model, _taken, q, v, a, result="joints")
