"""The nodes of a robot and what is around it in the scene of a viser server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..collision import World
from ..model.model import Model, single_shapes
from ..shapes.half_space import HalfSpace
from ..spatial.quaternions import from_matrix
from .meshes import surface_mesh, visual_mesh
from .skeleton import bones
from .state import Gaps, Poses, RobotState
from .visuals import read_visuals

SHAPE, GHOST, OBSTACLE, COM, FORCE, BONE = (
    (113, 148, 190), (236, 164, 86), (150, 140, 130), (240, 200, 30), (214, 40, 120), (90, 100, 115),
)  # fmt: skip
NEAR, FAR = 0.0, 0.15  # distances [m] that are shown in red and in green
_PLANE = 3.0  # side of the square that stands for a half-space [m]


class RobotScene:
    """The nodes of one robot: a frame for each link, below it what moves with it, and what depends on all.

    Args:
        scene: The scene of a viser server.
        model: The robot.
        urdf: The URDF, xacro or MJCF file whose visuals are shown.
        packages: Folders in which ``package://`` is looked for.

    Attributes:
        frames: The frame of each link.
        shapes: The meshes of the collision shapes.
        visuals: The meshes of the visuals.
        bones: The lines from link to link.
        missing: Names of the mesh files that were not found or could not be read.
    """

    def __init__(
        self, scene: Any, model: Model, urdf: str | Path | None, packages: Sequence[str | Path], size: float
    ) -> None:
        self._scene, self._model = scene, model
        axes = {"axes_length": 0.08 * size, "axes_radius": 0.004 * size, "show_axes": False}
        self.frames = [scene.add_frame(node(name), **axes) for name in model.link_names]
        self.missing: list[str] = []
        self.visuals = [] if urdf is None else self._add_visuals(urdf, packages)
        self.shapes = self._add_shapes(0.35 if self.visuals else 1.0)
        self.com = scene.add_icosphere("/com", radius=0.02 * size, color=COM, visible=False)
        self._line = 0.006 * size
        self.gaps = self._lines("/pairs", self._line)
        self.bones = self._lines("/bones", 2.0 * self._line)
        self._ends = bones(model)

    def _lines(self, name: str, thickness: float) -> Any:
        return self._scene.add_line_segments(
            name, np.zeros((0, 2, 3)), np.zeros((0, 2, 3), np.uint8), thickness=thickness
        )

    def _add_shapes(self, opacity: float) -> list[Any]:
        tree, handles = self._model.tree, []
        for k, (link, shape) in enumerate(zip(tree.shape_links, single_shapes(self._model), strict=True)):
            mesh = surface_mesh(shape)
            handles.append(
                self._scene.add_mesh_simple(
                    f"{node(tree.link_names[link])}/shape_{k}",
                    mesh.vertices,
                    mesh.faces,
                    color=SHAPE,
                    opacity=None if opacity == 1.0 else opacity,
                )
            )
        return handles

    def _add_visuals(self, urdf: str | Path, packages: Sequence[str | Path]) -> list[Any]:
        handles, known = [], set(self._model.link_names)
        for k, visual in enumerate(read_visuals(urdf)):
            if visual.link not in known:
                continue
            mesh = visual_mesh(visual, urdf, packages)
            if mesh is None:
                self.missing.append(getattr(visual.geometry, "filename", visual.geometry.tag))
            else:
                handles.append(self._scene.add_mesh_trimesh(f"{node(visual.link)}/visual_{k}", mesh))
        return handles

    def move(self, state: RobotState) -> None:
        """Shows a configuration, by its state in numpy."""
        for frame, position, wxyz in zip(self.frames, state.poses.position, state.poses.wxyz, strict=True):
            frame.position, frame.wxyz = position, wxyz
        if np.isfinite(state.com).all():
            self.com.position = state.com
        self.bones.points = state.poses.position[self._ends]
        self.bones.colors = np.broadcast_to(np.array(BONE, np.uint8), (len(self._ends), 2, 3))
        if state.gaps is not None:
            self.gaps.points, self.gaps.colors = state.gaps.ends, gap_colors(state.gaps)


def node(link: str) -> str:
    """The name of a link's node; a slash would make it the child of another."""
    return f"/robot/{link.replace('/', ':')}"


def gap_colors(gaps: Gaps) -> np.ndarray:
    """Colours (k, 2, 3) from red, at `NEAR` and below, through yellow to green, at `FAR` and beyond."""
    x = np.clip((gaps.distance - NEAR) / (FAR - NEAR), 0.0, 1.0)
    rgb = np.stack([np.minimum(2.0 - 2.0 * x, 1.0), np.minimum(2.0 * x, 1.0), np.zeros_like(x)], axis=-1)
    return np.repeat((220.0 * rgb).astype(np.uint8)[:, None], 2, axis=1)


def add_world(scene: Any, world: World) -> None:
    """Adds the obstacles of a world, and the points of its cloud."""
    for kind, places in world.places.items():
        rows = jax.tree.map(lambda x: np.asarray(x, float), world.shapes[kind])
        for row, k in enumerate(places):
            obstacle = jax.tree.map(lambda x, row=row: x[row], rows)
            if isinstance(obstacle, HalfSpace):
                _add_plane(scene, f"/world/{k}", obstacle)
            else:
                mesh = surface_mesh(obstacle)
                scene.add_mesh_simple(f"/world/{k}", mesh.vertices, mesh.faces, color=OBSTACLE, opacity=0.7)
    if world.points is not None:
        size = max(2.0 * float(world.point_radius), 0.004)
        scene.add_point_cloud("/world/points", np.asarray(world.points), OBSTACLE, point_size=size, precision="float32")


def _add_plane(scene: Any, name: str, plane: HalfSpace) -> None:
    normal = np.asarray(plane.normal)
    x = np.cross(np.eye(3)[np.argmin(np.abs(normal))], normal)
    R = np.stack([x / np.linalg.norm(x), np.cross(normal, x / np.linalg.norm(x)), normal], axis=1)
    scene.add_grid(
        name,
        width=_PLANE,
        height=_PLANE,
        position=plane.point,
        wxyz=np.asarray(from_matrix(jnp.asarray(R))),
        plane_color=OBSTACLE,
        plane_opacity=0.4,
    )


def add_ghosts(scene: Any, model: Model, poses: Poses, opacity: float) -> None:
    """Adds the robot in each of a batch of configurations, by their poses (n, nl); the previous ones are removed."""
    scene.remove_by_name("/ghosts")
    tree = model.tree
    for k, (link, shape) in enumerate(zip(tree.shape_links, single_shapes(model), strict=True)):
        mesh = surface_mesh(shape)
        scene.add_batched_meshes_simple(
            f"/ghosts/shape_{k}",
            mesh.vertices,
            mesh.faces,
            batched_wxyzs=poses.wxyz[:, link],
            batched_positions=poses.position[:, link],
            batched_colors=GHOST,
            opacity=opacity,
        )
    if not tree.shape_links:
        ends = poses.position[:, bones(model)].reshape(-1, 2, 3)
        scene.add_line_segments("/ghosts/bones", ends, GHOST, thickness=0.006)
