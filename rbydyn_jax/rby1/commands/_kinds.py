"""The kinds of fields of commands: accepted types at construction, valid values when checked.

A kind stands in the annotation of a field, `Annotated[type, kind]`. `convert` refuses what the SDK would refuse, by its
type or number of axes, and leaves JAX arrays as they come, traced ones included. `problems` knows physics and limits,
and looks at shapes always, at values only where there are any.
"""

from __future__ import annotations

import array as arrays
import math
import numbers
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..._errors import DtypeError, NameNotFoundError, ShapeError
from .._names import listed
from .models import ModelDescription

# A limit may be passed by as much as float32 rounds an angle.
LIMIT_TOLERANCE = 1e-6
# How far from orthonormal the rotation of a pose may be, which allows for one composed in float32.
ROTATION_TOLERANCE = 1e-5

Problem = tuple[str, str]


@dataclass(frozen=True)
class Scope:
    """The context of a value in the tree: its robot and component, and the joints of its entries."""

    model: ModelDescription | None = None
    component: str = ""
    joints: tuple[str, ...] | None = None

    def limits(self, joint: str, limit: str) -> tuple[float, float] | None:
        """Lower and upper limit of a joint's position or velocity, if the model has the joint."""
        if self.model is None or joint not in self.model.robot_joint_names:
            return None
        i = self.model.robot_joint_names.index(joint)
        if limit == "velocity":
            return -self.model.velocity_limit[i], self.model.velocity_limit[i]
        return self.model.position_lower[i], self.model.position_upper[i]


class Kind(ABC):
    """One kind of field."""

    static = False  # whether JAX is to treat the value as a constant of the structure, not as a number
    optional = True  # whether a check lets the field be unset
    axes: ClassVar[int] = 0  # of its array, without those of a batch

    @abstractmethod
    def convert(self, value: Any, name: str) -> Any:
        """Returns the value as it is stored; raises for a wrong type."""

    def problems(self, value: Any, scope: Scope) -> Iterator[Problem]:
        """Yields each invalid element and what is wrong with it."""
        yield from ()


@dataclass(frozen=True)
class Bounds:
    """The range of a number: finite, from `low` (excluded if `above`) to `high`, within a `limit` of its joint."""

    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    limit: str = ""

    def complaint(self, x: float, joint: str, scope: Scope) -> str:
        """What is wrong with `x`; empty if nothing is."""
        unit = f" {self.unit}" if self.unit else ""
        if not math.isfinite(x):
            return f"must be finite, got {x}"
        if x < self.low or (self.above and x == self.low):
            return f"must be {'greater than' if self.above else 'at least'} {self.low:g}{unit}, got {x:g}"
        if x > self.high:
            return f"must be at most {self.high:g}{unit}, got {x:g}"
        if self.limit and (limits := scope.limits(joint, self.limit)):
            lower, upper = limits
            if not lower - LIMIT_TOLERANCE <= x <= upper + LIMIT_TOLERANCE:
                return f"{self.limit} must be between {lower:g} and {upper:g}{unit}, got {x:g}"
        return ""


@dataclass(frozen=True)
class Number(Kind):
    """One floating-point number."""

    bounds: Bounds

    def convert(self, value: Any, name: str) -> Any:
        if isinstance(value, jax.Array):
            _check_shape(value, (), name)
            return _floating(value, name)
        if isinstance(value, np.ndarray) and value.ndim:
            raise ShapeError(f"{name} must be one number, got shape {value.shape}")
        if isinstance(value, np.ndarray):
            value = value[()]
        if not isinstance(value, numbers.Real) or isinstance(value, bool | np.bool_):
            raise DtypeError(f"{name} must be a number, got {type(value).__name__}")
        try:
            return float(value)
        except OverflowError:
            raise DtypeError(f"{name} must be a double-precision number, got {shown(value)}") from None

    def problems(self, value: Any, scope: Scope) -> Iterator[Problem]:
        joint = scope.joints[0] if self.bounds.limit and scope.joints else ""
        for x in numbers_of(value).ravel():
            if message := self.bounds.complaint(float(x), joint, scope):
                yield _joint(joint), message


