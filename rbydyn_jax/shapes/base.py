"""What a shape has to offer: `Geometry` in files and descriptions, `Shape` on a robot."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from jaxtyping import Float

from .._errors import ModelError
from .._lazy import jax
from ..spatial.algebra import Transform
from ..xla.structural import Scalar

Vector = tuple["jax.Array", "jax.Array", "jax.Array"]  # x, y, z of many points, each an array of one shape


class SizeReader(Protocol):
    """The attributes of one element of a file; what is missing or wrong is reported and replaced."""

    def size(self, attribute: str) -> float:
        """A length [m] that is not negative."""
        ...

    def sizes(self, attribute: str) -> np.ndarray:
        """Three of them (3,) [m]."""
        ...

    def vector(self, attribute: str, default: Sequence[float]) -> np.ndarray:
        """Three numbers of any sign (3,)."""
        ...

    def text(self, attribute: str) -> str:
        """A text that is not empty."""
        ...


@dataclass(frozen=True, eq=False)
class Geometry(abc.ABC):
    """A shape in its own axes, as a description or a file has it: the base of frozen dataclasses in plain numpy.

    The fields (numbers, arrays, text) are the attributes of the URDF element.

    Attributes:
        tag: Name of the shape and of its URDF element.
        sizes: The fields that are lengths, which must be finite and not negative.
        size_shape: The shape of each of them.
        unused: Attributes that URDF files of some makers have and that are not used.
    """

    tag: ClassVar[str]
    sizes: ClassVar[tuple[str, ...]] = ()
    size_shape: ClassVar[tuple[int, ...]] = ()
    unused: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abc.abstractmethod
    def read(cls, element: SizeReader) -> Self:
        """The shape that a URDF element describes."""

    def problem(self) -> str:
        """What is wrong with its numbers; empty if nothing."""
        sizes: list[float] = []
        for name in self.sizes:
            given = getattr(self, name)
            try:
                x = np.asarray(given, float)
            except (TypeError, ValueError):
                x = None
            if x is None or x.shape != self.size_shape:
                expected = "three numbers" if self.size_shape else "a number"
                return f"{self.tag} has the {name} {given!r}, expected {expected}"
            sizes += x.reshape(-1).tolist()
        if all(math.isfinite(size) and size >= 0.0 for size in sizes):
            return ""
        return f"collision shape has the sizes {sizes}, expected finite numbers >= 0"


@dataclass(frozen=True, eq=False)
class CollisionGeometry(Geometry):
    """A shape of which distances are computed.

    Attributes:
        mujoco: Its type among the geoms of MuJoCo, such as ``"capsule"``; None if there is none.
    """

    mujoco: ClassVar[str | None] = None

    @classmethod
    def from_mujoco(cls, size: np.ndarray) -> Self:
        """The shape of a geom of MuJoCo with the numbers `size` (3,).

        Raises:
            ModelError: MuJoCo has no such type.
        """
        raise ModelError(f"MuJoCo has no geoms of the type {cls.tag!r}")

    @abc.abstractmethod
    def on_link(self, origin: Float[np.ndarray, "4 4"]) -> Shape:
        """Its parameters in the axes of a link, for its pose T_link_shape there."""


class Shape(Protocol):
    """The parameters of one shape in the axes of its link, or of all shapes of one kind on a robot: a `NamedTuple`.

    In the second case, `Model.shapes[kind]`, each field has a leading axis. The fields are leaves of the model. Shapes
    are welded with their links, as they are kept in the axes of the link.
    """

    @property
    def kind(self) -> str:
        """The key of `Model.shapes` and of the table of pairs: an attribute of the class."""
        ...

    @property
    def points(self) -> int:
        """How many of the vectors of `moved` are points, the first ones: an attribute of the class."""
        ...

    @property
    def directions(self) -> int:
        """How many are not, so that only rotations move them: an attribute of the class."""
        ...

    def moved(self, row: int, pose: Transform) -> tuple[Scalar, ...]:
        """The parameters of one of all shapes that depend on the pose of its link, in the axes of the world.

        These are vectors, component by component: points, then directions.

        Args:
            row: Which shape of the kind.
            pose: T_world_link.
        """
        ...

    def gathered(self, rows: np.ndarray, moved: Sequence[jax.Array]) -> Any:
        """What the pair functions are given: some of the shapes in world coordinates, component by component.

        Its first leaves are those of `moved`, in their order.

        Args:
            rows: Which shapes of the kind (n,); one may occur several times.
            moved: Each entry of their `moved` as an array (n,).
        """
        ...

    def described(self) -> tuple[CollisionGeometry, Float[np.ndarray, "4 4"]]:
        """Of one shape its geometry and pose T_link_shape, of which `on_link` makes the shape again."""
        ...

    def surface(self, pose: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "n 4 3"]:
        """Of one shape the quadrilaterals of its surface in world coordinates, given T_world_link."""
        ...
