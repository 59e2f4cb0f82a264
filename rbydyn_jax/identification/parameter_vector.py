"""The parameters of a robot that its torques depend on linearly, as one vector with names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_sequence
from .._errors import ArgumentError, ModelError
from ..model.model import Model, check_model
from ..sweeps.topology import ancestors, dof_bodies
from .regressors import INERTIAL_NAMES, actuator_regressor, torque_regressor

Term = Literal["inertia", "armature", "damping", "friction"]
TERMS: tuple[Term, ...] = get_args(Term)


def check_moving(model: Model) -> Model:
    """The robot, which has joints.

    Raises:
        DtypeError: `model` is no robot.
        ModelError: It has none.
    """
    if not check_model(model).nv:
        raise ModelError("the robot has no joints: there are no torques that its parameters could be identified from")
    return model


def check_terms(terms: Sequence[str]) -> tuple[Term, ...]:
    """The terms in the order of `TERMS`.

    Raises:
        ArgumentError: There is none, or one is unknown.
        DtypeError: `terms` is not a sequence.
    """
    chosen = check_sequence(terms, "terms", f"some of {', '.join(TERMS)}")
    if not chosen or any(x not in TERMS for x in chosen):
        raise ArgumentError(f"terms must be a sequence of some of {', '.join(TERMS)}; got {terms!r}")
    return tuple(x for x in TERMS if x in terms)


def body_names(model: Model) -> tuple[str, ...]:
    """For each body the link whose frame is the body's; its parameters are those of all links welded to it."""
    return tuple(model.link_names[k] for k in model.tree.principal_links)


def velocity_names(model: Model) -> tuple[str, ...]:
    """For each velocity the joint, with a number where the joint has several."""
    tree = model.tree
    own = [i for i, mimic in enumerate(tree.mimics) if mimic is None]
    return tuple(
        tree.joint_names[i] if tree.joints[i].nv == 1 else f"{tree.joint_names[i]}[{k}]"
        for i in own
        for k in range(tree.joints[i].nv)
    )


def parameter_names(model: Model, terms: Sequence[Term] = TERMS) -> tuple[str, ...]:
    """The names of `parameters`: `m of upper_arm`, `friction of elbow`.

    Args:
        model: The robot.
        terms: Some of ``"inertia"``, ``"armature"``, ``"damping"``, ``"friction"``; always in this order.

    Raises:
        ArgumentError: A term is unknown.

    Example:
        >>> from rbydyn_jax.identification import parameter_names
        >>> parameter_names(robots.pendulum(), ("friction", "inertia"))[-2:]
        ('Izz of bob', 'friction of hinge')
    """
    model, terms = check_model(model), check_terms(terms)
    names = [f"{x} of {body}" for body in body_names(model) for x in INERTIAL_NAMES] if "inertia" in terms else []
    return (*names, *(f"{term} of {x}" for term in terms if term != "inertia" for x in velocity_names(model)))


def parameters(model: Model, terms: Sequence[Term] = TERMS) -> Float[Array, "p"]:
    """The vector of inertial parameters (ten for each body), armature, damping and friction (one for each velocity).

    Args:
        model: The robot.
        terms: Which of them; see `parameter_names`.

    Raises:
        ArgumentError: A term is unknown.
    """
    model = check_model(model)
    return jnp.concatenate([jnp.ravel(getattr(model, _FIELDS[term])) for term in check_terms(terms)])


def with_parameters(model: Model, values: Float[Array, "p"], terms: Sequence[Term] = TERMS) -> Model:
    """The same robot with other `parameters`; compiles nothing anew, and may be traced or vmapped.

    Links that are welded to a body keep their inertia, so that the link that names the body takes the difference.

    Args:
        model: The robot.
        values: The parameters, as `parameters` returns them.
        terms: Which of them.

    Raises:
        ArgumentError: A term is unknown.
        ShapeError: `values` has another shape.
    """
    model, at = check_model(model), 0
    values = check_array(values, "values", parameters(model, terms).shape)
    for term in check_terms(terms):
        old = getattr(model, _FIELDS[term])
        new = values[at : at + old.size].reshape(old.shape).astype(old.dtype)
        model = eqx.tree_at(lambda m, name=_FIELDS[term]: getattr(m, name), model, new)
        at += old.size
    return model


_FIELDS: dict[Term, str] = {
    "inertia": "inertias",
    "armature": "armature",
    "damping": "damping",
    "friction": "friction",
}


def regressor(model: Model, q: Array, v: Array, a: Array, terms: Sequence[Term], width: float | None) -> Array:
    """The matrix (nv, p) of the motors' torques in the parameters."""
    drives = actuator_regressor(model, v, a, width)
    nv = model.nv
    columns = {
        "inertia": lambda: torque_regressor(model, q, v, a),
        "armature": lambda: drives[:, :nv],
        "damping": lambda: drives[:, nv : 2 * nv],
        "friction": lambda: drives[:, 2 * nv :],
    }
    return jnp.concatenate([columns[term]() for term in terms], axis=1)


def columns_of_rows(model: Model, terms: Sequence[Term]) -> list[np.ndarray]:
    """For each velocity the parameters on which its torque can depend."""
    tree = model.tree
    owner, nv = np.array(dof_bodies(tree)), model.nv
    driven = np.concatenate([np.arange(s.start, s.stop) for s in tree.v_slices])
    related = np.zeros((nv, tree.nb), bool)
    for dof, row in enumerate(driven):
        related[row] |= ancestors(tree)[:, owner[dof]]
    blocks = [np.repeat(related, 10, axis=1) if term == "inertia" else np.eye(nv, dtype=bool) for term in terms]
    return [np.flatnonzero(row) for row in np.concatenate(blocks, axis=1)]
