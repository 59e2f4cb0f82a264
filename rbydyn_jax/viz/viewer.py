"""A robot in a browser: sliders, distances, obstacles, forces, a motion, and links that are dragged."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._check import check_finite, check_flag, check_integer, check_number, check_real, check_sequence, known
from .._errors import ArgumentError, DtypeError, RbydynError, ShapeError
from .._extras import require
from ..algorithms.centroidal import total_mass
from ..collision import ShapePairs, World
from ..constraints import Contact
from ..model.configuration import clamp, neutral
from ..model.model import Model, check_model
from ..planning._clearance import checked_clearance
from .drag import Drag, movable_links
from .joints import JointSliders
from .meshes import FEATURE
from .motion_data import check_positions, motion_data
from .playback import Playback
from .port import free_port
from .scene import FORCE, RobotScene, add_ghosts, add_world
from .skeleton import has_body
from .state import Gaps, Poses, batch_poses, default_pairs, numpy, robot_state


class Viewer:
    """A robot in a browser, served by viser (extra `view`) from this process.

    The page has sliders for the joints, the collision shapes, the visuals of a URDF file, frames of links, the centre
    of mass, and lines between the nearest pairs, red at contact and green from 150 mm on. It is a context manager, and
    in a notebook it shows the page.

    Args:
        model: The robot.
        q: Its configuration (nq,) [rad, m]; default is the neutral one, clamped to the limits.
        world: Obstacles.
        urdf: The URDF, xacro or MJCF file whose visuals are shown; see `missing_meshes`.
        packages: Folders in which ``package://`` of the URDF file is looked for, before ROS_PACKAGE_PATH and the
            folders around the file.
        collision_pairs: The pairs whose distances are shown; default is `collision.pairs(model)`.
        nearest: How many of the nearest pairs are shown.
        host: The network interface; ``"0.0.0.0"`` lets other machines in.
        port: The first port that is tried; the next free one is taken. 0 is any.
        quiet: Whether not to print the address of the page.

    Attributes:
        model: The robot.
        world: Obstacles.
        pairs: The pairs whose distances are shown; None if the robot has none.
        playback: The motion that is played, if there is one.
        server: The `viser.ViserServer`, for what else is to be shown.

    Raises:
        ArgumentError: `q` is not finite, or a joint has no position there, or `nearest` is less than 1, or no server
            can listen at `host` and `port`.
        DtypeError: An argument is of another type.
        MissingExtraError: viser is not installed.
        ModelError: The pairs are of another robot.
        ParseError: The URDF file cannot be read.
        ShapeError: `q` is not of shape (nq,).
    """

    def __init__(
        self,
        model: Model,
        q: Float[Any, "nq"] | None = None,
        *,
        world: World | None = None,
        urdf: str | Path | None = None,
        packages: Sequence[str | Path] = (),
        collision_pairs: ShapePairs | None = None,
        nearest: int = 8,
        host: str = "127.0.0.1",
        port: int = 8080,
        quiet: bool = False,
    ) -> None:
        self.model, self.world = check_model(model), world
        if not isinstance(world, World | None):
            raise DtypeError(f"world must be a collision.World, got {type(world).__name__}")
        check_sequence(packages, "packages", "folders")
        quiet = check_flag(quiet, "quiet")
        viser = require("viser", "view", FEATURE)
        self._x64 = jnp.zeros(()).dtype == np.float64
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._moving = False
        self.pairs = default_pairs(self.model) if collision_pairs is None else collision_pairs
        self._nearest = check_integer(nearest, "nearest", 1)
        self._q = np.array(clamp(self.model, neutral(self.model))) if q is None else self._checked(q)
        self._state = self._computed(self._q)
        self._contacts: tuple[Contact, ...] = ()
        self._forces = np.zeros((0, 3))
        self.playback: Playback | None = None
        port = free_port(host, port)
        with contextlib.redirect_stdout(io.StringIO()):  # viser prints its addresses, of websockets, too
            self.server = viser.ViserServer(host=host, port=port, verbose=False)
        try:
            self._build(urdf, packages)
        except BaseException:
            self._stop()
            raise
        if not quiet:
            print(_announcement(self.url, self.server.get_port()), flush=True)

    # The page

    def _build(self, urdf: str | Path | None, packages: Sequence[str | Path]) -> None:
        scene, gui, poses = self.server.scene, self.server.gui, self._state.poses
        low, high = poses.position.min(axis=0), poses.position.max(axis=0)
        size = max(float(np.linalg.norm(high - low)), 0.1)
        middle = 0.5 * (low + high)
        self.server.initial_camera.look_at = tuple(middle)
        self.server.initial_camera.position = tuple(middle + size * np.array([0.95, -0.55, 0.3]))
        scene.add_grid("/grid", width=20.0, height=20.0, cell_size=0.5, infinite_grid=True, fade_distance=12.0)
        self._robot = RobotScene(scene, self.model, urdf, packages, size)
        if self.world is not None:
            add_world(scene, self.world)
        self._arrows = scene.add_arrows(
            "/forces",
            np.zeros((0, 2, 3)),
            FORCE,
            shaft_radius=0.01 * size,
            head_radius=0.02 * size,
            head_length=0.04 * size,
        )
        weight = float(total_mass(self.model)) * float(np.linalg.norm(self.model.gravity))
        self._per_newton = 0.5 * size / weight if weight > 0.0 else 1e-3
        gui.set_panel_label(self.model.name)
        gui.configure_theme(show_logo=False, show_share_button=False)
        self._text = gui.add_markdown("")
        with gui.add_folder("Show"):
            self._checkboxes(gui)
        with gui.add_folder("Drag"):
            self._drag = Drag(self, gui, scene, 0.2 * size)
        with gui.add_folder("Joints"):
            self._sliders = JointSliders(gui, self.model, self._q, self._slid)
        self._show_state()

    def _checkboxes(self, gui: Any) -> None:
        robot = self._robot
        groups = {
            "visuals": (robot.visuals, True),
            "shapes": (robot.shapes, not robot.visuals),
            "nearest pairs": ([robot.gaps] if self._state.gaps is not None else [], True),
            "centre of mass": ([robot.com] if np.isfinite(self._state.com).all() else [], False),
            "bones": ([robot.bones], not (robot.visuals or has_body(self.model))),
        }
        for label, (handles, initial) in groups.items():
            if handles:
                box = gui.add_checkbox(label, initial)
                _bind(box, handles, "visible")
        _bind(gui.add_checkbox("frames", False), robot.frames, "show_axes")

    # The configuration

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        """The precision of JAX where the viewer was made; viser calls from other threads."""
        with jax.enable_x64(self._x64):
            yield

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise RbydynError("the viewer is closed: make a new one to show more")

    def _checked(self, q: Any) -> np.ndarray:
        q = check_real(q, "q", (self.model.nq,))
        check_finite(q, "q")
        self.model.tree.check_configuration(q, "q")
        return q.astype(self.model.inertias.dtype)

    def _computed(self, q: np.ndarray) -> Any:
        with self.precision():
            return numpy(robot_state(self.model, jnp.asarray(q), self.world, self.pairs, self._nearest))

    @property
    def q(self) -> np.ndarray:
        """The configuration that is shown (nq,) [rad, m]; assign to show another."""
        return self._q.copy()

    @q.setter
    def q(self, q: Float[Any, "nq"]) -> None:
        self.move(q)

    @property
    def sliders(self) -> dict[str, Any]:
        """The sliders by the name of their joint; where a joint has several coordinates with ``[k]`` behind it, and
        where it turns freely with ``.rx``, ``.ry``, ``.rz`` (rotation vector) and ``.x``, ``.y``, ``.z``."""
        return self._sliders.by_name

    @property
    def gizmos(self) -> dict[str, Any]:
        """The gizmos by the name of their link; see `drag`."""
        return self._drag.gizmos

    @property
    def compiling(self) -> bool:
        """Whether the solver for the gizmos is being compiled."""
        return self._drag.compiling

    @property
    def poses(self) -> Poses:
        """The poses of the links that are shown."""
        return self._state.poses

    def move(self, q: Float[Any, "nq"], *, dragged: bool = False) -> None:
        """Shows a configuration; the gizmos follow unless it is they that moved it.

        Raises:
            ArgumentError: The configuration is not finite, or a joint has no position there.
            DtypeError: It is no array of numbers, or `dragged` neither True nor False.
            RbydynError: The viewer is closed.
            ShapeError: It is not of shape (nq,).
        """
        self._check_open()
        q, dragged = self._checked(q), check_flag(dragged, "dragged")
        with self._lock, self.precision():
            self._q, self._state = q, self._computed(q)
            self._moving = True
            try:
                with self.server.atomic():
                    self._show_state()
                    self._sliders.show(q)
                    if not dragged:
                        self._drag.follow(self.poses)
            finally:
                self._moving = False

    def _slid(self) -> None:
        with self._lock, self.precision():
            if not self._moving and not np.array_equal(q := self._sliders.read(self._q), self._q):
                self.move(q)

    def _show_state(self) -> None:
        self._robot.move(self._state)
        self._text.content = self._distance_text(self._state.gaps)
        links = [self.model.link_index(contact.link) for contact in self._contacts]
        points = [np.asarray(contact.point, float) for contact in self._contacts]
        start = [self.poses.position[k] + rotated(self.poses.wxyz[k], p) for k, p in zip(links, points, strict=True)]
        at = np.array(start).reshape(-1, 3)
        self._arrows.points = np.stack([at, at + self._per_newton * self._forces], axis=1)

    def _distance_text(self, gaps: Gaps | None) -> str:
        if gaps is None:
            return ""
        names = (*self.model.link_names, *(f"obstacle {k}" for k in range(len(self.world or ()))))
        a, b = (names[k] for k in gaps.between[0])
        return f"minimum distance **{1e3 * float(gaps.distance[0]):.1f} mm**, {a} and {b}"

    # What is added

    def show_ghosts(self, q: Float[Any, "n nq"], *, opacity: float = 0.15) -> None:
        """Shows the robot in a batch of configurations, pale, instead of the ones shown so before.

        Args:
            q: Configurations (n, nq) [rad, m].
            opacity: From 0 to 1.

        Raises:
            ArgumentError: A configuration is not finite or a joint has no position there, or the opacity is not from 0
                to 1.
            DtypeError: `q` is no array of numbers, or the opacity no number.
            RbydynError: The viewer is closed.
            ShapeError: `q` is not of shape (n, nq).
        """
        self._check_open()
        q = configurations(self.model, q, "q")
        if not 0.0 <= check_number(opacity, "opacity") <= 1.0:
            raise ArgumentError(f"opacity must be from 0 to 1, got {opacity}")
        with self._lock, self.precision():
            poses = numpy(batch_poses(self.model, jnp.asarray(q, self.model.inertias.dtype)))
            add_ghosts(self.server.scene, self.model, poses, opacity)

    def show_forces(self, contacts: Sequence[Contact], forces: Float[Any, "c 3"]) -> None:
        """Shows forces at points of links as arrows, which move with the links; half the robot long for its weight.

        Args:
            contacts: The points.
            forces: The force at each in world axes (c, 3) [N], such as `contact_forces(...).forces`.

        Raises:
            ArgumentError: A force is not finite.
            DtypeError: `contacts` are none, or `forces` no numbers.
            NameNotFoundError: There is no such link.
            RbydynError: The viewer is closed.
            ShapeError: `forces` is not of shape (c, 3).
        """
        self._check_open()
        contacts = self._contacts_of(contacts)
        forces = check_real(forces, "forces", (len(contacts), 3))
        check_finite(forces, "forces")
        with self._lock:
            self._contacts, self._forces = contacts, forces
            self._show_state()

    def _contacts_of(self, contacts: Sequence[Contact]) -> tuple[Contact, ...]:
        for contact in check_sequence(contacts, "contacts", "Contact"):
            if not isinstance(contact, Contact):
                raise DtypeError(f"contacts must be a tuple of Contact, got {type(contact).__name__}")
            self.model.link_index(contact.link)
        return tuple(contacts)

    def drag(self, *links: str, clearance: float | None = None) -> None:
        """Puts gizmos on links; the robot follows them by `solve_ik`, which is compiled beside.

        Args:
            *links: The links, instead of those that had gizmos before; none removes them.
            clearance: Minimum distance of every pair of collision shapes, and from the world [m].

        Raises:
            ArgumentError: The clearance is not finite.
            DtypeError: It is not a number.
            ModelError: No joint moves a link, or there is a clearance and the robot has no shapes that could keep it.
            NameNotFoundError: There is no such link.
            RbydynError: The viewer is closed.
        """
        self._check_open()
        clearance = None if clearance is None else check_number(clearance, "clearance")
        names = movable_links(self.model, links)
        if clearance is not None:
            checked_clearance(self.model, clearance, self.pairs, self.world, self.model.inertias.dtype)
        with self._lock:
            self._drag.start(names, clearance)

    def play(
        self, trajectory: Any, *, dt: float | None = None, contacts: Sequence[Contact] = (), forces: Any = None
    ) -> Playback:
        """Adds a time slider, a play button and plots of a motion, instead of those of the one before.

        Args:
            trajectory: A `Trajectory`, its samples or its report, a `Simulation`, or configurations (t, nq) [rad, m].
            dt: Time between the configurations [s], if they are an array.
            contacts: Points of links at which forces are shown.
            forces: The forces there at each time in world axes (t, c, 3) [N].

        Raises:
            ArgumentError: A value is not finite, a joint has no position, or there are fewer than two times or they do
                not ascend.
            DtypeError: `trajectory` is of another type, or an array without `dt`.
            NameNotFoundError: There is no such link.
            RbydynError: The viewer is closed.
            ShapeError: The motion is of another robot or a batch, or `forces` of another shape.
        """
        self._check_open()
        with self.precision():
            data = motion_data(self.model, trajectory, dt, self.pairs, self.world)
        contacts = self._contacts_of(contacts)
        if forces is not None:
            forces = check_real(forces, "forces", (len(data.times), len(contacts), 3))
            check_finite(forces, "forces")
            self.show_forces(contacts, forces[0])
        if self.playback is not None:
            self.playback.close()
        self.playback = Playback(self, self.server, data, forces)
        return self.playback

    def set_forces(self, forces: np.ndarray) -> None:
        """Other forces at the same contacts (c, 3) [N], which are shown with the next configuration.

        Raises:
            ArgumentError: A force is not finite.
            DtypeError: `forces` are no numbers.
            RbydynError: The viewer is closed.
            ShapeError: `forces` is not of shape (c, 3).
        """
        self._check_open()
        forces = check_real(forces, "forces", (len(self._contacts), 3))
        check_finite(forces, "forces")
        with self._lock:
            self._forces = forces

    # The server

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://localhost:{self.server.get_port()}"

    @property
    def missing_meshes(self) -> tuple[str, ...]:
        """Names of the mesh files of the URDF file that were not found or could not be read."""
        return tuple(self._robot.missing)

    def wait(self) -> None:
        """Waits until the viewer is closed, or interrupted from the keyboard, and closes it."""
        try:
            while not self._closed.wait(0.5):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Ends the server and its threads; a second call does nothing."""
        if self._closed.is_set():
            return
        if self.playback is not None:
            self.playback.close()
        self._drag.close()
        self._stop()

    def _stop(self) -> None:
        self._closed.set()
        with contextlib.redirect_stdout(io.StringIO()):  # viser prints that it stops
            self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" width="100%" height="600" style="border: 0"></iframe>'


