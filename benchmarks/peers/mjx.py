"""MJX (MuJoCo's algorithms in JAX) through plain `vmap`, on the robot that MuJoCo reads."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator

import jax
import jax.numpy as jnp
from mujoco import mjx
from mujoco.mjx._src import smooth, support

from rbydyn_jax import to_urdf

from ..case import Case, Entry
from . import _jax, mujoco, placement


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    yield from _jax.entries(library(case), case, operations, batches)


def library(case: Case) -> _jax.Library:
    """Its functions of one configuration."""
    model = case.model
    robot = mujoco.Robot(to_urdf(model, collisions=False), model.joint_names, case.inputs)
    m = mjx.put_model(robot.model)
    empty = mjx.make_data(m)
    order = [model.joint_names.index(robot.model.joint(k).name) for k in range(model.nv)]  # theirs -> ours
    bodies = robot.model.jnt_bodyid  # in the order of the joints
    body, T = placement(model, case.link)
    carrier, offset = int(bodies[order.index(body)]), jnp.asarray(T[:3, 3], case.dtype)

    def kinematics(q: jax.Array) -> mjx.Data:
        return smooth.kinematics(m, empty.replace(qpos=q))

    def motion(q: jax.Array, v: jax.Array) -> mjx.Data:
        return smooth.com_vel(m, smooth.com_pos(m, smooth.kinematics(m, empty.replace(qpos=q, qvel=v))))

    def position(d: mjx.Data) -> jax.Array:
        return d.xpos[carrier] + d.xmat[carrier] @ offset

    def fk(q):
        d = kinematics(q)
        top = jnp.concatenate([d.xmat[bodies], d.xpos[bodies, :, None]], axis=2)
        return jnp.concatenate([top, jnp.broadcast_to(jnp.array([0, 0, 0, 1], q.dtype), (model.nv, 1, 4))], axis=1)

    def jacobian(q):
        d = smooth.com_pos(m, kinematics(q))
        linear, angular = support.jac(m, d, position(d), carrier)
        return jnp.concatenate([angular.T, linear.T])

    def with_matrix(d: mjx.Data) -> mjx.Data:
        return smooth.factor_m(m, smooth.crb(m, d))

    def aba(q, v, tau):
        d = with_matrix(motion(q, v))
        return smooth.solve_m(m, d, tau - smooth.rne(m, d).qfrc_bias)

    def mass_matrix_inverse(q):
        d = with_matrix(smooth.com_pos(m, kinematics(q)))
        return jax.vmap(lambda e: smooth.solve_m(m, d, e))(jnp.eye(model.nv, dtype=q.dtype))

    functions = {
        "fk": fk,
        "position": lambda q: position(kinematics(q)),
        "jacobian": jacobian,
        "rnea": lambda q, v, a: smooth.rne(m, motion(q, v).replace(qacc=a), flg_acc=True).qfrc_bias,
        "crba": lambda q: support.full_m(m, smooth.crb(m, smooth.com_pos(m, kinematics(q)))),
        "aba": aba,
        "mass_matrix_inverse": mass_matrix_inverse,
    }
    return _jax.Library("mjx", functions, order)


def version() -> str:
    return importlib.metadata.version("mujoco-mjx")
