"""Shapes of meshes: they contain the mesh, and are not larger than they must be."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.collision.bounding import bounding_ball, bounding_capsule
from tests.helpers import assert_close, example_robot, oracle

URDF = """<robot name="one">
  <link name="base"/>
  <joint name="j" type="revolute"><parent link="base"/><child link="tool"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <link name="tool"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.3 -0.2 0.1" rpy="0.4 0.5 -0.6"/>
      <geometry><mesh filename="{}" scale="2 1 0.5"/></geometry></collision></link>
</robot>"""


def distance_outside(shapes, points):
    """How far the farthest point is outside of all shapes; negative inside."""
    return max(min(_depth(shape, x) for shape in shapes) for x in points)


def _depth(shape, x):
    if shape.kind == "box":
        return float((np.abs(shape.axes @ (x - shape.center)) - shape.half).max())
    if shape.kind == "convex_hull":
        planes = ConvexHull(shape.vertices).equations
        return float((planes[:, :3] @ x + planes[:, 3]).max())
    a, b = shape.segment
    t = np.clip((x - a) @ (b - a) / max((b - a) @ (b - a), 1e-30), 0.0, 1.0)
    return float(np.linalg.norm(x - a - t * (b - a)) - shape.radius)


@pytest.fixture
def robot_file(tmp_path):
    """A robot with the mesh of a bent tube, scaled and placed."""
    trimesh = oracle("trimesh")
    tube = trimesh.creation.annulus(r_min=0.05, r_max=0.06, height=0.4, sections=24)
    elbow = trimesh.creation.box([0.3, 0.04, 0.04]).apply_translation([0.15, 0.0, 0.2])
    mesh = trimesh.util.concatenate([tube, elbow])
    mesh.export(tmp_path / "part.stl")
    path = tmp_path / "robot.urdf"
    path.write_text(URDF.format("part.stl"))
    R = np.asarray(rb.spatial.rpy.to_matrix(jnp.array([0.4, 0.5, -0.6])))
    placed = mesh.copy()
    placed.vertices = placed.vertices * [2.0, 1.0, 0.5] @ R.T + [0.3, -0.2, 0.1]
    return path, placed


@pytest.mark.parametrize(("fit", "parts"), [("capsule", 1), ("sphere", 1), ("box", 1), ("hull", 1), ("sphere", 9)])
def test_shapes_contain_the_mesh(robot_file, fit, parts):
    path, mesh = robot_file
    shapes = collision.mesh_shapes(path, fit, parts=parts)
    assert list(shapes) == ["tool"]
    assert len(shapes["tool"]) == parts
    points = mesh.sample(300, seed=0)
    assert distance_outside(shapes["tool"], points) < 1e-7  # STL files have float32


def test_convex_parts_are_smaller_than_the_hull(tmp_path):
    trimesh = oracle("trimesh")
    oracle("coacd")
    bars = [
        trimesh.creation.box([0.4, 0.05, 0.05]),
        trimesh.creation.box([0.05, 0.05, 0.4]).apply_translation([0.2, 0, 0.2]),
    ]
    corner = trimesh.util.concatenate(bars)
    corner.export(tmp_path / "part.stl")
    path = tmp_path / "robot.urdf"
    path.write_text(URDF.format("part.stl").replace("2 1 0.5", "1 1 1").replace("0.4 0.5 -0.6", "0 0 0"))

    def volume(shapes):
        return sum(float(8 * np.prod(x.half)) for x in shapes["tool"])

    told = []
    parts = collision.mesh_shapes(path, "box", parts=2, progress=lambda *done: told.append(done))
    assert told == [(1, 1)]
    assert len(parts["tool"]) == 2
    assert volume(parts) < 0.5 * volume(collision.mesh_shapes(path, "box"))
    assert distance_outside(parts["tool"], corner.sample(200, seed=0) + [0.3, -0.2, 0.1]) < 0.01  # CoACD remeshes


@pytest.mark.ci
def test_a_capsule_is_found_again_and_a_ball_is_the_smallest():
    rng = np.random.default_rng(0)
    a, b, radius = np.array([0.1, 0.5, -0.2]), np.array([-0.3, 0.2, 0.9]), 0.15
    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    t = rng.uniform(size=(4000, 1))
    points = a + np.where(t < 0.5, 0.0, 1.0) * (b - a) + radius * directions
    ends, found = bounding_capsule(points)
    assert 0.99 * radius < found < 1.005 * radius
    assert min(np.linalg.norm(ends - [a, b], axis=1).max(), np.linalg.norm(ends - [b, a], axis=1).max()) < 0.01
    corners = np.array([[1.0, 0, 0], [-0.5, 3**0.5 / 2, 0], [-0.5, -(3**0.5) / 2, 0]])  # on a circle of radius 1
    center, radius = bounding_ball(corners)
    assert 1.0 <= radius < 1.001
    assert np.linalg.norm(center) < 2e-3


def test_a_robot_gets_shapes_in_the_axes_of_its_links():
    arm = robots.two_link_arm()
    ball, rod = collision.sphere(jnp.array([0.1, 0.0, 0.0]), 0.05), collision.capsule(jnp.zeros(3), jnp.ones(3), 0.1)
    both = collision.with_shapes(arm, {"tool": [ball], 0: [rod]})
    world = collision.World(collision.sphere(jnp.array([0.0, 3.0, 0.0]), 0.5))
    q = jnp.array([0.3, -0.7])
    T = rb.fk(arm, q)[arm.link_index("tool")]
    center = T[:3, :3] @ jnp.array([0.1, 0.0, 0.0]) + T[:3, 3]
    want = jnp.linalg.norm(center - jnp.array([0.0, 3.0, 0.0])) - 0.55
    alone = collision.with_shapes(both, {"tool": [rod]}, keep=False)
    assert jnp.isclose(collision.world_distances(both, q, world), want, atol=1e-6).any()
    on_tool = sum(link == arm.link_index("tool") for link in arm.tree.shape_links)
    assert len(both.tree.shape_kinds) == len(arm.tree.shape_kinds) + 2
    assert len(alone.tree.shape_kinds) == len(both.tree.shape_kinds) - on_tool
    assert both.link_names == arm.link_names
    assert both.joint_names == arm.joint_names
    bare = collision.with_shapes(both, {"tool": [], 0: []}, keep=False)
    kept = [link for link in both.tree.shape_links if link not in (0, arm.link_index("tool"))]
    assert list(bare.tree.shape_links) == kept and len(kept) < len(both.tree.shape_links)


@pytest.mark.slow
def test_a_panda_with_meshes_can_be_checked():
    path = example_robot("panda_description/urdf/panda.urdf")
    shapes = collision.mesh_shapes(path, "sphere", packages=[path.parents[3]])
    model = collision.with_shapes(rb.load_urdf(path), shapes)
    assert len(shapes) >= 9
    assert len(model.tree.shape_kinds) == len(rb.load_urdf(path).tree.shape_kinds) + len(shapes)
    assert bool(jnp.isfinite(collision.min_distance(model, rb.neutral(model))))


YAML = """robot_cfg:
  kinematics:
    collision_spheres:
      tool:
        - {center: [0.0, 0.1, 0.2], radius: 0.03}
        - center: [0, 0, 0]
          radius: -10.0
      base: []