def configurations(model: Model, x: Any, name: str) -> np.ndarray:
    """A batch of configurations (n, nq) [rad, m].

    Raises:
        ArgumentError: One is not finite, or a joint has no position there.
        DtypeError: It is no array of numbers.
        ShapeError: It is of another shape.
    """
    numbers = known(x)
    if numbers is not None and numbers.ndim != 2:
        raise ShapeError(f"{name} must have shape (n, {model.nq}), got {numbers.shape}")
    q = check_real(x, name, (0 if numbers is None else len(numbers), model.nq))
    check_finite(q, name)
    check_positions(model, q, name)
    return q


def rotated(wxyz: Any, p: np.ndarray) -> np.ndarray:
    """A point (3,) turned by a unit quaternion."""
    t = 2.0 * np.cross(wxyz[1:], p)
    return p + wxyz[0] * t + np.cross(wxyz[1:], t)


def _bind(box: Any, handles: Sequence[Any], attribute: str) -> None:
    """Makes a checkbox the switch of an attribute of handles."""

    def switch(_: Any = None) -> None:
        for handle in handles:
            setattr(handle, attribute, box.value)

    switch()
    box.on_update(switch)


def _announcement(url: str, port: int) -> str:
    if "SSH_CONNECTION" in os.environ:
        return f"viewer: {url} (on your own machine, after ssh -L {port}:localhost:{port} {socket.gethostname()})"
    return f"viewer: {url}"
