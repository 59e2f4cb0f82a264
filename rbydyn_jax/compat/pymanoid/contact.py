"""Rectangular contacts and end effectors: frames, cones of forces and wrenches, grasp matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._check import check_finite, check_positive
from ..._errors import ArgumentError, DtypeError, ShapeError
from ...constraints import ContactPatch, distribute_wrench, static_equilibrium_polygon, zmp_support_area
from ...spatial import cones, from_linear_first, so3, to_linear_first
from .._numbers import finite_floats, floats, lengths
from .body import Body, linear_first_cone


class Contact(Body):
    r"""A rectangle that touches the ground, z its normal; forces are those of the ground on the robot.

    Cones are those of dry friction, linearized from inside: of the pyramid $|f_x|, |f_y| \le \mu f_z / \sqrt2$. They
    are stated in world axes at the contact's origin, wrenches as [f; n].

    Args:
        shape: Half of its length along x and of its width along y [m].
        pos: Position in the world [m]; default is the origin.
        rpy: Roll, pitch and yaw [rad]; default is none.
        pose: [qw, qx, qy, qz, x, y, z]; supersedes the other two.
        static_friction: Coefficient of friction; None if it does not matter.
        link: The link of the robot that is in contact: a name, an index, or what `Robot.get_link` returns.

    Example:
        >>> from rbydyn_jax.compat.pymanoid import Contact
        >>> sole = Contact([0.11, 0.05], static_friction=0.7)
        >>> weight = jnp.array([0.0, 0.0, 400.0, 0.0, 0.0, 0.0])
        >>> bool((sole.wrench_inequalities @ weight <= 0).all())
        True
    """

    def __init__(
        self,
        shape: Any,
        pos: Any = None,
        rpy: Any = None,
        pose: Any = None,
        static_friction: Any = None,
        link: Body | str | int | None = None,
    ) -> None:
        super().__init__(pos, rpy, pose)
        self.shape = lengths(shape, "shape", (2,))
        self.static_friction = None if static_friction is None else lengths(static_friction, "static_friction")
        self.link = link

    @property
    def _friction(self) -> Array:
        if self.static_friction is None:
            raise ArgumentError("this contact has no static_friction; give static_friction=")
        return self.static_friction

    @property
    def vertices(self) -> Float[Array, "4 3"]:
        """Corners in world coordinates [m]."""
        return cones.rectangle(self.shape) @ self.R.T + self.p[None]

    @property
    def force_inequalities(self) -> Float[Array, "4 3"]:
        """F with F f <= 0 for forces in world axes."""
        return cones.friction_cone_faces(self._friction) @ self.R.T

    @property
    def force_span(self) -> Float[Array, "3 4"]:
        """The edges of the friction pyramid in world axes, as columns."""
        return self.R @ cones.friction_cone_rays(self._friction)

    @property
    def wrench_inequalities(self) -> Float[Array, "16 6"]:
        """F with F [f; n] <= 0 for wrenches at the contact's origin, in world axes."""
        return linear_first_cone(cones.wrench_cone_faces(self.shape, self._friction), self.R)

    @property
    def wrench_span(self) -> Float[Array, "6 16"]:
        """The rays of the wrench cone at the contact's origin, in world axes, as columns [f; n]."""
        rays = to_linear_first(cones.wrench_cone_rays(self.shape, self._friction))
        return jnp.concatenate([self.R @ rays[:3], self.R @ rays[3:]])

    def compute_grasp_matrix(self, p: Any) -> Float[Array, "6 6"]:
        """Takes a wrench [f; n] at the contact's origin to the same wrench at a point, all in world axes.

        Args:
            p: The point in world coordinates [m].
        """
        arm = so3.hat(self.p - floats(p, "p", (3,)))
        eye, zero = jnp.eye(3, dtype=arm.dtype), jnp.zeros((3, 3), arm.dtype)
        return jnp.concatenate([jnp.concatenate([eye, zero], axis=1), jnp.concatenate([arm, eye], axis=1)])

    def wrench_at(self, wrench: Any, p: Any) -> Float[Array, "6"]:
        """A wrench [f; n] in the contact's frame, stated at a point in world axes.

        Args:
            wrench: Wrench at the contact's origin in its axes [N, N m].
            p: The point in world coordinates [m].
        """
        wrench = floats(wrench, "wrench", (6,))
        turned = jnp.concatenate([self.R @ wrench[:3], self.R @ wrench[3:]])
        return self.compute_grasp_matrix(p) @ turned


