"""Exported functions: traced once, saved to a file, and run by other processes without tracing."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import zipfile
import zlib
from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.core import Tracer

from .._check import check_array, check_choice, check_flag
from .._errors import ArgumentError, DtypeError, ShapeError
from .._extras import require
from ..model.edit import with_traversal
from ..model.model import Model, check_model
from .arguments import Function, check_batch, check_result, float_type, resolve_call
from .machine_code import load_machine_code, machine, machine_code
from .same_tree import check_tree, tree_digest

_FORMAT = 1
_PLATFORMS = dict.fromkeys(("cpu", "cuda", "rocm", "tpu"))
_PACKAGE = __name__.partition(".")[0]


class ExportedFunction:
    """A function of this library as a program for robots with one tree; see `export_function` and `load_function`.

    It is called like the function, with the model and the arrays as positional arguments, without static arguments. It
    can be called inside `jax.jit`, where the portable program runs; it cannot be differentiated, nor mapped by
    `jax.vmap`.

    Attributes:
        name: The function's name.
        static: Its static arguments, as text.
        arguments: The shape of each array that it takes; None is a batch of any size.
        dtype: Their dtype; the model's parameters are cast to it.
        platforms: The platforms on which it runs, such as ``("cpu",)``.
        robot: Name of the robot for which it was exported.
        native: Whether calls run machine code, as fast as the function itself: it was exported with it, by the same
            jaxlib, for this kind of processor.
    """

    def __init__(self, program: export.Exported, header: dict[str, Any], code: bytes | None = None) -> None:
        self._program, self._header, self._code = program, header, code
        self._call = jax.jit(program.call)
        self._last: tuple[Model | None, dict[str, jax.Array]] = None, {}
        self.native = code is not None and header["machine"] == machine()
        self._run = load_machine_code(code) if code is not None and self.native else self._call
        self.name: str = header["name"]
        self.static: dict[str, str] = header["static"]
        self.arguments = {name: tuple(shape) for name, shape in header["arguments"].items()}
        self.dtype = np.dtype(header["dtype"])
        self.platforms = tuple(program.platforms)
        self.robot: str = header["robot"]

    def __call__(self, model: Model, *arrays: Any) -> Any:
        """The value for a model and arrays.

        Raises:
            DtypeError: An argument is of another dtype.
            ModelError: The model's tree is not that for which the function was exported.
            ShapeError: An argument has another shape.
        """
        leaves, is_traced = self._leaves_of(check_model(model))
        if len(arrays) != len(self.arguments):
            raise ShapeError(f"{self.name} takes the model and {', '.join(self.arguments)}, got {len(arrays)} arrays")
        checked = tuple(self._checked(name, x) for name, x in zip(self.arguments, arrays, strict=True))
        if self._header["batch"] == "any":
            if len(sizes := {x.shape[0] for x in checked}) > 1:
                raise ShapeError(f"the batch must have one size, got {', '.join(map(str, sorted(sizes)))}")
            if sizes == {0}:  # JAX takes a size that is not known for at least one
                return _result(self._nothing(), self._header["result"])
        is_traced = is_traced or any(isinstance(x, Tracer) for x in checked)
        return _result((self._call if is_traced else self._run)(leaves, checked), self._header["result"])

    def _nothing(self) -> Any:
        """The results of an empty batch."""
        empty = [jnp.zeros((0, *x.shape[1:]), x.dtype) for x in self._program.out_avals]
        return jax.tree.unflatten(self._program.out_tree, empty)

    def _leaves_of(self, model: Model) -> tuple[dict[str, jax.Array], bool]:
        """The parameters of a model, and whether one is traced; those of the last model are kept for the next call."""
        known, leaves = self._last
        if model is known:
            return leaves, False
        check_tree(model.tree, self._header["tree"], f"{self.name} was exported for {self.robot!r}")
        leaves = dict(zip(self._header["leaves"], jax.tree.leaves(model), strict=True))
        if model.inertias.dtype != self.dtype:
            leaves = {name: x.astype(self.dtype) for name, x in leaves.items()}
        if any(isinstance(x, Tracer) for x in leaves.values()):
            return leaves, True
        self._last = model, leaves
        return leaves, False

    def _checked(self, name: str, x: Any) -> jax.Array:
        shape = self.arguments[name]
        if not (isinstance(x, jax.Array) and x.shape == shape):
            x = check_array(x, name, shape)
        if x.dtype != self.dtype:
            raise DtypeError(f"{name} must be {self.dtype}, for which {self.name} was exported, got {x.dtype}")
        return x

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the file that `load_function` reads.

        Raises:
            DtypeError: `path` is not a path.
            MissingExtraError: flatbuffers, in which JAX writes programs, is not installed.
        """
        if not isinstance(path, str | PathLike):
            raise DtypeError(f"path must be a path, got {type(path).__name__}")
        require("flatbuffers", "export", "ExportedFunction.save")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("header.json", json.dumps(self._header, indent=1))
            file.writestr("program", bytes(self._program.serialize()))
            if self._code is not None:
                file.writestr("machine_code", self._code)

    def __repr__(self) -> str:
        static = "".join(f", {name}={text}" for name, text in self.static.items())
        arrays = "".join(f", {name} {shape}".replace("None", "any") for name, shape in self.arguments.items())
        return f"ExportedFunction({self.name}({self.robot}{arrays}{static}), {self.dtype}, {', '.join(self.platforms)})"