"""


def test_lists_of_spheres(tmp_path):
    path = tmp_path / "spheres.yml"
    path.write_text(YAML)
    found = collision.read_spheres(path)
    assert {link: len(balls) for link, balls in found.items()} == {"tool": 1, "base": 0}
    np.testing.assert_allclose(found["tool"][0].segment, [[0.0, 0.1, 0.2]] * 2)
    assert float(found["tool"][0].radius) == 0.03
    path.write_text("tool: [{center: [0, 0, 0], radius: 0.1}]")
    assert list(collision.read_spheres(path)) == ["tool"]
    kinematics = (
        "collision_spheres: {tool: [{center: [0, 0, 0], radius: 0.1}], hand: [{center: [0, 0, 0], radius: 0.2}]}"
    )
    for text, radii in (("0.01", [0.11, 0.21]), ("{hand: -0.05}", [0.1, 0.15])):
        path.write_text(f"{kinematics}\ncollision_sphere_buffer: {text}")
        np.testing.assert_allclose([float(own[0].radius) for own in collision.read_spheres(path).values()], radii)
    for text, problem in (
        ("tool: [{center: [0, 0, 0], radius: true}]", r"tool\[0\]: expected center"),
        ("tool: []\ntool: [{center: [0, 0, 0], radius: 0.1}]", "'tool' is listed twice"),
        (f"{kinematics}\ncollision_sphere_buffer: much", "expected collision_sphere_buffer: a number"),
        (
            f"{kinematics}\ncollision_sphere_buffer: -0.11",
            r"tool\[0\]: the radius 0.1 and collision_sphere_buffer -0.11",
        ),
        ("a: [", "no YAML"),
        ("a: 2020-13-45", "no YAML: month"),
        ("just text", "expected collision_spheres"),
        ("tool: {center: 1}", "expected collision_spheres"),
        ("tool: [{center: [0, 0], radius: 1}]", r"tool\[0\]: expected three"),
        ("tool: [{center: [0, 0, .nan], radius: 1}]", r"tool\[0\]: expected three"),
        ("tool: [{radius: 1}]", r"tool\[0\]: expected center"),
    ):
        path.write_text(text)
        with pytest.raises(rb.ParseError, match=problem):
            collision.read_spheres(path)


@pytest.mark.parametrize("outline", [[[0, 0], [0.3, 0], [0.3, 0.1], [0, 0.1]], [[0, 0], [0.2, 0], [0, 0.3]]])
def test_flat_meshes_have_flat_boxes_and_no_hull(tmp_path, outline):
    trimesh = oracle("trimesh")
    corners = np.column_stack([outline, np.full(len(outline), 0.2)]) @ np.linalg.qr(np.arange(9).reshape(3, 3) ** 2)[0]
    faces = [[0, 1, 2], [0, 2, 3]][: len(outline) - 2]
    trimesh.Trimesh(corners, faces, process=False).export(tmp_path / "plate.stl")
    path = tmp_path / "robot.urdf"
    path.write_text(URDF.format("plate.stl").replace('scale="2 1 0.5"', ""))
    plate: Any = collision.mesh_shapes(path, "box")["tool"][0]
    R = np.asarray(rb.spatial.rpy.to_matrix(jnp.array([0.4, 0.5, -0.6])))
    assert distance_outside([plate], corners @ R.T + [0.3, -0.2, 0.1]) < 1e-7
    assert_close(4 * np.prod(np.sort(plate.half)[1:]), np.prod(np.ptp(outline, axis=0)), 1e-6)  # the least area
    assert plate.half.min() < 1e-7 and np.isclose(np.linalg.det(plate.axes), 1.0)
    for fit in ("capsule", "sphere"):
        assert distance_outside(collision.mesh_shapes(path, fit)["tool"], corners @ R.T + [0.3, -0.2, 0.1]) < 1e-7
    with pytest.raises(rb.ParseError, match=r"link 'tool': the mesh 'plate.stl' is flat and has no hull"):
        collision.mesh_shapes(path, "hull")


def test_what_cannot_be_done_is_said(tmp_path, robot_file):
    arm, ball = robots.two_link_arm(), collision.sphere(jnp.zeros(3), 0.1)
    with pytest.raises(rb.DtypeError, match=r"shapes\['tool'\] must be a sequence"):
        collision.with_shapes(arm, {"tool": ball})
    with pytest.raises(rb.DtypeError, match=r"shapes\['tool'\]\[0\] must be a sphere"):
        collision.with_shapes(arm, {"tool": [collision.half_space(jnp.zeros(3), jnp.ones(3))]})
    balls = jax.vmap(lambda p: collision.sphere(p, 0.1))(jnp.zeros((3, 3)))
    boxes = jax.vmap(lambda p: collision.box(jnp.eye(4), p))(jnp.ones((2, 3)))
    for batch, error in ((balls, rb.ShapeError), (boxes, (rb.ShapeError, rb.ModelError))):
        with pytest.raises(error):
            collision.with_shapes(arm, {"tool": [batch]})
    with pytest.raises(rb.NameNotFoundError, match="tol"):
        collision.with_shapes(arm, {"tol": [ball]})
    with pytest.raises(rb.ArgumentError, match="fit"):
        collision.mesh_shapes(robot_file[0], "cone")  # pyright: ignore[reportArgumentType]
    with pytest.raises(rb.DtypeError, match="packages must be a tuple of folders, got str"):
        collision.mesh_shapes(robot_file[0], packages="folder")
    robot_file[0].write_text(URDF.format("package://nowhere/part.stl"))
    with pytest.raises(rb.ParseError, match=r"link 'tool': the mesh .* is not found; give the folder"):
        collision.mesh_shapes(robot_file[0])
    (tmp_path / "part.stl").write_text("no mesh at all")
    robot_file[0].write_text(URDF.format("part.stl"))
    with pytest.raises(rb.ParseError, match=r"link 'tool': .*part.stl"):
        collision.mesh_shapes(robot_file[0])
