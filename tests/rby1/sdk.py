"""The vendor's library and ours side by side: one robot, one state, every quantity of both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

import rbydyn_jax.rby1.dynamics as ours
from rbydyn_jax import robots, to_urdf
from tests.helpers import oracle

sdk = oracle("rby1_sdk.dynamics")
DOFS = {"rby1a": 24, "rby1m": 26, "rby1ub": 18}
LIMITS = ("q_lower", "q_upper", "qdot_lower", "qdot_upper", "qddot_lower", "qddot_upper", "torque")
CHAIN = ("forward_kinematics", "diff_forward_kinematics", "2nd_diff_forward_kinematics")


@cache
def urdf(name: str) -> str:
    """The built-in robot as URDF text."""
    return to_urdf(getattr(robots, name)())


def make_robots(text: str, base: str = "base", dof: int | None = None) -> tuple[Any, Any]:
    """The same robot, theirs and ours; with `dof` of the class for it, which is the one whose mass matrix works."""
    made = []
    for library in (sdk, ours):
        configuration = library.load_robot_from_urdf_data(text, base)
        if base != "base":
            configuration.mobile_base = None  # whose wheels may be out of reach
        made.append(getattr(library, f"Robot_{dof}" if dof else "Robot")(configuration))
    return made[0], made[1]


def make_states(both: tuple[Any, Any], links: Sequence[str], joints: Sequence[str]) -> tuple[Any, Any]:
    theirs, mine = (robot.make_state(list(links), list(joints)) for robot in both)
    return theirs, mine


def random_motion(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    # Their cosine is sqrt(1 - sin^2), which loses digits near a quarter turn: up to 1e-8 of angle at 1e-8 from it.
    q = rng.uniform(-3.1, 3.1, n)
    q[np.abs(np.cos(q)) < 0.02] = 0.3
    motion = {"q": q, "qdot": rng.normal(size=n), "qddot": rng.normal(size=n)}
    return motion | {"V0": rng.normal(size=6), "Vdot0": 5 * rng.normal(size=6)}


def assert_same(got: Any, want: Any, what: str, tol: float = 1e-9) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype == np.float64, what
    assert got.shape == want.shape, (what, got.shape, want.shape)
    assert (np.isfinite(got) == np.isfinite(want)).all(), what
    finite = np.isfinite(want)
    error = np.abs(got[finite] - want[finite]).max(initial=0.0)
    assert error <= tol * max(1.0, np.abs(want[finite]).max(initial=0.0)), (what, error)


def assert_all_same(both: tuple[Any, Any], states: tuple[Any, Any], pairs: Sequence[tuple[int, int]], M: bool) -> None:
    """Every quantity that both compute without writing, for these reference and target links."""

    def compare(what: str, *args: Any) -> None:
        theirs, mine = (getattr(r, f"compute_{what}")(s, *args) for r, s in zip(both, states, strict=True))
        assert_same(mine, theirs, f"{what}{args}")

    compare("gravity_term")
    if M:
        compare("mass_matrix")
    for ref, tgt in pairs:
        for what in ("transformation", "body_velocity", "space_jacobian", "body_jacobian"):
            compare(what, ref, tgt)
        for what in ("center_of_mass", "center_of_mass_jacobian"):
            compare(what, ref, tgt)
            compare(what, ref)
        compare("center_of_mass", ref, [tgt, ref, tgt])
        compare("total_inertial", ref)
        theirs, mine = (r.compute_mass(s, tgt) for r, s in zip(both, states, strict=True))
        assert type(mine) is float and abs(mine - theirs) <= 1e-12