@dataclass(frozen=True)
class Vector(Kind):
    """A vector of a fixed number of floating-point numbers."""

    bounds: Bounds
    size: int
    axes: ClassVar[int] = 1

    def convert(self, value: Any, name: str) -> Any:
        return _array(value, (self.size,), name)

    def problems(self, value: Any, scope: Scope) -> Iterator[Problem]:
        for row in numbers_of(value).reshape(-1, self.size):
            for i, x in enumerate(row):
                if message := self.bounds.complaint(float(x), "", scope):
                    yield f"entry {i}", message


@dataclass(frozen=True)
class JointVector(Kind):
    """One number for each joint of the component."""

    bounds: Bounds
    axes: ClassVar[int] = 1

    def convert(self, value: Any, name: str) -> Any:
        return _array(value, (None,), name)

    def problems(self, value: Any, scope: Scope) -> Iterator[Problem]:
        count = value.shape[-1]
        if scope.joints is not None and count != len(scope.joints):
            part, of = scope.component, "the command"
            if scope.model and part and scope.joints == scope.model.component_joints(part):
                of = part
            yield "", f"must have {len(scope.joints)} entries, one for each joint of {of}, got {count}"
            return
        for row in numbers_of(value).reshape(-1, count) if count else ():
            for i, x in enumerate(row):
                joint = scope.joints[i] if scope.joints is not None else ""
                if message := self.bounds.complaint(float(x), joint, scope):
                    yield _joint(joint) or f"entry {i}", message


class Pose(Kind):
    """A homogeneous transformation (4, 4)."""

    axes: ClassVar[int] = 2

    def convert(self, value: Any, name: str) -> Any:
        return _array(value, (4, 4), name)

    def problems(self, value: Any, scope: Scope) -> Iterator[Problem]:
        for T in numbers_of(value).reshape(-1, 4, 4):
            R = T[:3, :3]
            if not np.isfinite(T).all():
                yield "", "must be finite"
            elif not np.array_equal(T[3], [0, 0, 0, 1]):
                yield "", f"must be in SE(3): the last row must be [0, 0, 0, 1], got {T[3].tolist()}"
            elif (error := float(np.abs(R.T @ R - np.eye(3)).max())) > ROTATION_TOLERANCE:
                yield "", f"must be in SE(3): its rotation must be orthonormal, which it misses by {error:.1g}"
            elif np.linalg.det(R) < 0:
                yield "", "must be in SE(3): its rotation is a reflection"


