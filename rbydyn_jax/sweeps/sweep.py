"""The interface of a sweep: what an algorithm sees of the robot and of its tree.

An algorithm is written once, as steps on one `Body` in the scalars of `xla.structural`. A `Sweep` takes the steps from
the root outward, from the leaves inward or over all bodies; between them quantities of the bodies are a `Field`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Concatenate, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from ..joints import JointType
from ..model.model import Model
from ..spatial.algebra import NO_MOTION, Force, Inertia, Mat3, Motion, Sym3, Transform, Vec3
from ..xla.fusion import kernel
from ..xla.loops import Pieces
from ..xla.structural import ZERO, Scalar, Scalars, Structural
from .coordinates import Coordinates

T = TypeVar("T")
U = TypeVar("U")
State = TypeVar("State")

Spread = Callable[[jax.Array], jax.Array]

# The scalars of a quantity, each an array with an entry for each body or each degree of freedom: an array, or a tuple.
Table = jax.Array | tuple[jax.Array, ...]


class Body(NamedTuple):
    """What a step sees of a body and of the joint that moves it; x are the joint's coordinates and parameters."""

    joint: JointType
    axis: Vec3
    placement: Transform
    inertia: Inertia
    x: Scalars

    @property
    def transform(self) -> Transform:
        """T_parent_body."""
        return self.placement @ self.joint.transform(self.axis, self.x)

    @property
    def subspace(self) -> tuple[Motion, ...]:
        """The columns of the motion subspace, in the body's frame."""
        return self.joint.subspace(self.axis, self.x)

    def spin(self, v: Sequence[Scalar]) -> Motion:
        """S v, the velocity across the joint."""
        total = NO_MOTION
        for s, k in zip(self.subspace, v, strict=True):
            total = total + s.scale(k)
        return total


def inertia_from_row(r: Any) -> Inertia:
    """The inertia of a row of `Model.inertias`; `r[k]` is its k-th number."""
    return Inertia(r[0], Vec3(r[1], r[2], r[3]), Sym3(xx=r[4], xy=r[5], xz=r[7], yy=r[6], yz=r[8], zz=r[9]))


def transform_from_numbers(numbers: Sequence[Scalar]) -> Transform:
    """The transform of 12 numbers: rows of R, then p."""
    rows = [Vec3(*numbers[k : k + 3]) for k in (0, 3, 6, 9)]
    return Transform(Mat3(*rows[:3]), rows[3])


def scalars_of(quantity: Any) -> list[Scalar]:
    """The scalars of a quantity in their order: of a motion [w; v], of a transform R by rows, then p."""
    return jax.tree.leaves(quantity, is_leaf=lambda x: isinstance(x, Structural))


@dataclass(frozen=True)
class Field(Generic[T]):
    """A quantity of each body; what belongs to a joint is a tuple with an element for each degree of freedom.

    There is one T for each group of bodies that are computed together: its scalars are constants, or arrays with an
    entry for each body of the group.
    """

    parts: tuple[T, ...]

    def select(self, f: Callable[[T], U]) -> Field[U]:
        """A part of each quantity, or its scalars in another order; arithmetic belongs into steps."""
        return Field(tuple(map(f, self.parts)))


