"""A problem of optimal control as a pytree: what `ilqr`, `mpc` and `mppi` solve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_integer
from .._errors import ArgumentError, DtypeError
from ..algorithms.aba import aba
from ..algorithms.inverse_dynamics import gravity_forces
from ..model.configuration import drift, glide
from ..model.model import Model, check_model
from ..sweeps.plan import in_one_kernel, scan_in_one_kernel
from .costs import Cost
from .motion_costs import MotionCost, MotionFunction, motion_costs, total
from .problem import positive


class ControlProblem(eqx.Module):
    r"""Torques to be found over a horizon: a robot, costs, and limits of torque; a pytree.

    What is minimized is $\sum_{k<N} \Delta t\, l(q_k, v_k, \tau_k, t_k) + l_N(q_N, v_N, t_N)$, with torques constant
    over each time step and within their limits. The steps are those of semi-implicit Euler on the configuration
    manifold, with viscous damping taken implicitly:
    $v_{k+1} = v_k + \Delta t\, (M + \Delta t D)^{-1} (\tau - D v_k - c)$, $q_{k+1} = q_k \oplus \Delta t\, v_{k+1}$.
    As in `constraints.simulate`, the velocity of a floating or planar base is taken in axes that keep still in a step.
    There is no Coulomb friction and no contact; position limits are a cost, `JointLimits`.

    Arrays, those in the costs and the parameters of the robot included, are traced: another problem of the same
    structure does not recompile, and problems stacked leaf by leaf are solved by `jax.vmap`.

    Args:
        model: The robot.
        costs: The costs per second: `SoftGoal` of any goal (whose `at` is not used), `Manipulability`, `LinkVelocity`,
            `JointEffort`, `JointVelocity`, `JointLimits`, and functions of (model, q, v, tau, t) that return residuals
            (n,), half of whose squares are added. For data that change, bind arrays with `jax.tree_util.Partial`.
        end_costs: The costs at the end, of the same kinds; torque is zero there.
        dt: Time step [s].
        steps: Number N of time steps. Static.
        tau_lower: Smallest torques and forces [N m, N]; default is minus the effort limits of the model, and zero for
            floating joints, which have no actuators.
        tau_upper: Largest torques and forces; the same.

    Raises:
        ArgumentError: `dt` is not positive, `steps` is less than 1, there is no torque between a lower limit and the
            upper one, or a cost has a wrong value.
        DtypeError: An argument is of another type, or a function takes other arguments.
        NameNotFoundError: There is no such link.
        ShapeError: An argument has another shape.
    """

    model: Model
    costs: tuple[MotionCost, ...]
    end_costs: tuple[MotionCost, ...]
    dt: Float[Array, ""]
    tau_lower: Float[Array, "nv"]
    tau_upper: Float[Array, "nv"]
    steps: int = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        costs: Sequence[Cost | MotionCost | MotionFunction],
        end_costs: Sequence[Cost | MotionCost | MotionFunction] = (),
        *,
        dt: Float[Array, ""] | float,
        steps: int,
        tau_lower: Float[Array, "nv"] | None = None,
        tau_upper: Float[Array, "nv"] | None = None,
    ) -> None:
        check_model(model)
        dtype = model.inertias.dtype
        self.model = model
        self.costs = motion_costs(model, costs, dtype, "costs")
        self.end_costs = motion_costs(model, end_costs, dtype, "end_costs")
        if not self.costs and not self.end_costs:
            raise ArgumentError("costs or end_costs must have at least one cost")
        self.dt = positive(dt, "dt").astype(dtype)
        self.steps = check_integer(steps, "steps", 1)
        bound = _effort(model)
        lower = -bound if tau_lower is None else check_array(tau_lower, "tau_lower", (model.nv,), "model.nv")
        upper = bound if tau_upper is None else check_array(tau_upper, "tau_upper", (model.nv,), "model.nv")
        if not any(isinstance(x, Tracer) for x in (lower, upper)):
            if not (lower <= upper).all():
                raise ArgumentError(f"tau_lower must not be above tau_upper, got {lower.tolist()} and {upper.tolist()}")
            if not ((lower < jnp.inf) & (upper > -jnp.inf)).all():
                got = f"got {lower.tolist()} and {upper.tolist()}"
                raise ArgumentError(f"tau_lower and tau_upper must have finite torques between them, {got}")
        self.tau_lower, self.tau_upper = lower.astype(dtype), upper.astype(dtype)

    def step(self, q: Float[Array, "nq"], v: Float[Array, "nv"], tau: Float[Array, "nv"]) -> tuple[Array, Array]:
        """Configuration and velocity after one time step.

        On a CUDA GPU it is a kernel, in which the sine of an angle beyond 8e3 rad, in float64 1e6 rad, is not a number.

        Raises:
            DtypeError: An argument is not an array of floats.
            ShapeError: An argument has another shape.
        """
        nq, nv = self.model.nq, self.model.nv
        q, v, tau = self._array(q, "q", nq), self._array(v, "v", nv), self._array(tau, "tau", nv)
        return in_one_kernel(_stepped)(check_model(self.model), self.dt, q, v, tau)

    def times(self, t: Float[Array, ""] | float) -> Float[Array, "N+1"]:
        """The times of the horizon that begins at t [s].

        Raises:
            DtypeError: `t` is not a number.
            ShapeError: `t` is an array.
        """
        return self._array(t, "t") + self.dt * jnp.asarray(np.arange(self.steps + 1), self.dt.dtype)

    def cost(
        self,
        qs: Float[Array, "N+1 nq"],
        vs: Float[Array, "N+1 nv"],
        taus: Float[Array, "N nv"],
        t: Float[Array, ""] | float = 0.0,
    ) -> Float[Array, ""]:
        """The cost of a motion that begins at time t.

        Raises:
            DtypeError: An argument is not an array of floats, or a cost returns none.
            ShapeError: An argument, or what a cost returns, has another shape.
        """
        n, nq, nv = self.steps, self.model.nq, self.model.nv
        qs, vs = self._array(qs, "qs", n + 1, nq), self._array(vs, "vs", n + 1, nv)
        taus = self._array(taus, "taus", n, nv)
        ts = self.times(t)
        every = in_one_kernel(lambda *x: total(self.costs, self.model, *x))
        running = jax.vmap(every)(qs[:-1], vs[:-1], taus, ts[:-1])
        last = in_one_kernel(lambda *x: total(self.end_costs, self.model, *x))
        end = last(qs[-1], vs[-1], jnp.zeros_like(vs[-1]), ts[-1])
        return self.dt * jnp.sum(running) + end

    def rollout(
        self, q: Float[Array, "nq"], v: Float[Array, "nv"], taus: Float[Array, "N nv"]
    ) -> tuple[Float[Array, "N+1 nq"], Float[Array, "N+1 nv"]]:
        """The configurations and velocities that torques lead to.

        Raises:
            DtypeError: An argument is not an array of floats.
            ShapeError: An argument has another shape.
        """
        q, v = self._array(q, "q", self.model.nq), self._array(v, "v", self.model.nv)
        taus = self._array(taus, "taus", self.steps, self.model.nv)

        def advance(state: tuple[Array, Array], tau: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            after = self.step(*state, tau)
            return after, after

        _, (qs, vs) = scan_in_one_kernel(advance, (q, v), taus)
        return jnp.concatenate([q[None], qs]), jnp.concatenate([v[None], vs])

    def _array(self, x: Any, name: str, *shape: int) -> Array:
        return check_array(x, name, shape).astype(self.dt.dtype)


def _stepped(model: Model, dt: Array, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
    a = aba(implicit(model, dt), q, v, tau - model.damping * v)
    return glide(model, q, v + dt * (a + drift(model, v)), dt)


def implicit(model: Model, dt: Array) -> Model:
    """The robot whose rotors take the place of viscous damping over a time step."""
    model = check_model(model)  # a specialised one has no leaves to be replaced
    return eqx.tree_at(lambda m: m.armature, model, model.armature + dt * model.damping)


def reached(problem: ControlProblem, q: Array, v: Array, v_next: Array) -> tuple[Array, Array]:
    """The configuration after a step that ends with a velocity, and the acceleration that leads to this velocity.

    Gliding back in time gives the velocity in the axes of the start.
    """
    model, dt = problem.model, problem.dt
    _, steady = glide(model, q, v_next, -dt)
    return glide(model, q, steady, dt)[0], (steady - v) / dt - drift(model, v)


def _effort(model: Model) -> Array:
    """The limits of torque; zero for floating joints."""
    tree = model.tree
    floats = [s for s, joint in zip(tree.v_slices, tree.joints, strict=True) if joint.nv == 6]
    return model.effort_limit.at[np.array([k for s in floats for k in range(s.start, s.stop)], int)].set(0.0)


def held(problem: ControlProblem, q: Array) -> Array:
    """The torques that would hold the robot still at a configuration, at each step."""
    return jnp.broadcast_to(gravity_forces(problem.model, q), (problem.steps, problem.model.nv))


def checked_problem(
    problem: Any, q: Any, v: Any, t: Any, tau: Any
) -> tuple[ControlProblem, Array, Array, Array, Array]:
    """The arguments of a solver, in the dtype of the problem, with torques to start from."""
    if not isinstance(problem, ControlProblem):
        raise DtypeError(f"problem must be a ControlProblem, got {type(problem).__name__}")
    model, dtype = problem.model, problem.dt.dtype
    q = check_array(q, "q", (model.nq,), "model.nq").astype(dtype)
    v = check_array(v, "v", (model.nv,), "model.nv").astype(dtype)
    t = check_array(t, "t", ()).astype(dtype)
    if tau is None:
        tau = held(problem, q)
    else:
        tau = check_array(tau, "tau", (problem.steps, model.nv), "problem.steps, model.nv").astype(dtype)
    return problem, q, v, t, jnp.clip(tau, problem.tau_lower[None], problem.tau_upper[None])