def contact_tuple(contacts: Iterable[Contact]) -> tuple[Contact, ...]:
    """The contacts; raises DtypeError if they are something else."""
    if not isinstance(contacts, Iterable):
        raise DtypeError(f"contacts must be a sequence of Contact, got {type(contacts).__name__}")
    each = tuple(contacts)
    for contact in each:
        if not isinstance(contact, Contact):
            raise DtypeError(f"contacts must hold Contact, got {type(contact).__name__}")
    return each


class ContactSet:
    """Contacts that hold a robot together.

    Args:
        contacts: The contacts, each with its friction.

    Example:
        >>> from rbydyn_jax.compat.pymanoid import Contact, ContactSet
        >>> feet = ContactSet([Contact([0.1, 0.05], [0, y, 0], static_friction=0.5) for y in (0.1, -0.1)])
        >>> support = feet.find_supporting_wrenches([0, 0, 400, 0, 0, 0], [0, 0.05, 0])
        >>> [round(float(wrench[2]), 1) for _, wrench in support]
        [280.0, 120.0]
    """

    def __init__(self, contacts: Iterable[Contact]) -> None:
        self.contacts = contact_tuple(contacts)

    def __iter__(self) -> Iterator[Contact]:
        return iter(self.contacts)

    def __len__(self) -> int:
        return len(self.contacts)

    @property
    def _patches(self) -> tuple[ContactPatch, ...]:
        if not self.contacts:
            raise ShapeError("contacts must hold at least one Contact")
        for k, contact in enumerate(self.contacts):
            check_positive(contact._friction, f"contacts[{k}].static_friction")
        return tuple(ContactPatch(c.T, c.shape, c._friction) for c in self.contacts)

    def compute_grasp_matrix(self, p: Any) -> Float[Array, "6 n"]:
        """Takes the wrenches [f; n] of all contacts, each at its origin in world axes, to their sum at a point."""
        p = floats(p, "p", (3,))
        none = jnp.zeros((6, 0), p.dtype)
        return jnp.concatenate([none, *(contact.compute_grasp_matrix(p) for contact in self.contacts)], axis=1)

    def find_supporting_wrenches(self, wrench: Any, point: Any) -> list[tuple[Contact, Float[Array, "6"]]] | None:
        """The contacts, each with its wrench [f; n] at its origin in world axes, that together give a wrench.

        Args:
            wrench: [f; n] at the point, in world axes [N, N m]; see `Humanoid.compute_net_contact_wrench`.
            point: The point in world coordinates [m].

        Returns:
            The pairs of the smallest forces at the corners (`constraints.distribute_wrench`), or None if the contacts
            cannot give the wrench.

        Raises:
            ArgumentError: A contact has no friction, or a number is not finite.
            ShapeError: There is no contact, or an argument has another shape.
        """
        wrench, point = floats(wrench, "wrench", (6,), "[f; n]"), floats(point, "point", (3,))
        for name, x in (("wrench", wrench), ("point", point)):
            check_finite(x, name)
        found = distribute_wrench(self._patches, from_linear_first(wrench), point)
        if not bool(found.feasible):
            return None
        return [(contact, to_linear_first(w)) for contact, w in zip(self.contacts, found.wrenches, strict=True)]

    def compute_static_equilibrium_polygon(self, *, directions: int = 32) -> Float[Array, "d 2"] | None:
        """Vertices of the horizontal area of the centre of mass in which the contacts can hold the robot at rest [m].

        Args:
            directions: In how many directions the outermost point is taken; a point may occur several times.

        Returns:
            The points, counterclockwise; None if there are none.

        Raises:
            ArgumentError: A contact has no friction, or there are less than three directions.
        """
        area = static_equilibrium_polygon(self._patches, directions=directions)
        return area.points if bool(area.feasible) else None

    def compute_zmp_support_area(
        self, com: Any, plane: Any = (0.0, 0.0, 0.0), *, directions: int = 32
    ) -> Float[Array, "d 2"] | None:
        """Vertices of the area of the zero-tilting-moment point in a horizontal plane [m].

        Args:
            com: Centre of mass in world coordinates [m].
            plane: A point of the plane [m].
            directions: In how many directions the outermost point is taken; a point may occur several times.

        Returns:
            The points, counterclockwise; None if there are none.

        Raises:
            ArgumentError: A contact has no friction, or there are less than three directions.
        """
        height = floats(plane, "plane", (3,))[2]
        area = zmp_support_area(self._patches, floats(com, "com", (3,)), height, directions=directions)
        return area.points if bool(area.feasible) else None


