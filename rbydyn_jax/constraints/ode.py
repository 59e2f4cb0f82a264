"""The dynamics as a term for the adaptive solvers and events of diffrax (extra ``ode``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from .._errors import DtypeError
from .._extras import require
from ..model.model import Model, check_model
from .contact import Contact, contact_forces
from .dynamics import DEFAULT_STABILIZATION, Stabilization
from .loops import LoopJoint
from .simulate import Control, state_derivative


def ode_term(
    model: Model,
    *,
    control: Control | None = None,
    loops: Sequence[LoopJoint] = (),
    contacts: Sequence[Contact] = (),
    stabilization: Stabilization = DEFAULT_STABILIZATION,
) -> Any:
    """The rate of x = [q; v] as a `diffrax.ODETerm`.

    It works with any solver, step size controller, event and adjoint of diffrax; `args` is ignored. Coordinates of
    constant length (quaternions, [sine, cosine]) drift by the solver's error, which moves no link: renormalize them
    afterwards with `normalize`. Modified Rodrigues parameters are singular at a full turn, which a solve must not
    reach. Contact friction has no bristles: it is viscous up to the Coulomb limit.

    Args:
        model: The robot.
        control: Joint torques or forces as a function (t, q, v) -> tau (nv,); None is none.
        loops: The joints that close loops.
        contacts: The contacts.
        stabilization: Gains of the loop joints; see `forward_dynamics`.

    Raises:
        DtypeError: `loops`, `contacts` or `stabilization` holds something else.
        MissingExtraError: diffrax is not installed.
        NameNotFoundError: A loop joint or a contact names a link that there is not.

    Example:
        >>> import diffrax
        >>> x = jnp.array([0.01, 0.0])
        >>> term = ode_term(robots.pendulum())
        >>> control = diffrax.PIDController(rtol=1e-8, atol=1e-10)
        >>> solved = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 2.00607, None, x, stepsize_controller=control)
        >>> round(float(solved.ys[0, 0]), 6)
        0.01
    """
    diffrax = require("diffrax", "ode", "ode_term")
    model = check_model(model)
    if control is not None and not callable(control):
        raise DtypeError(f"control must be a function (t, q, v) -> tau, got {type(control).__name__}")

    def rate(t: Array, x: Array, args: Any) -> Array:
        q, v = x[: model.nq], x[model.nq :]
        tau = jnp.zeros_like(v) if control is None else control(t, q, v)
        f_ext = contact_forces(model, q, v, contacts).f_ext if contacts else None
        return state_derivative(model, x, tau, loops, f_ext, stabilization=stabilization)

    return diffrax.ODETerm(rate)
