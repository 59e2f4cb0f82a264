"""Robots that come with the library, written with the builder; each function returns a `Model`.

The functions named `describe_*` in `descriptions` return the same robots as plain data, which can be edited before they
are built. RB-Y1 is a product of Rainbow Robotics; its data are those published by the manufacturer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import descriptions as descriptions

if TYPE_CHECKING:
    from ..io.description import RobotDescription
    from ..model.model import Model


def _built(description: RobotDescription, options: dict[str, Any]) -> Model:
    from ..io.build import build_model  # the descriptions alone take no JAX

    return build_model(description, **options)


def rby1a(**options: Any) -> Model:
    """Returns the Rainbow Robotics RB-Y1 A, version 1.2: two wheels, torso, two arms, head; 24 joints.

    Args:
        **options: `base_link`, `floating_base`, `joint_order`, `gravity`, `dtype`; see `rbydyn_jax.io.build_model`.

    Example:
        >>> rby1a().nv
        24
    """
    return _built(descriptions.describe_rby1a(), options)


def rby1m(**options: Any) -> Model:
    """Returns the Rainbow Robotics RB-Y1 M, version 1.3: four mecanum wheels, torso, two arms, head; 26 joints.

    Args:
        **options: `base_link`, `floating_base`, `joint_order`, `gravity`, `dtype`; see `rbydyn_jax.io.build_model`.

    Example:
        >>> rby1m().nv
        26
    """
    return _built(descriptions.describe_rby1m(), options)


def rby1ub(**options: Any) -> Model:
    """Returns the Rainbow Robotics RB-Y1 UB: hip, two arms, head; 18 joints.

    Args:
        **options: `base_link`, `floating_base`, `joint_order`, `gravity`, `dtype`; see `rbydyn_jax.io.build_model`.

    Example:
        >>> rby1ub().nv
        18
    """
    return _built(descriptions.describe_rby1ub(), options)


def pendulum(mass: float = 1.0, length: float = 1.0, **options: Any) -> Model:
    """Returns a point mass on a massless bar that swings about y; at q = 0 it hangs down.

    Args:
        mass: Mass of the bob [kg].
        length: Length of the bar [m].
        **options: See `rbydyn_jax.io.build_model`.

    Example:
        >>> pendulum(mass=2.0).nq
        1
    """
    return _built(descriptions.describe_pendulum(mass, length), options)


def double_pendulum(
    masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 1.0), **options: Any
) -> Model:
    """Returns two thin rods that swing about y, one at the end of the other; at q = 0 both hang down.

    Args:
        masses: Masses of the rods [kg].
        lengths: Lengths of the rods [m].
        **options: See `rbydyn_jax.io.build_model`.

    Example:
        >>> double_pendulum().joint_names
        ('shoulder', 'elbow')
    """
    return _built(descriptions.describe_double_pendulum(masses, lengths), options)


def two_link_arm(**options: Any) -> Model:
    """Returns an arm of two links in the horizontal plane, with limits, capsules and a tool frame.

    Args:
        **options: See `rbydyn_jax.io.build_model`.

    Example:
        >>> two_link_arm().link_names
        ('base', 'upper', 'lower', 'tool')
    """
    return _built(descriptions.describe_two_link_arm(), options)


def panda_like(**options: Any) -> Model:
    """Returns an arm of seven joints in the common arrangement; its parameters are made up, but plausible.

    Args:
        **options: See `rbydyn_jax.io.build_model`.

    Example:
        >>> panda_like().nv
        7
    """
    return _built(descriptions.describe_panda_like(), options)
