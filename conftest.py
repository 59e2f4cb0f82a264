"""Settings of every test: precision, warnings, names in doctests, and no silent lack of a reference engine in CI."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax
import rbydyn_jax.robots  # `robots` in the examples
from tests.helpers import RBY1_DIRECTORY, X64, missing_oracles

jax.config.update("jax_enable_x64", X64)
jax.config.update("jax_numpy_rank_promotion", "raise")
if devices := os.environ.get("RBYDYN_TEST_DEVICES"):
    jax.config.update("jax_num_cpu_devices", int(devices))
# Compiling is most of a test's time, and four times as fast without LLVM's optimizations and with XLA's older emitters.
# XLA's own passes stay. The tests of the algorithms run again in CI as users compile them.
if os.environ.get("RBYDYN_TEST_OPTIMIZED") != "1":
    jax.config.update("jax_disable_most_optimizations", True)
    if jax.__version_info__ < (0, 11):  # a newer XLA does not know the flag, and would end the process
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false"
if cache := os.environ.get("RBYDYN_TEST_CACHE"):
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def pytest_configure(config: pytest.Config) -> None:
    """In CI a test that is skipped for want of an oracle would look like one that passed."""
    if not os.environ.get("CI"):
        return
    missing = missing_oracles()
    if not RBY1_DIRECTORY.is_dir():
        missing.append(f"the vendor's RB-Y1 files in {RBY1_DIRECTORY}")
    if missing:
        raise pytest.UsageError("in CI every oracle must be there; missing: " + ", ".join(missing))


# Examples in docstrings that take more than about 2 s to compile.
_LONG_EXAMPLES = """
    algorithms.coriolis.coriolis_matrix algorithms.crba.crba algorithms.derivatives.aba_derivatives
    algorithms.derivatives.rnea_derivatives collision.capsule_capsule.capsule_distance
    collision.contact_points.contact_points collision.field.sdf collision.filtering.sampled_pairs
    collision.robot.capsule_distances collision.robot.min_distance collision.robot.nearest
    collision.robot.signed_distances collision.robot.smooth_min_distance compat.pymanoid.contact.ContactSet
    compat.pymanoid.humanoid.Humanoid compat.pyrobot.Kinematics compilation.precompile.precompile
    constraints.closing.close_loops constraints.dynamics.forward_dynamics constraints.ode.ode_term
    constraints.patches.distribute_wrench constraints.patches.static_equilibrium_polygon
    constraints.patches.zmp_support_area constraints.simulate.simulate distributed.map_batch envs.environment.reset
    envs.environment.step estimation.payload.observe_payload identification.calibration.calibrate
    identification.fitting.fit identification.identifiability.base_parameters planning.differential.differential_ik
    planning.ik.solve_ik planning.ilqr.ilqr planning.jerk_limited.jerk_limited_profile planning.mpc.mpc
    planning.mppi.mppi planning.optimize.optimize_trajectory planning.solve.solve_trajectory
    planning.time_parametrize.time_parametrize precision.precision_report
    rby1.commands.motion.to_commands rby1.impedance.rollout.rollout
    rby1.mobility.rolling_motions spatial.safe.safe_norm whole_body.inverse_dynamics.inverse_dynamics
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The pages of docs take minutes, and some examples seconds: they are left to CI.

    With RBYDYN_TEST_PART=3/10 every tenth slow test function runs, from that with the index 3, in all its cases.
    """
    long = {f"rbydyn_jax.{name}" for name in _LONG_EXAMPLES.split()}
    for item in items:
        if item.path.parent.name == "docs" or item.name in long:
            item.add_marker(pytest.mark.ci)
    if share := os.environ.get("RBYDYN_TEST_PART"):
        part, parts = map(int, share.split("/"))
        slow = {item: item.nodeid.partition("[")[0] for item in items if item.get_closest_marker("slow")}
        chosen = set(list(dict.fromkeys(slow.values()))[part::parts])
        config.hook.pytest_deselected(items=[item for item in slow if slow[item] not in chosen])
        items[:] = [item for item in items if item not in slow or slow[item] in chosen]


def pytest_collection_finish() -> None:
    """Tracing makes many objects: each collection would visit all modules and tests again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def dtype() -> jnp.dtype:
    """The floating-point type of this run: float64, or float32 with RBYDYN_TEST_X64=0."""
    return jnp.dtype(jnp.float64 if X64 else jnp.float32)


@pytest.fixture(scope="module", autouse=True)
def _programs_unloaded() -> Iterator[None]:
    """Each kernel of a compiled program takes three memory mappings; Linux ends a process at 65,530 of them."""
    yield
    mappings = Path("/proc/self/maps")
    if mappings.exists() and mappings.read_text().count("\n") > 20_000:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict) -> None:
    public = {name: getattr(rbydyn_jax, name) for name in dir(rbydyn_jax)}
    doctest_namespace.update(public, jax=jax, jnp=jnp, np=np, rbydyn_jax=rbydyn_jax)
