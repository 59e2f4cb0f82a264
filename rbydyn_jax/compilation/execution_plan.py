"""Which form of its sweeps a robot runs."""

from __future__ import annotations

import jax

from .._check import check_choice
from ..model.model import Model, check_model
from ..sweeps.plan import ExecutionPlan, plan_of

_PLATFORMS = ("cpu", "gpu", "cuda", "rocm", "tpu")


def execution_plan(model: Model, platform: str | None = None) -> ExecutionPlan:
    """How the algorithms that sweep over the tree run on a robot, and why.

    Args:
        model: The robot.
        platform: ``"cpu"``, ``"gpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``, or that of a device of this process;
            ``"gpu"`` is one of CUDA. Default is JAX's default backend.

    Raises:
        ArgumentError: No such platform.

    Example:
        >>> execution_plan(robots.pendulum(), "cpu").sweep
        'unrolled'
        >>> execution_plan(robots.pendulum(), "tpu").sweep
        'scanned'
    """
    known = dict.fromkeys((*_PLATFORMS, *(device.platform for device in jax.devices())))
    if platform is not None:
        check_choice(platform, "platform", known)
    return plan_of(check_model(model).tree, jax.default_backend() if platform is None else platform)
