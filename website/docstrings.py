"""Extension of Griffe, which reads the sources for the API reference: what of them is other than it expects."""

from __future__ import annotations

from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Examples may be called `Example`; the fields of a class whose constructor is made for it are its arguments."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """After an object of the sources was read."""
        if obj.docstring:
            text, example, code = obj.docstring.value.partition("\nExample:\n")
            text = text.replace("] [", "] \\[")  # `[omega; v] [rad/s, m/s]` is no link
            obj.docstring.value = text + example.replace("Example", "Examples") + code

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """After all sources were read, when base classes are known."""
        described = [x for x in _classes(pkg) if x.docstring and "\nArgs:\n" in x.docstring.value]
        for cls in [x for x in described if "__init__" not in x.all_members]:
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*_fields(cls))))


def _classes(module: griffe.Module) -> list[griffe.Class]:
    found = [x for x in module.members.values() if isinstance(x, griffe.Class)]
    return found + [x for inner in module.modules.values() if not inner.is_alias for x in _classes(inner)]


def _fields(cls: griffe.Class) -> list[griffe.Parameter]:
    """The annotated attributes of a class and its bases, as parameters of its constructor."""
    found: dict[str, griffe.Parameter] = {}
    for owner in [*reversed(cls.mro()), cls]:
        for name, x in owner.members.items():
            if (
                not isinstance(x, griffe.Attribute)
                or x.annotation is None
                or name[0] == "_"
                or "ClassVar" in str(x.annotation)
            ):
                continue
            annotation = x.annotation
            if isinstance(annotation, griffe.ExprSubscript) and str(annotation.left) == "Annotated":
                assert isinstance(annotation.slice, griffe.ExprTuple)
                annotation = annotation.slice.elements[0]  # the rest tells the checks what to look at
            kind = griffe.ParameterKind.positional_or_keyword
            found[name] = griffe.Parameter(name, annotation=annotation, kind=kind, default=_default(x.value))
    return [griffe.Parameter("self"), *found.values()]


def _default(value: Any) -> Any:
    """The default of a field, also one that is written `field(default=..., static=True)`."""
    if not isinstance(value, griffe.ExprCall) or not str(value.function).endswith("field"):
        return value
    for argument in value.arguments:
        if isinstance(argument, griffe.ExprKeyword) and argument.name == "default":
            return argument.value
        if isinstance(argument, griffe.ExprKeyword) and argument.name == "default_factory":
            return f"{argument.value}()"
    return None