def export_function(
    model: Model,
    function: Function,
    batch: int | Literal["any"] | None = None,
    dtype: Any = None,
    *,
    platforms: Sequence[str] | None = None,
    native: bool = False,
) -> ExportedFunction:
    """Exports a function as a program that runs without tracing, for all robots with the same tree.

    Together with `set_compilation_cache`, which keeps the machine code, a process is ready in a fraction of a second.
    On a CPU the portable program runs two to twenty times slower than the function itself, whose kernels are private to
    one version of XLA. With `native` the file holds the machine code of the function as well: where jaxlib and the
    processor are the same, that runs, without tracing or compiling; elsewhere the portable program does.

    Args:
        model: A robot with that tree; its parameters are inputs of the program.
        function: As an entry of `precompile`.
        batch: Batch size; None for a single configuration, or ``"any"`` for any batch size, each of which compiles
            once.
        dtype: Of all arrays; default is that of the model.
        platforms: Target platforms: ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``, which need not be available; default
            is that of JAX's default backend.
        native: Whether to add machine code for this machine, which is compiled at once; `batch` must be a number.

    Raises:
        ArgumentError: `batch` is less than 1, or any with `native`; a platform is none of these; or an
            argument of the function is missing.
        DtypeError: `dtype` is not an enabled floating-point type, `platforms` is not a sequence of names, `native` is
            not True or False, or `function` is not a function of a model that returns arrays.
        NameNotFoundError: There is no function, or no argument of it, of that name.

    Example:
        >>> arm = robots.two_link_arm()
        >>> program = export_function(arm, ("jacobian", {"link": "tool"}))
        >>> program(arm, jnp.zeros(2))[4].tolist()
        [0.9, 0.4]
    """
    model = check_model(model)
    dtype = float_type(dtype, model)
    if platforms is None:
        platforms = (export.default_export_platform(),)
    named = isinstance(platforms, Sequence) and not isinstance(platforms, str)
    if not (named and platforms and all(isinstance(p, str) for p in platforms)):
        raise DtypeError(f"platforms must be a sequence of names such as ('cpu', 'cuda'), got {platforms!r}")
    for k, platform in enumerate(platforms):
        check_choice(platform, f"platforms[{k}]", _PLATFORMS | {export.default_export_platform(): None})
    size: Any = export.symbolic_shape("batch")[0] if isinstance(batch, str) and batch == "any" else check_batch(batch)
    check_flag(native, "native")
    if native and batch == "any":
        raise ArgumentError("batch must be a number or None with native=True, got 'any'")
    call = resolve_call(function, model, dtype)
    scanned = with_traversal(model, "scanned")  # the CPU kernels of an unrolled sweep are not portable
    paths, structure = jax.tree.flatten_with_path(scanned)
    names = [jax.tree_util.keystr(path).removeprefix(".") for path, _ in paths]
    kinds: list[str | None] = []

    def program(leaves: dict[str, jax.Array], arrays: tuple, structure: Any = structure) -> Any:
        one = functools.partial(call.bound, jax.tree.unflatten(structure, [leaves[name] for name in names]))
        parts, kind = _parts((one if size is None else jax.vmap(one))(*arrays))
        check_result(parts)
        kinds.append(kind)
        return parts

    def spec(shape: Sequence[int], batched: bool) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((size, *shape) if batched and size is not None else tuple(shape), dtype)

    leaves = {name: spec(x.shape, False) for name, (_, x) in zip(names, paths, strict=True)}
    arrays = {name: spec(x.shape, True) for name, x in call.arrays.items()}
    exported = export.export(jax.jit(program), platforms=tuple(platforms))(leaves, tuple(arrays.values()))
    header = {
        "format": _FORMAT,
        "name": call.name,
        "static": {name: repr(x) for name, x in call.static.items()},
        "arguments": {name: [d if isinstance(d, int) else None for d in x.shape] for name, x in arrays.items()},
        "batch": batch,
        "dtype": dtype.name,
        "robot": model.name,
        "tree": tree_digest(model.tree),
        "leaves": names,
        "result": kinds[0],
        "machine": machine() if native else None,
    }
    if not native:
        return ExportedFunction(exported, header)
    fast = functools.partial(program, structure=jax.tree.structure(model))
    return ExportedFunction(exported, header, machine_code(fast, leaves, tuple(arrays.values())))


