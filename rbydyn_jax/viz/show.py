"""A viewer in one call."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from jaxtyping import Float

from .._check import check_flag
from ..constraints import Contact
from ..model.model import Model, check_model
from .drag import movable_links
from .robot import check_links
from .viewer import Viewer, configurations


def show(
    model: Model,
    q: Float[Any, "nq"] | None = None,
    *,
    ghosts: Float[Any, "n nq"] | None = None,
    drag: str | Sequence[str] = (),
    block: bool | None = None,
    **options: Any,
) -> Viewer:
    """Shows a robot in a browser, with a slider for each joint.

    Prints the address of the page, on a machine without a screen, too.

    Args:
        model: The robot.
        q: Its configuration [rad, m]; default is the neutral one, clamped to the limits.
        ghosts: Configurations that are shown pale [rad, m].
        drag: A link, or several, with a gizmo that the robot follows.
        block: Whether to wait until Ctrl-C is pressed; default is to do so in a script, and not in a notebook or at a
            prompt.
        **options: `world`, `urdf`, `packages`, `collision_pairs`, `nearest`, `host`, `port`, `quiet`; see `Viewer`.

    Returns:
        The viewer; it is closed already if this waited.

    Raises:
        ArgumentError: A configuration is not finite, or no server can listen at `host` and `port`.
        DtypeError: An argument is of another type.
        MissingExtraError: viser is not installed.
        ModelError: No joint moves a link that is to be dragged.
        NameNotFoundError: There is no such link.
        ShapeError: A configuration has another shape.
    """
    _check_block(block)
    links = movable_links(check_model(model), check_links((drag,) if isinstance(drag, str) else drag, "drag"))
    viewer = Viewer(model, q, **options)
    with _closed_on_error(viewer):
        if ghosts is not None:
            viewer.show_ghosts(configurations(viewer.model, ghosts, "ghosts"))
        if links:
            viewer.drag(*links)
    return _waited(viewer, block)


def play(
    model: Model,
    trajectory: Any,
    *,
    dt: float | None = None,
    contacts: Sequence[Contact] = (),
    forces: Float[Any, "t c 3"] | None = None,
    block: bool | None = None,
    **options: Any,
) -> Viewer:
    """Shows a motion in a browser: a time slider, a play button, and plots of torques and distance.

    Args:
        model: The robot.
        trajectory: A `Trajectory`, its samples or its report, a `Simulation`, or configurations (t, nq) [rad, m].
        dt: Time between the configurations [s], if they are an array.
        contacts: Points of links at which forces are shown.
        forces: The forces there at each time in world axes [N].
        block: As in `show`.
        **options: As in `show`.

    Returns:
        The viewer; it is closed already if this waited.

    Raises:
        ArgumentError: A value is not finite, or the motion has fewer than two times, or no server can listen at `host`
            and `port`.
        DtypeError: An argument is of another type.
        MissingExtraError: viser is not installed.
        NameNotFoundError: There is no such link.
        ShapeError: The motion is of another robot, or `forces` of another shape.
    """
    _check_block(block)
    viewer = Viewer(model, **options)
    with _closed_on_error(viewer):
        viewer.play(trajectory, dt=dt, contacts=contacts, forces=forces)
    return _waited(viewer, block)


@contextlib.contextmanager
def _closed_on_error(viewer: Viewer) -> Iterator[None]:
    try:
        yield
    except BaseException:
        viewer.close()
        raise


def _check_block(block: bool | None) -> None:
    if block is not None:
        check_flag(block, "block")


def _waited(viewer: Viewer, block: bool | None) -> Viewer:
    if (not _interactive()) if block is None else block:
        viewer.wait()
    return viewer


def _interactive() -> bool:
    """Whether this is a notebook or a prompt, which go on living after the call."""
    return hasattr(sys, "ps1") or ("IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None)
