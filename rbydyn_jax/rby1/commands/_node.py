"""What all commands and their parts have in common: they are frozen, compared and hashed by value, printed as they
would be written, pytrees of JAX, and go to plain data and back."""

from __future__ import annotations

import dataclasses
import functools
import typing
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Self, TypeVar, dataclass_transform

import jax
import numpy as np
from jax.core import Tracer
from jax.tree_util import GetAttrKey

from ..._errors import CommandError, DtypeError, Finding, NameNotFoundError, ShapeError
from ._kinds import Child, Children, JointVector, Kind, Scope, shown
from .models import COMPONENTS, ModelDescription, model_description

_TYPES: dict[str, type[Node]] = {}
_DEEPEST = 32
T = TypeVar("T")


class Node:
    """Base of every command and of every part of one; arrays are pytree leaves, names and flags are static."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # pyright: ignore[reportArgumentType]
            value = getattr(self, field.name)
            if value is not None or field.default is dataclasses.MISSING:
                value = kinds(type(self))[field.name].convert(value, f"{type(self).__name__}.{field.name}")
                object.__setattr__(self, field.name, value)

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed.

        Args:
            **changes: The new values by name of the field.

        Raises:
            NameNotFoundError: There is no such field.
        """
        _check_names(type(self), changes)
        return type(self)(**{**_values(self), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields that are set as plain data, with the name of the type as ``"type"``: ready for JSON.

        Raises:
            DtypeError: A value is traced.
        """
        return _plain(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, for any type that is a `cls`.

        Args:
            data: What `to_dict` returned.

        Raises:
            DtypeError: `data` is not a dictionary with the name of a type, lacks a field, or holds another type.
            NameNotFoundError: The type or a field is unknown.
            ShapeError: An array has another shape.
        """
        if not isinstance(data, dict):
            raise DtypeError(f"data must be a dictionary with the name of a type as 'type', got {shown(data)}")
        node = _unplain(data, "data")
        if not isinstance(node, cls):
            raise DtypeError(f"data must describe a {cls.__name__}, got a {type(node).__name__}")
        return node

    def validate(self, model: str | ModelDescription | None = None, component: str = "") -> None:
        """Checks values, and with a model the number of joints, names and limits; raises if anything is invalid.

        Without a model the values are checked alone: finite, of the right sign, damping ratios and poses sound, vectors
        of equal length. Values that are traced are not looked at, their shapes are.

        Args:
            model: ``"A"``, ``"M"``, ``"UB"``, or a description with other limits.
            component: The part of the robot, for a command that is not in a tree: ``"right_arm"``,
                ``"left_arm"``, ``"torso"``, ``"body"``, ``"head"`` or ``"mobility"``.

        Raises:
            CommandError: All that is wrong, with the joints named.
            NameNotFoundError: There is no such model or component.

        Warns:
            UserWarning: The robot ignores a part of the command, as it does a sideways velocity on two wheels.
        """
        findings = list(_findings(self, _scope(model, component)))
        if any(finding.level == "error" for finding in findings):
            raise CommandError(findings)
        for finding in findings:
            warnings.warn(str(finding), stacklevel=2)

    def _narrowed(self, scope: Scope) -> Scope:
        """The scope of the fields, if it is not that of the node."""
        return scope

    def _problems(self, scope: Scope) -> Iterator[tuple[str, str]]:
        """Problems between fields: the name of the field, and what is wrong."""
        yield from ()

    def _ignored(self, scope: Scope) -> Iterator[tuple[str, str]]:
        """What the robot does not look at: the name of the field, and why."""
        yield from ()

    def __eq__(self, other: object) -> bool:
        return _key(self) == _key(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_key(self))

    def __repr__(self) -> str:
        shown = (f"{n}={_text(v)}" for n, v in fields_set(self).items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)


@dataclass_transform(frozen_default=True)
def node(cls: type[T]) -> type[T]:
    """Makes a part of a command of a class with annotated fields."""
    return _make(cls, kw_only=False)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def command(cls: type[T]) -> type[T]:
    """Makes a command, whose fields are given by name, of a class with annotated fields."""
    return _make(cls, kw_only=True)


def _make(cls: type[T], kw_only: bool) -> type[T]:
    made: Any = dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=kw_only)(cls)
    _TYPES[made.__name__] = made
    static = tuple(name for name, kind in kinds(made).items() if kind.static)
    dynamic = tuple(name for name in kinds(made) if name not in static)

    def flatten(x: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(x, name) for name in dynamic), tuple(getattr(x, name) for name in static)

    def flatten_with_keys(x: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple((GetAttrKey(name), getattr(x, name)) for name in dynamic), flatten(x)[1]

    def unflatten(constants: tuple[Any, ...], leaves: Iterable[Any]) -> Any:
        x = object.__new__(made)  # JAX puts gradients, batches and placeholders here: nothing to convert or check
        for name, value in (*zip(dynamic, leaves, strict=True), *zip(static, constants, strict=True)):
            object.__setattr__(x, name, value)
        return x

    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten, flatten)
    return made


@functools.cache
def kinds(cls: type) -> dict[str, Kind]:
    """The kind of each field."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: _kind(hints[f.name]) for f in dataclasses.fields(cls)}


def _kind(hint: Any) -> Kind:
    return next(x for x in hint.__metadata__ if isinstance(x, Kind))


def fields_set(x: Node) -> dict[str, Any]:
    """The fields that are set, by name."""
    return {n: v for n, v in _values(x).items() if v is not None and not (isinstance(v, tuple) and not v)}


def _values(x: Node) -> dict[str, Any]:
    return {name: getattr(x, name) for name in kinds(type(x))}


def _check_names(cls: type, given: dict[str, Any]) -> None:
    for name in given:
        if name not in kinds(cls):
            raise NameNotFoundError(name, f"field of {cls.__name__}", kinds(cls))


def _key(x: Any) -> Any:
    if isinstance(x, Node):
        return (type(x).__name__, *map(_key, _values(x).values()))
    if isinstance(x, tuple):
        return tuple(map(_key, x))
    if x is None or isinstance(x, str | int):
        return x
    if isinstance(x, Tracer) or not isinstance(x, float | np.ndarray | jax.Array):
        return id(x)
    array = np.asarray(x, np.float64) + 0.0  # -0.0 is 0.0
    return array.shape, array.tobytes()


def _text(x: Any) -> str:
    if isinstance(x, Tracer) or not isinstance(x, np.ndarray | jax.Array):
        return repr(x)
    return repr(np.asarray(x, np.float64).tolist())


def _plain(x: Any) -> Any:
    if isinstance(x, Node):
        return {"type": type(x).__name__} | {name: _plain(v) for name, v in fields_set(x).items()}
    if isinstance(x, tuple):
        return [_plain(v) for v in x]
    return concrete(x, "it").tolist() if isinstance(x, np.ndarray | jax.Array) else x


def _unplain(x: Any, path: str, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise DtypeError(f"{path[:80]}... is nested deeper than {_DEEPEST} levels, which no command is")
    if isinstance(x, list):
        return [_unplain(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(x)]
    if not isinstance(x, dict):
        return x
    name = x.get("type")
    if not isinstance(name, str):
        raise DtypeError(f"{path} must have the name of a type as 'type', got {shown(name)}")
    if name not in _TYPES:
        raise NameNotFoundError(name, f"type for {path}", _TYPES)
    cls: Any = _TYPES[name]
    for key in x:
        if key != "type" and key not in kinds(cls):
            raise NameNotFoundError(key, f"field of {name} ({path})", kinds(cls))
    missing = [f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING and f.name not in x]
    if missing:
        raise DtypeError(f"{path} lacks {', '.join(map(repr, missing))} of {name}")
    fields = {key: _unplain(value, f"{path}.{key}", depth + 1) for key, value in x.items() if key != "type"}
    try:
        return cls(**fields)
    except (DtypeError, ShapeError) as error:
        raise type(error)(f"{path}: {error}") from None


def concrete(x: Any, name: str) -> np.ndarray:
    """The array in float64; raises if it is traced."""
    if isinstance(x, Tracer):
        raise DtypeError(f"{name} is traced: send commands outside of jax.jit, jax.grad and jax.vmap")
    return np.asarray(x, np.float64)


def _scope(model: str | ModelDescription | None, component: str) -> Scope:
    known = model if model is None or isinstance(model, ModelDescription) else model_description(model)
    scope = Scope(known)
    if not isinstance(component, str):
        raise DtypeError(f"component must be a str, got {type(component).__name__}")
    if component and component not in COMPONENTS:
        raise NameNotFoundError(component, "component", COMPONENTS)
    return _of_component(scope, component) if component else scope


def _of_component(scope: Scope, component: str) -> Scope:
    return Scope(scope.model, component, scope.model.component_joints(component) if scope.model else None)


def _findings(x: Node, scope: Scope, place: str = "") -> Iterator[Finding]:
    """What is wrong with a part of a command; `place` tells which of several it is."""
    scope = x._narrowed(scope)
    prefix = f"{scope.component}: " if scope.component else ""
    own = place or type(x).__name__
    lengths: dict[int, str] = {}

    def finding(field: str, element: str, message: str, level: Literal["error", "warning"] = "error") -> Finding:
        return Finding(level, message, element, f"{prefix}{own}.{field}")

    for name, kind in kinds(type(x)).items():
        value = getattr(x, name)
        if value is None:
            if not kind.optional:
                yield finding(name, "", "must be set")
            continue
        below = scope
        component = name.removesuffix("_command")
        if isinstance(kind, Child) and component in COMPONENTS:
            below = _of_component(scope, component)
            if below.joints == () and scope.model:
                yield finding(name, "", f"model {scope.model.model_name} has no {component}")
                continue
        if isinstance(kind, JointVector) and scope.joints is None:
            lengths.setdefault(value.shape[-1], name)
        if isinstance(kind, Children):
            for k, part in enumerate(value):
                yield from _findings(part, below, f"{own}.{name}[{k}]")
        elif isinstance(value, Node):
            yield from _findings(value, below)
        for element, message in kind.problems(value, scope):
            yield finding(name, element, message)
    if len(lengths) > 1:
        counts = " but ".join(f"{name} has {n} entries" for n, name in lengths.items())
        yield finding(", ".join(lengths.values()), "", f"must be of one length: {counts}")
    for name, message in x._problems(scope):
        yield finding(name, "", message)
    for name, message in x._ignored(scope):
        yield finding(name, "", message, "warning")
