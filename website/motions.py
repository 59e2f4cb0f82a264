"""The pictures in docs/planning.md and docs/simulation.md: `python -m website.motions` writes them to docs/images/.

A planned path of an arm between obstacles, with its distances and shares of limits; how far boxes slide down a slope.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.constraints import simulate
from rbydyn_jax.planning import PoseGoal, TrajectoryProblem, sample_trajectory, solve_trajectory
from rbydyn_jax.shapes import BoxGeometry
from rbydyn_jax.viz.robot import robot_surface

from .drawings import IMAGES

ROBOT, OBSTACLE, WARM = "#7194be", "#b9a394", "#c62828"
TILT, FRICTIONS, SECONDS, STEP = 0.35, (0.5, 0.3, 0.2), 1.0, 0.002


def planned() -> None:
    """The path of an arm between two spheres and a box."""
    import matplotlib.pyplot as plt
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    arm = robots.panda_like()
    q_start, q_end = jnp.array([0.9, 0.5, 0.0, -1.6, 0.0, 2.0, 0.5]), jnp.array([-0.8, 0.6, 0.0, -1.5, 0.0, 2.0, 0.5])
    place = jnp.eye(4).at[:3, 3].set(jnp.array([0.5, 0.0, 0.1]))
    world = collision.World(
        collision.box(place, jnp.array([0.3, 0.12, 0.5])),
        collision.sphere(jnp.array([0.5, -0.05, 0.75]), 0.08),
        collision.sphere(jnp.array([0.4, 0.4, 0.75]), 0.07),
    )
    goal = PoseGoal("tool", rb.link_pose(arm, q_end, "tool"))
    problem = TrajectoryProblem(arm, q_start, [goal], duration=2.0, clearance=0.03, world=world)
    result = jax.jit(solve_trajectory)(problem)
    if not result.solved:
        raise RuntimeError(f"the path was not found: {result.summary()}")
    at = sample_trajectory(result.trajectory, 201)
    nearest = jax.jit(jax.vmap(lambda q: collision.world_contacts(arm, q, world).distance.min()))(at.q)
    tool = np.asarray(jax.vmap(lambda q: rb.link_pose(arm, q, "tool"))(at.q))[:, :3, 3]

    figure = plt.figure(figsize=(9.5, 4.4), dpi=120)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.0))
    axes: Any = figure.add_subplot(grid[:, 0], projection="3d", computed_zorder=False)
    for kind in world.shapes:
        group = world.shapes[kind]
        for k in range(len(jax.tree.leaves(group)[0])):
            quads = jax.tree.map(lambda x, k=k: np.asarray(x[k], float), group).surface(np.eye(4))
            axes.add_collection3d(Poly3DCollection(list(quads), facecolors=OBSTACLE, shade=True, zorder=1))
    for k, alpha in ((0, 0.35), (60, 0.35), (100, 0.5), (140, 0.35), (200, 0.95)):
        quads = robot_surface(arm, np.asarray(at.q[k]), arm.link_names)
        axes.add_collection3d(Poly3DCollection(list(quads), facecolors=ROBOT, shade=True, alpha=alpha, zorder=2))
    axes.plot(*tool.T, color=WARM, linewidth=2.0, zorder=3)
    axes.set(xlim=(-0.35, 0.75), ylim=(-0.55, 0.55), zlim=(0.0, 1.0))
    axes.set_box_aspect((1, 1, 0.9), zoom=1.5)
    axes.view_init(elev=40, azim=15)
    axes.set_axis_off()
    times = np.asarray(at.times)
    top, bottom = (figure.add_subplot(grid[k, 1]) for k in (0, 1))
    top.plot(times, 1e3 * np.asarray(nearest), color=ROBOT)
    top.axhline(30.0, color=WARM, linestyle="--", linewidth=1.0)
    top.set(ylabel="nearest obstacle [mm]", ylim=(0.0, None))
    tau = jax.jit(jax.vmap(rb.rnea, (None, 0, 0, 0)))(arm, at.q, at.v, at.a)
    shares = {"velocity": (at.v, arm.velocity_limit), "torque": (tau, arm.effort_limit)}
    for (name, (values, limit)), color in zip(shares.items(), (ROBOT, "#c9a000"), strict=True):
        bottom.plot(times, np.abs(np.asarray(values) / np.asarray(limit)).max(axis=1), label=name, color=color)
    bottom.axhline(1.0, color=WARM, linestyle="--", linewidth=1.0)
    bottom.set(xlabel="time [s]", ylabel="largest share of a limit", ylim=(0.0, 1.1))
    bottom.legend(loc="upper right", fontsize=8)
    figure.tight_layout()
    figure.savefig(IMAGES / "planned.png")


def slid() -> None:
    """How far boxes slide down a slope, by friction."""
    import matplotlib.pyplot as plt

    box = rb.RobotBuilder().link("w").link("box", 1.0, (0, 0, 0), 0.005).floating("free", "w", "box")
    box = rb.build_model(box.collision("box", BoxGeometry(np.array([0.2, 0.2, 0.1]))))
    up = np.array([np.sin(TILT), 0.0, np.cos(TILT)])
    world = collision.World(collision.half_space(jnp.zeros(3), jnp.asarray(up)))
    start = jnp.asarray(np.concatenate([[np.cos(TILT / 2), 0.0, np.sin(TILT / 2), 0.0], 0.05 * up]))

    @jax.jit
    def motion(friction: jax.Array) -> Any:
        no = jnp.zeros(6)
        return simulate(box, start, no, SECONDS, STEP, method="implicit", world=world, friction=friction)

    figure, (place, speed) = plt.subplots(1, 2, figsize=(9.0, 3.2), dpi=120)
    for mu, color in zip(FRICTIONS, ("#4a7a3a", "#c9a000", WARM), strict=True):
        found = motion(jnp.asarray(mu))
        times = np.linspace(0.0, SECONDS, len(found.qs))
        a = max(9.81 * (np.sin(TILT) - mu * np.cos(TILT)), 0.0)
        moved = np.linalg.norm(np.asarray(found.qs[:, 4:] - start[4:]), axis=1)
        place.plot(times, moved, color=color, label=f"friction {mu}")
        place.plot(times[::40], 0.5 * a * times[::40] ** 2, "o", color=color, markersize=4)
        speed.plot(times, np.linalg.norm(np.asarray(found.vs[:, 3:]), axis=1), color=color)
        speed.plot(times[::40], a * times[::40], "o", color=color, markersize=4)
    place.set(xlabel="time [s]", ylabel="slid [m]")
    place.legend()
    speed.set(xlabel="time [s]", ylabel="speed [m/s]")
    figure.tight_layout()
    figure.savefig(IMAGES / "slid.png")


if __name__ == "__main__":
    matplotlib.use("Agg")
    planned()
    slid()
