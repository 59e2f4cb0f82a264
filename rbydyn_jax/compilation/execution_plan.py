"""Which form of its sweeps a robot runs."""

from __future__ import annotations

import jax

from ..model.model import Model, check_model
from ..sweeps.plan import ExecutionPlan, plan_of


def execution_plan(model: Model, platform: str | None = None) -> ExecutionPlan:
    """How the algorithms that sweep over the tree run on a robot, and why.

    Args:
        model: The robot.
        platform: ``"cpu"``, ``"gpu"``, ...; default is JAX's default backend.

    Example:
        >>> execution_plan(robots.pendulum(), "cpu").sweep
        'unrolled'
        >>> execution_plan(robots.pendulum(), "gpu").sweep
        'scanned'
    """
    return plan_of(check_model(model).tree, jax.default_backend() if platform is None else platform)
