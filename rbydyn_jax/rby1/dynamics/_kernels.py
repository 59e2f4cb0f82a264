"""The recursions of the SDK, solved in the base frame, where each is a sum over ancestors or descendants.

The twist of body i is the sum of the screws above it, each times its velocity; the wrench on joint i is the sum of
those on the bodies below it. The sums of all bodies together are one product with the 0/1 matrix of the tree. The mass
matrix is W^T W, where W has the twist of each body for each joint, times a root of the body's inertia. Forward
kinematics multiplies along the tree by doubling: round k joins runs of 2^k joints. Nothing loops over joints, a call
costs a dozen numpy operations, and what several calls need of one configuration is computed once.

What the SDK keeps in body frames (twists and accelerations) is kept so here too: they outlive a new forward kinematics,
and then mean what they mean there.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ..._errors import StaleStateError
from ._algebra import adjoint, apply, bracket, swap
from ._state import State
from ._structure import Structure


def forward_kinematics(model: Structure, state: State) -> None:
    """Caches the poses T_i = T_parent exp([S_i] q_i)."""
    T = model.exponentials(state._q)
    for jump in model.jumps:
        T = T.take(jump, 0) @ T
    state._place(T)


def adjoints(state: State) -> Float[np.ndarray, "b 6 6"]:
    """Ad(T_i) of each body, at the cached poses."""
    if state._Ad is None:
        state._Ad = adjoint(state._T)
    return state._Ad


def in_base(model: Structure, state: State) -> Float[np.ndarray, "b 6 7"]:
    """Of each body P times the root of its inertia, and the screw of its joint, both in the base frame."""
    if state._in_base is None:
        state._in_base = adjoints(state) @ model.in_bodies
    return state._in_base


def screws(model: Structure, state: State) -> Float[np.ndarray, "n 6"]:
    """The screw of each joint in the base frame, at the cached poses."""
    return in_base(model, state)[1:, :, 6]


def columns(model: Structure, state: State) -> Float[np.ndarray, "n 6"]:
    """The screws, swapped and in the state's order of joints: P times the columns of a Jacobian."""
    if state._columns is None:
        state._columns = in_base(model, state).take(state._column_entries)
    return state._columns


def scaled_motions(model: Structure, state: State) -> tuple[Float[np.ndarray, "6 m"], Float[np.ndarray, "n m"]]:
    """P Ad^-T L of all bodies, with the roots L of their inertias, and W^T: this for the screws that move each body.

    Joints are in the state's order.
    """
    if state._scaled is None:
        roots = in_base(model, state)[1:, :, :6].transpose(1, 0, 2).reshape(6, -1)
        W = columns(model, state).dot(roots)
        W *= state._moved
        state._scaled = roots, W
    return state._scaled


def diff_forward_kinematics(model: Structure, state: State) -> None:
    """Caches the twists V_i = S_i qdot_i + Ad(E_i^-1) V_parent of the bodies, from the current velocities."""
    twists = state._V0 + model.above.T @ (screws(model, state) * state._qdot[:, None])
    state._V = _to_bodies(state, twists)


def second_diff_forward_kinematics(model: Structure, state: State) -> None:
    """Caches the accelerations S_i qddot_i + Ad(E_i^-1) Vdot_parent + ad(V_i) S_i qdot_i, with the cached twists."""
    rates = model.screws * state._qdot[:, None]
    own = model.screws * state._qddot[:, None] + apply(bracket(state._V), rates)
    accelerations = state._Vdot0 + model.above.T @ apply(adjoints(state)[1:], own)
    state._Vdot = _to_bodies(state, accelerations)


def inverse_dynamics(model: Structure, state: State) -> None:
    """Writes the torques of the wrenches J Vdot - ad(V)^T J V, with the cached twists and accelerations.

    Raises:
        StaleStateError: There are no accelerations yet.
    """
    if state._Vdot is None:
        raise StaleStateError("call compute_2nd_diff_forward_kinematics(state) before compute_inverse_dynamics")
    J = model.inertias[1:]
    wrenches = apply(J, state._Vdot) - apply(bracket(state._V).swapaxes(1, 2), apply(J, state._V))
    state._tau = _torques(model, state, apply(adjoints(state)[1:], swap(wrenches)))


def gravity_term(model: Structure, state: State) -> Float[np.ndarray, "n"]:
    """The torques that accelerate all bodies by the current Vdot0, in the state's order."""
    roots, W = scaled_motions(model, state)
    accelerations = swap(state._Vdot0).dot(roots)
    return W.dot(accelerations if model.signs is None else accelerations * model.signs)


def mass_matrix(model: Structure, state: State) -> Float[np.ndarray, "n n"]:
    """W^T D W: the sum over the bodies of the squares of their scaled motions, in the state's order."""
    W = scaled_motions(model, state)[1]
    return W.dot(W.T if model.signs is None else (W * model.signs).T)


def space_inertias(model: Structure, state: State) -> Float[np.ndarray, "b 6 6"]:
    """P J P of each body's inertia in the base frame."""
    Ad = adjoints(state)
    return Ad @ model.swapped_inertias @ Ad.swapaxes(1, 2)


def reflected_inertia(M: Float[np.ndarray, "n n"], J: Float[np.ndarray, "6 n"]) -> Float[np.ndarray, "6 6"]:
    """pinv(J pinv(M) J^T): a plain inverse where the rank is clearly full."""
    try:
        half = np.linalg.solve(M, J.T)
        mobility = J @ half
        inertia = np.linalg.inv(mobility)
    except np.linalg.LinAlgError:
        return _pseudo_reflected_inertia(M, J)
    square = np.vdot  # of a matrix with itself: of its Frobenius norm
    certain = square(mobility, mobility) * square(inertia, inertia) < 1e16 and (
        square(half, half) * square(M, M) < 1e20 * square(J, J)  # the condition of M, as far as J sees it
    )
    return inertia if certain else _pseudo_reflected_inertia(M, J)


def _pseudo_reflected_inertia(M: Float[np.ndarray, "n n"], J: Float[np.ndarray, "6 n"]) -> Float[np.ndarray, "6 6"]:
    """Through the singular values of pinv(sqrt(M)) J^T, whose squares are the eigenvalues of J pinv(M) J^T."""
    if not (np.isfinite(M).all() and np.isfinite(J).all()):
        return np.full((6, 6), np.nan)
    eps = np.finfo(np.float64).eps
    values, vectors = np.linalg.eigh(M)
    moving = values > len(M) * eps * np.abs(values).max(initial=0.0)
    half = (vectors[:, moving] / np.sqrt(values[moving])).T @ J.T
    _, singular, directions = np.linalg.svd(half, full_matrices=False)
    # Rank as the SDK counts it, by the eigenvalues; what a lost rank leaves here is far below.
    kept = singular > np.sqrt(6 * eps) * singular.max(initial=0.0)
    scaled = directions[kept] / singular[kept, None]
    return scaled.T @ scaled


def _to_bodies(state: State, motions: Float[np.ndarray, "n 6"]) -> Float[np.ndarray, "n 6"]:
    return swap(apply(adjoints(state)[1:].swapaxes(1, 2), swap(motions)))


def _torques(model: Structure, state: State, wrenches: Float[np.ndarray, "n 6"]) -> Float[np.ndarray, "n"]:
    """Of the swapped wrenches on each body, in the base frame."""
    return (swap(screws(model, state)) * (model.above @ wrenches)).sum(1)
