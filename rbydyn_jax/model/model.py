"""The robot as a pytree: parameters are leaves, topology is static."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_finite, check_real
from .._errors import DtypeError, Finding, ShapeError
from .._process import check_process
from ..shapes import Shape
from ..shapes.capsule import Capsule
from ..spatial import inertia
from .arrays import RobotArrays
from .leaves import tree_and_leaves
from .specialized import SpecializedModel
from .summary import model_text
from .tree import IS_MINUS_ONE, IS_ONE, KinematicTree

_PRINTED_ROWS = 30


class Model(eqx.Module):
    """A robot: an immutable pytree of a few arrays, with its topology as static data.

    Limits are those of the joints that have coordinates: a joint that mimics another has none of its own.

    All leaves are traced inputs of compiled functions: changing a mass, payload, limit, length or gravity does not
    recompile, and gradients with respect to every leaf are exact. Compiled functions depend only on the dtype and on
    `tree`: the topology, the names, and the sparsity pattern of the geometry, that is which entries are 0, 1 or -1 (a
    pure translation, an axis along y). All other entries are in the leaf `geometry`; `joint_placements`, `joint_axes`
    and `link_placements` return them as matrices, and `with_geometry` replaces them. `no_recompile` reports the cause
    of a recompilation.

    Attributes:
        tree: Topology and names.
        geometry: Entries of joint placements, joint axes and link placements that are not 0, 1 or -1.
        inertias: Inertial parameters of each body with all links welded to it, about the body's origin in its axes:
            m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
        welded_inertias: Parameters of the links that are welded to another link or to the world, in their own axes.
        position_lower: Lower limit of q [rad, m].
        position_upper: Upper limit of q [rad, m].
        velocity_limit: Largest |v| [rad/s, m/s].
        acceleration_limit: Largest |a| [rad/s^2, m/s^2].
        effort_limit: Largest |tau| [N m, N].
        armature: Rotor inertia, reflected to the joint [kg m^2, kg].
        damping: Viscous friction [N m s/rad, N s/m].
        friction: Coulomb friction [N m, N].
        mimic_multipliers: Multiplier of each mimic joint.
        mimic_offsets: Offset of each mimic joint.
        gravity: Acceleration of free fall in world axes [m/s^2].
        shapes: For each kind of collision shape the parameters of all its shapes, in the axes of their links;
            `tree.shape_kinds` has their order. There are always capsules, possibly none.
    """

    tree: KinematicTree = eqx.field(static=True)
    geometry: Float[Array, "k"]
    inertias: Float[Array, "nb 10"]
    welded_inertias: Float[Array, "nw 10"]
    position_lower: Float[Array, "nq"]
    position_upper: Float[Array, "nq"]
    velocity_limit: Float[Array, "nv"]
    acceleration_limit: Float[Array, "nv"]
    effort_limit: Float[Array, "nv"]
    armature: Float[Array, "nv"]
    damping: Float[Array, "nv"]
    friction: Float[Array, "nv"]
    mimic_multipliers: Float[Array, "nm"]
    mimic_offsets: Float[Array, "nm"]
    gravity: Float[Array, "3"]
    shapes: dict[str, Shape]

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.tree.name

    @property
    def nq(self) -> int:
        """Size of the configuration q."""
        return self.tree.nq

    @property
    def nv(self) -> int:
        """Size of the velocity v."""
        return self.tree.nv

    @property
    def nb(self) -> int:
        """Number of bodies that move, one for each joint."""
        return self.tree.nb

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q and v."""
        return self.tree.joint_names

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of all links, the root first."""
        return self.tree.link_names

    @property
    def report(self) -> tuple[Finding, ...]:
        """What was corrected or ignored in the robot's file."""
        return self.tree.report

    def link_index(self, link: str | int) -> int:
        """Index of a link; raises NameNotFoundError with the closest names."""
        return self.tree.link_index(link)

    def joint_index(self, joint: str | int) -> int:
        """Index of a moving joint; raises NameNotFoundError with the closest names."""
        return self.tree.joint_index(joint)

    @property
    def joint_placements(self) -> Float[Array, "nb 4 4"]:
        """T_parent_joint of each joint at zero position."""
        return poses_from_pattern(self.geometry, self.tree.placement_pattern)

    @property
    def joint_axes(self) -> Float[Array, "nb 3"]:
        """Unit axis of each joint, in the joint's frame."""
        return numbers_from_pattern(self.geometry, [row[:3] for row in self.tree.axis_pattern], 3)

    @property
    def joint_parameters(self) -> Float[Array, "np"]:
        """The parameters of all joints whose type has some, such as the pitch of a screw [m/rad]."""
        return self.geometry[np.array(self.tree.parameter_slots, int)]

    @property
    def link_placements(self) -> Float[Array, "nl 4 4"]:
        """T_body_link of each link."""
        return poses_from_pattern(self.geometry, self.tree.link_pattern)

    @property
    def capsule_segments(self) -> Float[Array, "nc 2 3"]:
        """End points of the axis of each collision capsule, in its link's axes [m]."""
        return self._capsules.segment

    @property
    def capsule_radii(self) -> Float[Array, "nc"]:
        """Radius of each collision capsule [m]."""
        return self._capsules.radius

    @property
    def _capsules(self) -> Capsule:
        return cast(Capsule, self.shapes[Capsule.kind])

    @property
    def link_inertias(self) -> Float[Array, "nl 10"]:
        """Each link's own inertial parameters, in its own axes."""
        shares = welded_shares(self)
        rows = [
            self.inertias[body] - shares[body] if slot < 0 else self.welded_inertias[slot]
            for body, slot in zip(self.tree.link_bodies, self.tree.welded_slots, strict=True)
        ]
        return jnp.stack(rows) if rows else jnp.zeros((0, 10), self.inertias.dtype)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, nq={self.nq}, nv={self.nv}, joints={self.nb}, links={len(self.link_names)})"

    def __str__(self) -> str:
        return model_text(self, _PRINTED_ROWS)

    def summary(self) -> str:
        """The whole tree of joints and links with types, axes and limits [rad, m, s, N m, N]; `print(model)` shows the
        beginning of it.

        Example:
            >>> print(robots.pendulum().summary())
            pendulum: 1 moving joints, nq = 1, nv = 1, 2 links, 0 capsules
            world + base
              hinge -> bob  continuous (0 1 0)
        """
        return model_text(self)