def load_function(path: str | PathLike[str]) -> ExportedFunction:
    """Loads a file written by `ExportedFunction.save` with this version of JAX or an older one.

    The file contains code: load only files that you trust.

    Raises:
        ArgumentError: The file is not one of an exported function, or of another format.
        DtypeError: `path` is not a path.
        FileNotFoundError: There is no such file.
        MissingExtraError: flatbuffers, in which JAX writes programs, is not installed.
    """
    require("flatbuffers", "export", "load_function")
    if not isinstance(path, str | PathLike):
        raise DtypeError(f"path must be a path, got {type(path).__name__}")
    try:
        with zipfile.ZipFile(path) as file:
            header, program = json.loads(file.read("header.json")), file.read("program")
            code = file.read("machine_code") if "machine_code" in file.namelist() else None
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError, IsADirectoryError) as error:
        raise _is_damaged(path, error) from error
    found = header.get("format") if isinstance(header, dict) else None
    if found != _FORMAT:
        raise ArgumentError(
            f"{path} must be of format {_FORMAT}, which this version reads, got {found}; export it again"
        )
    try:
        return ExportedFunction(export.deserialize(bytearray(program)), header, code)
    except Exception as error:  # the readers of programs and of machine code raise whatever they raise
        raise _is_damaged(path, error) from error


def _is_damaged(path: str | PathLike[str], error: Exception) -> ArgumentError:
    return ArgumentError(f"{path} must be a file of an exported function: {type(error).__name__}: {error}")


def _parts(result: Any) -> tuple[Any, str | None]:
    """A named result of this library as a dict, and the name of its class: JAX writes no classes of others."""
    kind = type(result)
    if kind.__module__.partition(".")[0] != _PACKAGE or not dataclasses.is_dataclass(result):
        return result, None
    return {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}, f"{kind.__module__}:{kind.__name__}"


def _result(parts: Any, kind: str | None) -> Any:
    if kind is None:
        return parts
    module, _, name = kind.partition(":")
    if module.partition(".")[0] != _PACKAGE:
        raise ArgumentError(f"the result {kind!r} of an exported function is not a class of {_PACKAGE}")
    return getattr(importlib.import_module(module), name)(**parts)