class Sweep(ABC):
    """A configuration of a robot, and the operations on quantities of its bodies.

    Inputs of a step are fields, of which it gets the quantity of its body, or anything else, which is the same for
    every body. States and results are pytrees of scalars.
    """

    unrolls: ClassVar[bool]
    """Whether programs are written in the scalars of single bodies, for a CPU, or in arrays of many bodies."""

    def __init__(self, model: Model, joints: Sequence[JointType]) -> None:
        """`joints` are the types of joint of the groups."""
        self.model, self.tree = model, model.tree
        self.coordinates = Coordinates(model)
        self._joints = joints

    @property
    def dtype(self) -> Any:
        """The dtype of the computation."""
        return self.model.inertias.dtype

    @property
    def base_acceleration(self) -> Vec3:
        """The acceleration of the world that stands for gravity: its opposite."""
        return Vec3(*(-self.model.gravity[k] for k in range(3)))

    # Steps along the tree.

    @abstractmethod
    def outward(
        self, step: Callable[Concatenate[Body, State, ...], tuple[State, T]], root: State, *inputs: Any
    ) -> Field[T]:
        """`step(body, parent_state, *inputs) -> (state, result)` from the root to the leaves."""

    @abstractmethod
    def inward(
        self, step: Callable[Concatenate[Body, State, ...], tuple[State, T]], zero: State, *inputs: Any
    ) -> Field[T]:
        """`step(body, sum_of_children, *inputs) -> (state, result)` from the leaves to the root."""

    @abstractmethod
    def map(self, step: Callable[Concatenate[Body, ...], T], *inputs: Any) -> Field[T]:
        """`step(body, *inputs) -> result` on every body."""

    # Fields of arrays.

    @abstractmethod
    def split_dofs(self, x: jax.Array) -> Field[Scalars]:
        """The entries of an array over the degrees of freedom of all joints."""

    def split_v(self, v: jax.Array | None) -> Field[Scalars]:
        """The velocities (or accelerations, or forces) of each joint; None stands for zeros."""
        if v is None:
            return Field(tuple((ZERO,) * joint.nv for joint in self._joints))
        return self.split_dofs(self.coordinates.spread_v(v))

    @cached_property
    def armature(self) -> Field[Scalars]:
        """The rotor inertia of each joint."""
        return self.split_dofs(self.coordinates.armature)

    @abstractmethod
    def split_wrenches(self, f: jax.Array) -> Field[Force]:
        """The rows of a (nb, 6) array of wrenches."""

    @abstractmethod
    def split_poses(self, rows: jax.Array, links: Sequence[int]) -> Field[Scalars]:
        """The twelve numbers (R by rows, then p) of the pose of each body, from those (n, 4, 4) of links, among which
        are the principal ones."""

    @abstractmethod
    def constants(self, values: Sequence[int]) -> Field[Scalar]:
        """Constants 0, 1 or -1 for each body."""

    # Arrays of fields.

    @abstractmethod
    def stack_v(self, values: Field[Scalars]) -> jax.Array:
        """The array (nv,) of the scalars of each joint."""

    def stack_columns(self, values: Field[Any], width: int) -> jax.Array:
        """The array (width, nv) of a quantity of each degree of freedom."""
        full = self.columns(values, width)
        return self.coordinates.gather(full.T).T if self.tree.has_mimics else full

    @abstractmethod
    def columns(self, values: Field[Any], width: int) -> jax.Array:
        """The table (width, degrees of freedom of all joints) of a quantity of each degree of freedom."""

    @abstractmethod
    def table(self, values: Field[Any], width: int) -> jax.Array:
        """The table (width, nb) of a quantity of each body."""

    # Arithmetic on tables, which have a column for each body or each degree of freedom.

    @abstractmethod
    def lanes(self, f: Callable[..., T]) -> Callable[..., T]:
        """`f`, which works on the leading axes of arrays; a batch stands behind them."""

    def fused_map(self, f: Callable[..., T], separate_use: bool = False) -> Callable[..., T]:
        """Like `lanes`, as a kernel of its own; a user may take single results where there is `separate_use`."""
        return self.lanes(kernel(f, exportable=not self.unrolls, separate_use=separate_use or not self.unrolls))

    def elementwise(
        self, f: Callable[..., T], spread: Sequence[Spread], apart: bool = False, separate_use: bool = False
    ) -> Callable[..., T]:
        """Like `fused_map`, of pytrees whose arrays have an entry for each element, once they are `spread`.

        `f` treats the elements alike, and those of a batch, which stand behind them. On a GPU it is part of the kernel
        of all bodies, unless it is long and has to be `apart`.
        """

        def spread_first(*xs: Any) -> T:
            return f(*(jax.tree.map(each, x) for each, x in zip(spread, xs, strict=True)))

        return self.fused_map(spread_first, separate_use)

    def apart(self, f: Callable[..., T]) -> Callable[..., T]:
        """`f`, of a single element, which is no part of the kernel of all bodies on a GPU."""
        return f

    def map_tables(self, f: Callable[..., Any], *tables: Table) -> tuple[jax.Array, ...]:
        """The scalars of the quantities that `f` makes of the tables, as the rows of another."""

        def rows(*given: Table) -> list[jax.Array]:
            found = scalars_of(f(*given))
            like = next(x for x in found if not isinstance(x, Structural))
            return [jnp.full_like(like, x.value) if isinstance(x, Structural) else x for x in found]

        return tuple(self.fused_map(rows)(*tables))

    @abstractmethod
    def of_parents(self, table: jax.Array, root: Any) -> jax.Array:
        """The columns of the parents of all bodies; `root` is the quantity of the world."""

    @abstractmethod
    def sum_subtrees(self, table: Table) -> jax.Array:
        """For each body the sum of the columns of it and of all that it carries."""

    @abstractmethod
    def sum_paths(self, table: Table) -> tuple[jax.Array, jax.Array]:
        """Of columns of degrees of freedom the sums along the path to each body, and to its parent."""

    # Links, which are frames on the bodies.

    @abstractmethod
    def link_transform(self, poses: Field[Transform], link: int) -> Transform:
        """The pose of one link, from the poses of the bodies."""

    @abstractmethod
    def link_pose(self, poses: Field[Transform], link: int) -> jax.Array:
        """The matrix (4, 4) of one link, from the poses of the bodies."""

    @abstractmethod
    def link_poses(self, poses: Field[Transform], links: Sequence[int]) -> Pieces:
        """The array (n, 4, 4) of the poses of links, from those of the bodies."""

    @abstractmethod
    def sum_links(self, rows: jax.Array, links: Sequence[int]) -> Field[Scalars]:
        """For each body the sum, over its links, of a matrix of each (n, 4, 4) times the transposed placement: the
        twelve numbers (R by rows, then p) of a cotangent of its pose, of those of the links. At least one link is on
        each body."""

    @abstractmethod
    def move_links(self, rates: Field[Transform], rows: jax.Array, links: Sequence[int]) -> Pieces:
        r"""The rates (n, 4, 4) of links at these poses: $\dot T = \hat V T$, of the $\hat V$ of their bodies, with
        $[\omega]$ in place of a rotation and v of a translation. A link of the world does not move."""
