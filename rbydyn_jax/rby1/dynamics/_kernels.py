"""The recursions of the SDK, solved in the base frame, where each is a sum over ancestors or descendants.

The twist of body i is the sum of the screws above it, each times its velocity; the wrench on joint i is the sum of
those on the bodies below it; so is its composite inertia. The sums of all bodies together are one product with the 0/1
matrix of the tree. Forward kinematics multiplies along the tree by doubling: round k joins runs of 2^k joints. Nothing
loops over joints, and a call costs a dozen numpy operations.

What the SDK keeps in body frames (twists and accelerations) is kept so here too: they outlive a new forward kinematics,
and then mean what they mean there.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ..._errors import StaleStateError
from ._algebra import adjoint, apply, bracket, swap, swap_both
from ._state import State
from ._structure import Structure


def forward_kinematics(model: Structure, state: State) -> None:
    """Caches the poses T_i = T_parent exp([S_i] q_i)."""
    T = model.exponentials(state._q)
    for jump in model.jumps:
        T = T.take(jump, axis=0) @ T
    state._place(T)


def adjoints(state: State) -> Float[np.ndarray, "b 6 6"]:
    """Ad(T_i) of each body, at the cached poses."""
    if state._Ad is None:
        state._Ad = adjoint(state._T)
    return state._Ad


def screws(model: Structure, state: State) -> Float[np.ndarray, "n 6"]:
    """The screw of each joint in the base frame, at the cached poses."""
    if state._screws is None:
        state._screws = apply(adjoints(state)[1:], model.screws)
    return state._screws


def composite_inertias(model: Structure, state: State) -> Float[np.ndarray, "n 6 6"]:
    """The inertia of all that each joint moves, in the base frame, at the cached poses."""
    if state._composite is None:
        inertias = space_inertias(model, state)[1:].reshape(-1, 36)
        state._composite = swap_both((model.above @ inertias).reshape(-1, 6, 6))
    return state._composite


def diff_forward_kinematics(model: Structure, state: State) -> None:
    """Caches the twists V_i = S_i qdot_i + Ad(E_i^-1) V_parent of the bodies, from the current velocities."""
    in_base = state._V0 + model.above.T @ (screws(model, state) * state._qdot[:, None])
    state._V = _to_bodies(state, in_base)


def second_diff_forward_kinematics(model: Structure, state: State) -> None:
    """Caches the accelerations S_i qddot_i + Ad(E_i^-1) Vdot_parent + ad(V_i) S_i qdot_i, with the cached twists."""
    rates = model.screws * state._qdot[:, None]
    own = model.screws * state._qddot[:, None] + apply(bracket(state._V), rates)
    in_base = state._Vdot0 + model.above.T @ apply(adjoints(state)[1:], own)
    state._Vdot = _to_bodies(state, in_base)


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
    """The torques that accelerate all bodies by the current Vdot0: S_i^T J Vdot0 with the composite inertias J."""
    wrenches = (composite_inertias(model, state).reshape(-1, 6) @ state._Vdot0).reshape(-1, 6)
    return (screws(model, state) * wrenches).sum(1)


def mass_matrix(model: Structure, state: State) -> Float[np.ndarray, "n n"]:
    """M_ij = S_i^T J S_j with the composite inertia J of the further one of two joints on a path, else 0."""
    S = screws(model, state)
    # An entry is right where joint i is above joint j, and there alone it is used.
    upper = (S @ apply(composite_inertias(model, state), S).T) * model.halves
    return upper + upper.T


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


def _to_bodies(state: State, in_base: Float[np.ndarray, "n 6"]) -> Float[np.ndarray, "n 6"]:
    return swap(apply(adjoints(state)[1:].swapaxes(1, 2), swap(in_base)))


def _torques(model: Structure, state: State, wrenches: Float[np.ndarray, "n 6"]) -> Float[np.ndarray, "n"]:
    """Of the swapped wrenches on each body, in the base frame."""
    return (swap(screws(model, state)) * (model.above @ wrenches)).sum(1)
