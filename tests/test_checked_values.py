"""Values that used to give silent nonsense, or an error of JAX or NumPy, are refused by name; traced, they are NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, constraints, planning, robots, spatial
from rbydyn_jax._check import check_finite, check_not_negative, check_number, check_positive
from rbydyn_jax.constraints import Contact, LoopJoint, simulate
from rbydyn_jax.testing import random_tree
from tests.helpers import untyped

ARM = robots.two_link_arm()
Q, V, T, Z = (untyped(x) for x in (np.array([0.3, 0.4]), np.zeros(2), np.eye(4), np.zeros(3)))
TREE = random_tree(1, n=9)  # with joints of every type


def singular(kind: str, value: float = 0.0) -> jax.Array:
    """A configuration at which the joint of this type has no position: zero, or so small that its square is."""
    q = rb.neutral(TREE)
    return q.at[TREE.tree.q_slices[TREE.tree.joint_types.index(kind)]].set(value)


def ik(**changed: Any) -> Any:
    return planning.solve_ik(ARM, **{"link": "tool", "target": T, "attempts": 1} | changed)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: Contact("tool", friction_damping=0.0), rb.ArgumentError, "friction_damping must be finite and pos"),
        (lambda: Contact("tool", stiffness=-1.0), rb.ArgumentError, "stiffness must be finite and not negative"),
        (lambda: Contact("tool", friction=-1.0), rb.ArgumentError, "friction must be finite and not negative"),
        (lambda: Contact("tool", exponent=np.nan), rb.ArgumentError, "exponent must be finite"),
        (lambda: Contact("tool", [np.nan] * 3), rb.ArgumentError, "point must be finite"),
        (lambda: Contact("tool", stiffness=untyped("stiff")), rb.DtypeError, "stiffness must be a number, got 'stiff'"),
        (lambda: LoopJoint("fixed", None, "tool", predecessor_pose=0.0 * T), rb.ArgumentError, "predecessor_pose must"),
        (lambda: constraints.Baumgarte(linear_damping=-1.0), rb.ArgumentError, "linear_damping must be"),
        (lambda: ik(position_tolerance=np.nan), rb.ArgumentError, "position_tolerance must be finite and positive"),
        (lambda: ik(orientation_tolerance=-1.0), rb.ArgumentError, "orientation_tolerance must be finite and positive"),
        (lambda: ik(target=2.0 * T), rb.ArgumentError, "target must be a rigid transform"),
        (lambda: ik(target=untyped(np.diag([1.0, 1.0, -1.0, 1.0]))), rb.ArgumentError, "target must be a rigid"),
        (lambda: ik(link=None), rb.ArgumentError, "link must be given with target"),
        (lambda: ik(link=0.5), rb.DtypeError, "link must be a name, an index, or a tuple"),
        (lambda: ik(key=0), rb.DtypeError, "key must be one key of jax.random"),
        (lambda: rb.random_configuration(ARM, untyped(0)), rb.DtypeError, "key must be one key of jax.random"),
        (lambda: spatial.so3.log(2.0 * untyped(np.eye(3))), rb.ArgumentError, "R must be a rotation matrix"),
        (lambda: spatial.se3.log(0.0 * T), rb.ArgumentError, "T must be a rigid transform"),
        (lambda: spatial.se3.inverse(2.0 * T), rb.ArgumentError, "T must be a rigid transform"),
        (lambda: spatial.quaternions.from_matrix(untyped(np.zeros((3, 3)))), rb.ArgumentError, "R must be a rotation"),
        (lambda: spatial.rpy.from_matrix(-untyped(np.eye(3))), rb.ArgumentError, "R must be a rotation"),
        (lambda: spatial.cones.friction_cone_faces(-0.5), rb.ArgumentError, "friction must be finite and not negative"),
        (lambda: spatial.cones.rectangle(untyped(np.array([0.1, np.nan]))), rb.ArgumentError, "half_sizes must be"),
        (lambda: spatial.so3.exp(untyped("x")), rb.DtypeError, "phi must be an array of floats, got str"),
        (lambda: collision.capsule_distance(Z, Z + 1, np.nan, Z, Z + 2, 0.1), rb.ArgumentError, "radius_a must be"),
        (lambda: simulate(ARM, Q, V, np.inf, 0.1), rb.ArgumentError, "duration must be finite, got inf"),
        (lambda: simulate(ARM, Q, V, 1.0, np.nan), rb.ArgumentError, "dt must be finite, got nan"),
        (lambda: simulate(ARM, Q, V, untyped("x"), 0.1), rb.DtypeError, "duration must be a number, got 'x'"),
        (lambda: jax.jit(lambda dt: simulate(ARM, Q, V, 1.0, dt).qs)(0.1), rb.DtypeError, "dt must be known"),
        (lambda: simulate(ARM, Q, V, 1e300, 1e-300), rb.ArgumentError, "duration / dt must be less than"),
        (lambda: constraints.state_derivative(untyped(None), V, V), rb.DtypeError, "model must be a Model"),
        (lambda: rb.damping_forces(ARM, untyped(np.array([None, 1]))), rb.DtypeError, "v must be an array of floats"),
        (lambda: rb.friction_forces(ARM, V, width=untyped("a")), rb.DtypeError, "width must be an array of floats"),
        (lambda: rb.save_urdf(ARM, untyped(None)), rb.DtypeError, "path must be a str or a Path"),
        (lambda: rb.build_model(robots.descriptions.describe_pendulum(), gravity=(0, 0, 1e39), dtype=jnp.float32),
         rb.ModelError, "gravity 1e\\+39 overflows float32"),
    ],
)  # fmt: skip
def test_refused(call: Callable[[], Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "check, message",
    [
        (check_finite, r"x must be finite, got nan at \[2, 1\]"),
        (check_positive, r"x must be finite and positive, got 0\.0 at \[0, 0\], and 19 more that are not"),
        (check_not_negative, r"x must be finite and not negative, got nan at \[2, 1\]"),
    ],
)
def test_a_long_array_is_not_printed_whole(check: Callable[[Any, str], None], message: str):
    x = np.zeros((10, 2))
    x[2, 1] = np.nan
    for given in (x, jnp.asarray(x)):
        with pytest.raises(rb.ArgumentError, match=f"^{message}$"):
            check(given, "x")
    with pytest.raises(rb.ArgumentError, match=r"must be finite.*, got \[\[0\.0, 0\.0\], \[0\.0, nan\]\]$"):
        check(x[1:3], "x")
    with pytest.raises(rb.DtypeError) as caught:
        check_number([0.0] * 1000, "x")
    assert len(str(caught.value)) < 300


def test_swapped_arguments_are_arrays_and_no_tracers():
    with pytest.raises(rb.DtypeError, match=r"model must be a Model \(from load_urdf.*\), got an array$"):
        rb.gravity_forces(untyped(np.zeros(2)), untyped(ARM))
    with pytest.raises(rb.DtypeError, match="q must be an array of floats, got Model"):
        rb.gravity_forces(ARM, untyped(ARM))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spherical", "floating", "sin_cos_revolute"])
def test_a_singular_position_is_an_error_outside_of_a_trace_and_nan_inside(kind: str):
    name = TREE.joint_names[TREE.tree.joint_types.index(kind)]
    calls: dict[str, Callable[[Any], Any]] = {
        "q": lambda q: rb.fk(TREE, q),
        "q0": lambda q: rb.difference(TREE, q, rb.neutral(TREE)),
        "q1": lambda q: rb.difference(TREE, rb.neutral(TREE), q),
    }
    for argument, f in calls.items():
        for q in (singular(kind), singular(kind, 1e-200)):
            with pytest.raises(rb.ArgumentError, match=f"{argument} of joint '{name}' .*zero"):
                f(q)
    with pytest.raises(rb.ArgumentError, match=f"q of joint '{name}'"):
        rb.gravity_forces(TREE, q=untyped(np.asarray(singular(kind))))
    assert np.isnan(jax.jit(calls["q"])(singular(kind))).any()
    assert not np.isnan(calls["q"](rb.neutral(TREE))).any()
    rb.fk(rb.specialize(TREE), rb.neutral(TREE))
    with pytest.raises(rb.ArgumentError, match=f"q of joint '{name}'"):
        rb.fk(rb.specialize(TREE), singular(kind))


@pytest.mark.slow
def test_nan_goes_through():
    """As everywhere: what is not a number gives what is not a number."""
    assert np.isnan(rb.fk(TREE, jnp.full(TREE.nq, jnp.nan))).any()
    assert np.isnan(spatial.so3.log(jnp.full((3, 3), jnp.nan))).all()
    assert int(ik(target=jnp.full((4, 4), jnp.nan)).status) == planning.IkStatus.NOT_FINITE


_LINK = '<link name="c"><inertial><origin xyz="{o}"/><mass value="{m}"/>'
_URDF = (
    '<robot name="a"><link name="b"/>' + _LINK + '<inertia ixx="{i}" ixy="0" ixz="0" iyy="{i}" iyz="0" izz="1"/>'
    '</inertial></link>\n<joint name="j" type="revolute"><parent link="b"/><child link="c"/><origin xyz="{p}"/>'
    '<axis xyz="0 0 1"/><limit lower="{l}" upper="1" effort="1" velocity="1"/></joint></robot>'
)


@pytest.mark.parametrize(
    "x64, changed, message",
    [
        (True, {"o": "1e200 0 0"}, "x.urdf:1: error: link 'c': .* overflows float64: inf"),
        (True, {"o": "1e160 1e160 0"}, "x.urdf:1: error: link 'c': .* overflows float64: inf"),
        (True, {"m": "1e308", "o": "1 1 1"}, "x.urdf:1: error: link 'c': .* overflows float64: inf"),
        (True, {"p": "1e300 0 0"}, "x.urdf:2: error: joint 'j': position 1e\\+300 is too large: forces, about 1e60"),
        (False, {"m": "1e39"}, "x.urdf:1: error: link 'c': mass.* overflows float32: 1e\\+39"),
        (False, {"i": "1e39"}, "x.urdf:1: error: link 'c': .* overflows float32: 1e\\+39"),
        (False, {"o": "1e20 0 0"}, "x.urdf:1: error: link 'c': .* overflows float32: 1e\\+40"),
        (False, {"p": "1e39 0 0"}, "x.urdf:2: error: joint 'j': position overflows float32: 1e\\+39"),
        (False, {"p": "1e20 0 0"}, "x.urdf:2: error: joint 'j': position 1e\\+20 is too large: forces"),
        (False, {"l": "-1e39"}, ""),
    ],
)
def test_numbers_of_files_are_finite_in_the_dtype_of_the_model(x64: bool, changed: dict[str, str], message: str):
    text = _URDF.format(**{"o": "0 0 0", "m": "1", "i": "1", "p": "0 0 0", "l": "-1"} | changed)
    with jax.enable_x64(x64):
        if not message:  # a limit beyond all numbers is none
            assert rb.load_urdf_string(text).position_lower.tolist() == [-np.inf]
            return
        with pytest.raises(rb.ParseError, match=message):
            rb.load_urdf_string(text, source="x.urdf")


@pytest.mark.slow
def test_whole_numbers_are_numbers_in_compiled_functions():
    cost = planning.SoftGoal(planning.PositionGoal("tool", jnp.array([0.3, 0.6, 0.0])))
    problem = planning.ControlProblem(ARM, [planning.JointEffort(1)], [cost], dt=1, steps=2)
    key = jax.random.key(0)

    def results(one: Any, none: Any) -> Any:
        step = planning.differential_ik(ARM, Q, [cost], dt=one, gain=one, damping=one, limit_gain=one)
        sampled = planning.mppi(problem, Q, V, key, t=none, samples=4, noise=one, correlation=none)
        return step.v, planning.ilqr(problem, Q, V, t=none, iterations=1).taus, sampled.taus

    for whole, real in zip(results(1, 0), results(1.0, 0.0), strict=True):
        assert bool(jnp.any(real != 0.0))
        np.testing.assert_array_equal(whole, real)
    with pytest.raises(rb.DtypeError, match="t must be an array of floats, got dtype bool"):
        planning.ilqr(problem, Q, V, t=True)
