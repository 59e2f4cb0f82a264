"""Links that are dragged by gizmos: inverse kinematics from the configuration that is shown."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from .._errors import ModelError
from ..model.model import Model
from ..planning import IkResult, solve_ik
from ..spatial.quaternions import to_matrix
from .state import Poses

if TYPE_CHECKING:
    from .viewer import Viewer

_NONE = "none"


class Drag:
    """Gizmos on links, and the solver that makes all of these links follow.

    Args:
        viewer: The viewer.
        gui: The GUI of its server.
        scene: The scene of its server.
        size: Size of the gizmos [m].
    """

    def __init__(self, viewer: Viewer, gui: Any, scene: Any, size: float) -> None:
        self._viewer, self._scene, self._size = viewer, scene, size
        self._solving = threading.Lock()
        self._solved = np.zeros((0, 7))
        self._clearance: float | None = None
        self._compiling: threading.Thread | None = None
        self.gizmos: dict[str, Any] = {}
        self._choice = gui.add_dropdown("link", (_NONE, *_movable(viewer.model)), initial_value=_NONE)
        self._choice.on_update(lambda event: None if event.client is None else self._chosen())
        self.text = gui.add_markdown("", visible=False)

    def _chosen(self) -> None:
        self.start(() if self._choice.value == _NONE else (self._choice.value,), self._clearance)

    def start(self, links: tuple[str, ...], clearance: float | None) -> None:
        """Puts gizmos on links instead of those that are there, and compiles the solver beside."""
        for gizmo in self.gizmos.values():
            gizmo.remove()
        self._clearance = clearance
        self.gizmos = {
            link: self._scene.add_transform_controls(f"/targets/{k}", scale=self._size) for k, link in enumerate(links)
        }
        self._choice.value = links[0] if len(links) == 1 else _NONE
        self.follow(self._viewer.poses)
        self.text.visible = bool(links)
        if not links:
            return
        for gizmo in self.gizmos.values():
            gizmo.on_update(lambda _: self.solve())
        self.text.content = "compiling inverse kinematics ..."
        self._compiling = threading.Thread(target=self._compile, name="rbydyn_jax inverse kinematics")
        self._compiling.start()

    @property
    def compiling(self) -> bool:
        """Whether the solver is being compiled."""
        return self._compiling is not None and self._compiling.is_alive()

    def close(self) -> None:
        """Waits for the compilation, which cannot be interrupted."""
        if self._compiling is not None:
            self._compiling.join()

    def follow(self, poses: Poses) -> None:
        """Moves the gizmos to their links."""
        for link, gizmo in self.gizmos.items():
            k = self._viewer.model.link_index(link)
            gizmo.position, gizmo.wxyz = poses.position[k], poses.wxyz[k]
        self._solved = self._targets()

    def _targets(self) -> np.ndarray:
        return np.array([[*gizmo.position, *gizmo.wxyz] for gizmo in self.gizmos.values()]).reshape(-1, 7)

    def _compile(self) -> None:
        with self._solving:
            self._result(self._targets())
        self.text.content = "drag the gizmo"

    def solve(self) -> None:
        """Brings the links to their gizmos, or as near as it gets; of several targets that came the last counts."""
        with self._solving:
            targets = self._targets()
            if np.array_equal(targets, self._solved):
                return
            self._solved = targets
            result = self._result(targets)
            self._viewer.move(np.asarray(result.q), dragged=True)
        position, angle = 1e3 * float(result.position_error), np.rad2deg(float(result.orientation_error))
        self.text.content = "reached" if bool(result.solved) else f"not reached: {position:.1f} mm, {angle:.1f} deg"

    def _result(self, targets: np.ndarray) -> IkResult:
        model, world = self._viewer.model, self._viewer.world
        with self._viewer.precision():
            dtype = model.inertias.dtype
            T = jnp.broadcast_to(jnp.eye(4, dtype=dtype), (len(targets), 4, 4))
            R = jnp.stack([to_matrix(jnp.asarray(x[3:], dtype)) for x in targets])
            T = T.at[:, :3, :3].set(R).at[:, :3, 3].set(jnp.asarray(targets[:, :3], dtype))
            return solve_ik(
                model,
                tuple(self.gizmos),
                T,
                q0=jnp.asarray(self._viewer.q, dtype),
                attempts=1,  # another start would be a jump
                clearance=self._clearance,
                world=None if self._clearance is None else world,
                collision_pairs=None if self._clearance is None else self._viewer.pairs,
            )


def _movable(model: Model) -> tuple[str, ...]:
    tree = model.tree
    return tuple(name for name, body in zip(tree.link_names, tree.link_bodies, strict=True) if body >= 0)


def movable_links(model: Model, links: Sequence[str | int]) -> tuple[str, ...]:
    """The names of links, which joints move, each once.

    Raises:
        ModelError: A link stands still.
        NameNotFoundError: There is no such link.
    """
    names = tuple(dict.fromkeys(model.link_names[model.link_index(link)] for link in links))
    if still := [name for name in names if name not in _movable(model)]:
        raise ModelError(f"no joint moves link {still[0]!r}: it cannot be dragged")
    return names