def numbers_from_pattern(geometry: Array, pattern: Sequence[Sequence[int]], width: int) -> Array:
    """The dense array (n, width) of a pattern: indices refer to `geometry`, constants are filled in."""
    index = np.asarray(pattern, dtype=np.int64).reshape(-1, width)
    constants = np.select([index == IS_ONE, index == IS_MINUS_ONE], [1.0, -1.0], 0.0)
    if geometry.shape[0] == 0:
        return jnp.asarray(constants, geometry.dtype)
    return jnp.where(index >= 0, geometry[np.maximum(index, 0)], jnp.asarray(constants, geometry.dtype))


def poses_from_pattern(geometry: Array, pattern: Sequence[Sequence[int]]) -> Array:
    """The 4x4 matrices of a pattern of 12 entries each."""
    numbers = numbers_from_pattern(geometry, pattern, 12)
    n = numbers.shape[0]
    top = jnp.concatenate([numbers[:, :9].reshape(n, 3, 3), numbers[:, 9:].reshape(n, 3, 1)], axis=2)
    bottom = jnp.broadcast_to(jnp.array([[0.0, 0.0, 0.0, 1.0]], numbers.dtype), (n, 1, 4))
    return jnp.concatenate([top, bottom], axis=1)


def welded_shares(model: Model) -> Array:
    """For each body, the sum of the inertias of the links that are welded to its principal link."""
    shares = jnp.zeros_like(model.inertias)
    slots = np.array(model.tree.welded_slots)
    bodies = np.array(model.tree.link_bodies)
    links = np.flatnonzero((slots >= 0) & (bodies >= 0))
    if links.size == 0:
        return shares
    moved = jax.vmap(inertia.transform)(model.link_placements[links], model.welded_inertias[slots[links]])
    return shares.at[bodies[links]].add(moved)