class Manipulator(Body):
    """An end effector, with the wrench that acts on it and the rectangle with which it can touch.

    Args:
        pos: Position in the world [m]; default is the origin.
        rpy: Roll, pitch and yaw [rad]; default is none.
        pose: [qw, qx, qy, qz, x, y, z]; supersedes the other two.
        shape: Half sizes of the rectangle [m].
        friction: Coefficient of friction.
        wrench: [f; n] in the end effector's frame [N, N m].
        link: The link of the robot: a name, an index, or what `Robot.get_link` returns.
    """

    def __init__(
        self,
        pos: Any = None,
        rpy: Any = None,
        pose: Any = None,
        shape: Any = None,
        friction: Any = None,
        wrench: Any = None,
        link: Body | str | int | None = None,
    ) -> None:
        super().__init__(pos, rpy, pose)
        self.shape = None if shape is None else lengths(shape, "shape", (2,))
        self.friction = None if friction is None else lengths(friction, "friction")
        self.wrench = None if wrench is None else finite_floats(wrench, "wrench", (6,))
        self.link = link

    @property
    def index(self) -> int:
        """Index of the link, for Jacobians and Hessians.

        Raises:
            ArgumentError: `link` is not an index or a link of `Robot.get_link`.
        """
        if isinstance(self.link, Body):
            return self.link.index
        if isinstance(self.link, int):
            return self.link
        raise ArgumentError(f"the index of link {self.link!r} is not known here; give link=robot.get_link(name)")

    @property
    def force(self) -> Float[Array, "3"] | None:
        """Force in the end effector's axes [N], if there is a wrench."""
        return None if self.wrench is None else floats(self.wrench, "wrench", (6,))[:3]

    @property
    def moment(self) -> Float[Array, "3"] | None:
        """Moment in the end effector's axes [N m], if there is a wrench."""
        return None if self.wrench is None else floats(self.wrench, "wrench", (6,))[3:]

    def get_contact(self, pos: Any = None, shape: Any = None) -> Contact:
        """The contact with the end effector's orientation.

        Args:
            pos: Its position [m]; default is the end effector's.
            shape: Its half sizes [m]; default is the end effector's.

        Raises:
            ArgumentError: Neither has a shape.
        """
        sizes = self.shape if shape is None else shape
        if sizes is None:
            raise ArgumentError("this end effector has no shape; give shape=(half length, half width)")
        contact = Contact(sizes, static_friction=self.friction, link=self.link)
        contact.set_transform(self.T)
        if pos is not None:
            contact.set_pos(pos)
        return contact
