"""Functions of this library as C source, to be called without Python."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._check import check_flag
from .._errors import ArgumentError, DtypeError
from .._signatures import unobserved
from ..model.edit import with_traversal
from ..model.model import Model, check_model
from ..xla.c_source import Array, c_function, is_declared, is_reserved
from ..xla.scalar_program import scalar_program
from ..xla.scalars import NotScalarError, Scalar, ScalarProgram
from ..xla.transpose import pruned
from ..xla.tuning import C_OPERATIONS
from .arguments import Call, Function, check_result, float_type, resolve_call
from .c_files import Files, header_text, source_text
from .same_tree import check_tree, tree_digest

_KINDS = {
    "scan": "a loop over the rows of an array",
    "cholesky": "a batch of linear solves",
    "lu": "a batch of linear solves",
    "triangular_solve": "a batch of linear solves",
    "eigh": "an eigenvalue decomposition",
    "svd": "a singular value decomposition",
    "sort": "a sort",
}


@dataclasses.dataclass(frozen=True, repr=False)
class CFunction:
    """A function in C; see `generate_c`.

    Attributes:
        name: Its name in C, and that of the files.
        header: The text of its header, which documents arguments and results.
        source: The text of its source, C99 that needs nothing but ``math.h``.
        arguments: The shape of each array that it reads, in their order.
        results: The shape of each array that it writes, behind the arguments.
        dtype: Of the arguments: ``double`` if float64, ``float`` if float32.
        operations: Number of additions, multiplications and other operations on single numbers.
    """

    name: str
    header: str
    source: str
    arguments: Mapping[str, tuple[int, ...]]
    results: Mapping[str, tuple[int, ...]]
    dtype: np.dtype
    operations: int
    _robot: str
    _tree: Mapping[str, str]
    _leaves: tuple[str, ...] | None

    def parameters(self, model: Model) -> np.ndarray:
        """The argument `robot` of a function that was generated with `parameters=True`, for a robot with that tree.

        Args:
            model: The robot.

        Raises:
            ArgumentError: The function has the parameters as constants.
            ModelError: The model's tree is not that for which the function was generated.
        """
        model = check_model(model)
        if self._leaves is None:
            raise ArgumentError(f"{self.name} has the parameters as constants: generate it with parameters=True")
        check_tree(model.tree, self._tree, f"{self.name} was generated for {self._robot!r}")
        leaves = _leaves(model, self.dtype)
        return np.concatenate([np.zeros(0, self.dtype), *(leaves[name].reshape(-1) for name in self._leaves)])

    def save(self, directory: str | PathLike[str]) -> tuple[Path, Path]:
        """Writes the header and the source, which replace files of their names, and returns their paths.

        Args:
            directory: The folder, which is made if there is none.

        Raises:
            DtypeError: `directory` is not a path.
        """
        if not isinstance(directory, str | PathLike):
            raise DtypeError(f"directory must be a path, got {type(directory).__name__}")
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        paths = folder / f"{self.name}.h", folder / f"{self.name}.c"
        for path, text in zip(paths, (self.header, self.source), strict=True):
            path.write_text(text)
        return paths

    def __repr__(self) -> str:
        shapes, results = (
            ", ".join(f"{name} {shape}" for name, shape in x.items()) for x in (self.arguments, self.results)
        )
        return f"CFunction({self.name}({shapes}) -> {results}, {self.dtype}, {self.operations} operations)"


def generate_c(
    model: Model, function: Function, dtype: Any = None, *, name: str | None = None, parameters: bool = False
) -> CFunction:
    """Writes a function as C source, for programs without Python: controllers, ROS 2 nodes, microcontrollers.

    The function is followed number by number: slices, stacks and products of matrices dissolve into sums and products
    of single numbers, what is known vanishes, and what is equal is computed once. What remains is written as a straight
    line of C99 that needs nothing but ``math.h``: no memory is allocated, nothing is kept between calls, and there are
    no loops but those of the function. The same call gives the same text.

    Functions of your own can be written as well. Of `lax.cond` all branches are computed. `lax.scan` over the rows of
    an array, at most 64, is written turn after turn. An index that is computed is compared with all that it can be,
    `jnp.linalg.solve` exchanges rows in this way, and `jnp.sort`, of at most 64 numbers, compares each with each: for
    small arrays. Nothing bounds the turns of a `lax.while_loop`.

    Args:
        model: The robot.
        function: As an entry of `precompile`: a function, its name, or a pair with arguments by name. Arrays among
            these tell shapes.
        dtype: Of all arrays; default is that of the model.
        name: Name in C; default is that of the robot, of the function, and of what is chosen for it, such as a link:
            ``rby1a_link_pose_ee_right``.
        parameters: Whether masses, lengths and other parameters are the first argument, an array `robot` of which the
            header tells the order. By default they are constants.

    Raises:
        ArgumentError: The function has an operation that is not written in C, the one of that name returns no arrays,
            an argument is missing, or `name` is no identifier of C.
        DtypeError: `dtype` is not an enabled floating-point type of C, `parameters` is not True or False, or `function`
            is not a function, or returns something else than arrays.
        NameNotFoundError: There is no function, or no argument of it, of that name.

    Example:
        >>> code = generate_c(robots.pendulum(mass=2.0, length=0.5), "gravity_forces", name="hold")
        >>> code
        CFunction(hold(q (1,)) -> result (1,), float64, 2 operations)
        >>> print(code.source[code.source.index("void"):].strip())
        void hold(const double q[restrict 1], double result[restrict 1])
        {
            result[0] = 9.81 * sin(q[0]);
        }
    """
    model = check_model(model)
    dtype = float_type(dtype, model)
    if dtype.name not in ("float32", "float64"):
        raise DtypeError(f"dtype must be float32 or float64, got {dtype}, which C does not have")
    check_flag(parameters, "parameters")
    call = resolve_call(function, model, dtype)
    own = _own_name(model, call) if name is None else _checked(name)
    try:
        return _written(model, call, dtype, own, parameters)
    except NotScalarError as error:
        kind = f" ({_KINDS[error.operation]})" if error.operation in _KINDS else ""
        message = f"{call.name} cannot be written in C: {error.operation!r}{kind} {error.why}"
        raise ArgumentError(message) from error


def _leaves(model: Model, dtype: np.dtype) -> dict[str, np.ndarray]:
    """The parameters of a robot by name."""
    paths, _ = jax.tree.flatten_with_path(model)
    return {jax.tree_util.keystr(path).removeprefix("."): np.asarray(x, dtype) for path, x in paths}


def _written(model: Model, call: Call, dtype: np.dtype, name: str, parameters: bool) -> CFunction:
    straight = with_traversal(model, "unrolled")
    leaves, structure = _leaves(straight, dtype), jax.tree.structure(straight)
    paths: list[str] = []

    def flat(leaves: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        result = call.bound(jax.tree.unflatten(structure, leaves), *arrays)
        check_result(result)
        found, _ = jax.tree.flatten_with_path(result)
        paths.extend(jax.tree_util.keystr(path) for path, _ in found)
        return [x for _, x in found]

    arrays = [jax.ShapeDtypeStruct(x.shape, dtype) for x in call.arrays.values()]
    given = list(leaves.values())
    with unobserved():
        if parameters:
            traced = jax.make_jaxpr(flat)(given, arrays)
        else:
            traced = jax.make_jaxpr(lambda arrays: flat(given, arrays))(arrays)
    program, robot = scalar_program(pruned(traced)), dict[str, np.ndarray]()
    if parameters:
        program, robot = _with_used_leaves(program, leaves)
    taken = {"robot"} if parameters else set[str]()
    shapes = {"robot": (sum(x.size for x in robot.values()),)} if parameters else {}
    shapes |= {_unused(key, taken): x.shape for key, x in call.arrays.items()}
    results = {_unused(_identifier(path), taken): x.shape for path, x in zip(paths, traced.out_avals, strict=True)}
    read = [Array(key, math.prod(shape), dtype) for key, shape in shapes.items()]
    write = [Array(key, x.size, x.dtype) for key, x in zip(results, traced.out_avals, strict=True)]
    files = Files(name, call, model.tree, read, write, shapes, results, robot)
    return CFunction(
        name,
        header_text(files),
        source_text(files, c_function(name, program, read, write, C_OPERATIONS)),
        shapes,
        results,
        dtype,
        len(program.operations),
        model.name,
        tree_digest(model.tree),
        tuple(robot) if parameters else None,
    )


def _with_used_leaves(
    program: ScalarProgram, leaves: Mapping[str, np.ndarray]
) -> tuple[ScalarProgram, dict[str, np.ndarray]]:
    """The program without the leaves of which it reads nothing, and the others."""
    read = {x for operation in program.operations for x in operation.operands if isinstance(x, Scalar)}
    read |= {x for x in program.results if isinstance(x, Scalar)}
    inputs, used, at = [], {}, 0
    for name, leaf in leaves.items():
        own = program.inputs[at : at + leaf.size]
        at += leaf.size
        if read.intersection(own):
            used[name] = leaf
            inputs += own
    return program._replace(inputs=[*inputs, *program.inputs[at:]]), used


def _identifier(text: str) -> str:
    """A text with underscores for what an identifier of C cannot have."""
    found = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    return f"result_{found}".rstrip("_") if not found or found[0].isdigit() else found


def _own_name(model: Model, call: Call) -> str:
    """Of the robot, the function, and what was chosen, such as a link: other choices make another function."""
    chosen = [str(x) for x in call.static.values() if isinstance(x, str | int)]
    name = _identifier("_".join([model.name, call.name, *chosen]))
    return f"{name}_" if is_declared(name) else name


def _checked(name: Any) -> str:
    if not isinstance(name, str):
        raise DtypeError(f"name must be a string, got {type(name).__name__}")
    if not re.fullmatch(r"[A-Za-z_][0-9A-Za-z_]*", name) or is_declared(name):
        raise ArgumentError(f"name must be an identifier of C that is not reserved, got {name!r}")
    return name


def _unused(name: str, taken: set[str]) -> str:
    """A name that is neither reserved nor taken, which it is afterwards; `_` or `own_` tells it from these."""
    while name in taken or is_reserved(name):
        name = f"own_{name}" if is_reserved(f"{name}_") else f"{name}_"
    taken.add(name)
    return name