def single_shapes(model: Model) -> list[Shape]:
    """The collision shapes one by one, in the order of the tree, in plain numpy."""
    tree, shapes = model.tree, jax.tree.map(lambda x: np.asarray(x, float), model.shapes)
    return [
        jax.tree.map(lambda x, row=row: x[row], shapes[kind])
        for kind, row in zip(tree.shape_kinds, tree.shape_rows, strict=True)
    ]


def model_from_arrays(
    robot: RobotArrays,
    *,
    report: Sequence[Finding] = (),
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    dtype: jnp.dtype | None = None,
) -> Model:
    """The Model of a welded robot in plain numpy; `dtype` defaults to JAX's default float.

    Raises:
        ArgumentError: `gravity` is not finite.
        DtypeError: `dtype` is not a floating-point type, or `gravity` is not numeric.
        ShapeError: `gravity` is not of shape (3,).
    """
    dtype, field = float_dtype(dtype), free_fall(gravity)

    def array(x: np.ndarray) -> Array:
        with np.errstate(over="ignore"):  # limits beyond the largest number of the type are none
            return jnp.asarray(np.asarray(x, float), dtype)

    tree, leaves = tree_and_leaves(robot, report)
    numbers = {name: array(x) for name, x in leaves.items()}
    return Model(tree=tree, **numbers, gravity=array(field), shapes=jax.tree.map(array, robot.shapes))


def float_dtype(dtype: Any) -> np.dtype:
    """The floating-point type of a model's leaves; None is JAX's default.

    Raises:
        DtypeError: `dtype` is another type, or none.
        RbydynError: The process was forked from one that had used JAX.
    """
    check_process()
    if dtype is None:
        return jnp.zeros(()).dtype
    try:
        found = jnp.dtype(int if isinstance(dtype, jax.Array | np.ndarray | dict) else dtype)
    except (TypeError, ValueError):
        raise DtypeError(f"dtype must be a floating-point type such as jnp.float32, got {dtype!r}") from None
    if not jnp.issubdtype(found, jnp.floating):
        raise DtypeError(f"dtype must be a floating-point type such as jnp.float32, got {found}")
    return found


def free_fall(gravity: Any) -> np.ndarray:
    """Three finite numbers in double precision.

    Raises:
        ArgumentError: `gravity` is not finite.
        DtypeError: `gravity` is not numeric.
        ShapeError: `gravity` is not of shape (3,).
    """
    g = check_real(gravity, "gravity", (3,))
    check_finite(g, "gravity")
    return g


def check_model(model: Any, name: str = "model") -> Model:
    """Returns `model`, or the model inside a specialised one.

    Raises:
        DtypeError: It is not a model.
        ShapeError: It is a batch of models, or its leaves do not fit its tree.
    """
    if isinstance(model, SpecializedModel):
        return model.model  # its parameters are constants of the trace
    if not isinstance(model, Model):
        raise DtypeError(f"{name} must be a Model (from load_urdf, build_model or robots), got {type(model).__name__}")
    expected = {"inertias": (model.nb, 10), "gravity": (3,), "armature": (model.nv,), "position_lower": (model.nq,)}
    for leaf, shape in expected.items():
        found = getattr(getattr(model, leaf), "shape", None)
        if found == shape:
            continue
        if found is not None and found[1:] == shape:
            raise ShapeError(f"{name} is a batch of {found[0]} models; use jax.vmap over it")
        raise ShapeError(f"{name}.{leaf} must have shape {shape}, got {found}")
    return model
