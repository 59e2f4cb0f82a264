"""What differs from one robot of a kind to the next, drawn at random: masses, friction, gains, payload."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._check import check_array, check_each, check_key, check_not_negative, check_number
from .._errors import DtypeError, ShapeError
from .._jit import jit_public
from ..model.edit import attach_payload, with_damping, with_friction
from ..model.model import Model, check_model

Each = Float[Array, "n"] | Float[Array, ""] | float


class Parameters(eqx.Module):
    """What is uncertain about a robot; or one end of the range that it is drawn from.

    One number is that of each body, or of each joint. The defaults are a robot as it is modelled, without friction.

    Attributes:
        masses: Factor of the mass, the first moment and the inertia of each body.
        damping: Viscous friction of each joint [N m s/rad, N s/m].
        friction: Dry friction of each joint [N m, N].
        gains: Factor of the stiffness and of the damping of the servos.
        payload: Mass at the origin of the hand [kg].
    """

    masses: Each
    damping: Each
    friction: Each
    gains: Float[Array, ""] | float
    payload: Float[Array, ""] | float

    def __init__(
        self, *, masses: Any = 1.0, damping: Any = 0.0, friction: Any = 0.0, gains: Any = 1.0, payload: Any = 0.0
    ) -> None:
        """Shapes are checked against the robot, where it is known.

        Raises:
            ArgumentError: A number is negative or not finite, where values are known.
            DtypeError: An argument is not numeric.
            ShapeError: `gains` or `payload` is not one number.
        """
        self.masses, self.damping = _not_negative(masses, "masses"), _not_negative(damping, "damping")
        self.friction = _not_negative(friction, "friction")
        self.gains, self.payload = _not_negative(gains, "gains", ()), _not_negative(payload, "payload", ())


def _not_negative(x: Any, name: str, shape: tuple[int, ...] | None = None) -> jax.Array:
    array = check_array(check_number(x, name) if isinstance(x, int) else x, name, shape)
    check_not_negative(array, name)
    return array


def check_parameters(model: Model, parameters: Any, name: str) -> Parameters:
    """The parameters with a number for each body and each joint, in the dtype of the robot.

    Raises:
        DtypeError: They are no `Parameters`.
        ShapeError: A field does not fit the robot.
    """
    if not isinstance(parameters, Parameters):
        raise DtypeError(f"{name} must be an envs.Parameters, got {type(parameters).__name__}")
    sizes = {"masses": (model.nb, "model.nb"), "damping": (model.nv, "model.nv"), "friction": (model.nv, "model.nv")}
    each = [check_each(_value(parameters, x), f"{name}.{x}", *size) for x, size in sizes.items()]
    full = eqx.tree_at(lambda p: [getattr(p, x) for x in sizes], parameters, each)
    return jax.tree.map(lambda x: jnp.asarray(x, model.inertias.dtype), full)


def _value(parameters: Parameters, name: str) -> Any:
    value = getattr(parameters, name)
    return jnp.asarray(value) if np.ndim(value) else value


@jit_public()
def draw_parameters(lower: Parameters, upper: Parameters, key: PRNGKeyArray) -> Parameters:
    """Draws each number uniformly between two.

    Args:
        lower: The lower ends.
        upper: The upper ends, of the same shapes.
        key: A key of `jax.random`.

    Raises:
        DtypeError: `lower` or `upper` is no `Parameters`, or `key` is no key.
        ShapeError: A field of one has another shape than that of the other.

    Example:
        >>> light, heavy = envs.Parameters(payload=1.0), envs.Parameters(payload=3.0)
        >>> draw = envs.draw_parameters(light, heavy, jax.random.key(0))
        >>> bool((draw.payload > 1.0) & (draw.payload < 3.0)), float(draw.masses)
        (True, 1.0)
    """
    key = check_key(key)
    for name, x in (("lower", lower), ("upper", upper)):
        if not isinstance(x, Parameters):
            raise DtypeError(f"{name} must be an envs.Parameters, got {type(x).__name__}")
    low, structure = jax.tree.flatten(lower)
    high = jax.tree.leaves(upper)
    for name, a, b in zip(("masses", "damping", "friction", "gains", "payload"), low, high, strict=True):
        if jnp.shape(a) != jnp.shape(b):
            raise ShapeError(f"lower.{name} and upper.{name} must have one shape, got {a.shape} and {b.shape}")
    keys = jax.random.split(key, len(low))
    drawn = [
        a + (b - a) * jax.random.uniform(k, jnp.shape(a), jnp.result_type(a))
        for k, a, b in zip(keys, low, high, strict=True)
    ]
    return jax.tree.unflatten(structure, drawn)


@jit_public("hand")
def with_parameters(model: Model, hand: str | int, parameters: Parameters) -> Model:
    """The same robot with drawn masses, friction and payload, without recompilation.

    The links that are welded to a body are scaled with it.

    Args:
        model: The robot.
        hand: The link that holds the payload, by name or index.
        parameters: The draw; its `gains` are of the servos, not of the robot.

    Raises:
        DtypeError: `parameters` is no `Parameters`.
        NameNotFoundError: There is no such link.
        ShapeError: A field of `parameters` does not fit the robot.

    Example:
        >>> heavy = envs.Parameters(masses=2.0, payload=0.5)
        >>> float(total_mass(envs.with_parameters(robots.pendulum(mass=1.5), "bob", heavy)))
        3.5
    """
    model = check_model(model)
    drawn = check_parameters(model, parameters, "parameters")
    masses = jnp.asarray(drawn.masses)
    of_slots = sorted(
        (slot, body) for slot, body in zip(model.tree.welded_slots, model.tree.link_bodies, strict=True) if slot >= 0
    )
    on_links = jnp.append(masses, 1.0)[np.array([body for _, body in of_slots], int)]  # of the world, -1, it is 1
    scaled = model.inertias * masses[:, None], model.welded_inertias * on_links[:, None]
    model = eqx.tree_at(lambda m: (m.inertias, m.welded_inertias), model, scaled)
    model = with_friction(with_damping(model, drawn.damping), drawn.friction)
    return attach_payload(model, hand, drawn.payload)