@dataclass(frozen=True)
class Text(Kind):
    """The name of a joint or link."""

    what: str
    static = True
    optional = False

    def convert(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise DtypeError(f"{name} must be a string, got {type(value).__name__}")
        return value

    def problems(self, value: str, scope: Scope) -> Iterator[Problem]:
        if scope.model is not None:
            known = scope.model.robot_joint_names if self.what == "joint" else scope.model.link_names
            if value not in known:
                yield "", f"model {scope.model.model_name}: {NameNotFoundError(value, self.what, known)}"
        elif not value:
            yield "", f"must name a {self.what}"


class JointNames(Kind):
    """Names of joints, each once, of the component."""

    static = True
    optional = False

    def convert(self, value: Any, name: str) -> tuple[str, ...]:
        value = listed(value)
        if not isinstance(value, list | tuple) or not all(isinstance(n, str) for n in value):
            raise DtypeError(f"{name} must be a list of strings, got {shown(value)}")
        return tuple(value)

    def problems(self, value: tuple[str, ...], scope: Scope) -> Iterator[Problem]:
        known = scope.model.robot_joint_names if scope.model else None
        if scope.model and scope.component:
            known = scope.model.component_joints(scope.component)
        for i, joint in enumerate(value):
            if known is not None and joint not in known:
                yield "", str(NameNotFoundError(joint, "joint", known))
            if joint in value[:i]:
                yield _joint(joint), "must be named once"


class Flag(Kind):
    """True or False."""

    static = True

    def convert(self, value: Any, name: str) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise DtypeError(f"{name} must be True or False, got {shown(value)}")
        return bool(value)


class Count(Kind):
    """A 32-bit integer."""

    static = True

    def convert(self, value: Any, name: str) -> int:
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or not -(2**31) <= value < 2**31:
            raise DtypeError(f"{name} must be a 32-bit integer, got {shown(value)}")
        return int(value)

    def problems(self, value: int, scope: Scope) -> Iterator[Problem]:
        if value < 0:
            yield "", f"must be at least 0, got {value}"


@dataclass(frozen=True)
class Child(Kind):
    """A part of one of several types; a value that such a part can hold is wrapped, one level deep, as in the SDK."""

    types: tuple[type, ...]
    optional: bool = True

    def convert(self, value: Any, name: str) -> Any:
        if isinstance(value, self.types):
            return value
        for wrapper in self.types:
            if isinstance(value, getattr(wrapper, "wraps", ())):
                return wrapper(value)
        names = " or ".join(t.__name__ for t in self.types)
        raise DtypeError(f"{name} must be {names}, got {type(value).__name__}")


@dataclass(frozen=True)
class Children(Kind):
    """Any number of parts of one type."""

    type: type

    def convert(self, value: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(x, self.type) for x in value):
            raise DtypeError(f"{name} must be a list of {self.type.__name__}, got {shown(value)}")
        return tuple(value)


def shown(value: Any) -> str:
    """A value for a message: short, and of any depth and size."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return f"a huge {type(value).__name__}"


def _joint(name: str) -> str:
    return f"joint {name!r}" if name else ""


def numbers_of(value: Any) -> np.ndarray:
    """The entries of a value; none if it is traced."""
    return np.zeros(0) if isinstance(value, Tracer) else np.asarray(value, np.float64)


def _array(value: Any, shape: tuple[int | None, ...], name: str) -> Any:
    if isinstance(value, list | tuple) and any(isinstance(x, jax.Array) for x in value):
        value = jnp.stack([jnp.asarray(x) for x in value])
    if isinstance(value, jax.Array):
        value = _flat(value, shape)
        _check_shape(value, shape, name)
        return _floating(value, name)
    if not isinstance(value, np.ndarray | list | tuple | range | arrays.array | memoryview):
        raise DtypeError(f"{name} must be an array of numbers, got {type(value).__name__}")
    try:
        array = np.array(value)
    except OverflowError:
        raise DtypeError(f"{name} must be of double-precision numbers, got {shown(value)}") from None
    except ValueError as error:
        raise ShapeError(f"{name} must be an array of shape {_shape(shape)}: {error}") from None
    if array.size and array.dtype.kind not in "iuf":
        raise DtypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    array = _flat(array.astype(np.float64), shape)
    _check_shape(array, shape, name)
    array.setflags(write=False)
    return array


def _flat(array: Any, shape: tuple[int | None, ...]) -> Any:
    """A column counts as a vector, as in the SDK."""
    return array[:, 0] if len(shape) == 1 and array.ndim == 2 and array.shape[1] == 1 else array


def _floating(value: jax.Array, name: str) -> jax.Array:
    if jnp.issubdtype(value.dtype, jnp.integer):
        return value.astype(jnp.result_type(float))
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise DtypeError(f"{name} must be of real numbers, got dtype {value.dtype}")
    return value


def _shape(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("n" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


def _check_shape(array: Any, shape: tuple[int | None, ...], name: str) -> None:
    if len(shape) != array.ndim or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=False)):
        raise ShapeError(f"{name} must have shape {_shape(shape)}, got {array.shape}")
