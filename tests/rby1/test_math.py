"""The motion generator against the SDK's own, digit by digit, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, ShapeError, StaleStateError
from rbydyn_jax.rby1.math import TrapezoidalMotionGenerator
from tests.helpers import untyped

FIELDS = ("current_position", "current_velocity", "target_position", "velocity_limit", "acceleration_limit")


def generate(kind, *fields, minimum_time=0.0, max_iter=30):
    given = kind.Input()
    for name, x in zip(FIELDS, fields, strict=True):
        setattr(given, name, np.array(x, float))
    given.minimum_time = minimum_time
    generator = kind(max_iter)
    generator.update(given)
    return generator


@pytest.mark.parametrize("grid", [True, False])
def test_numbers_are_those_of_the_sdk(grid):
    sdk = pytest.importorskip("rby1_sdk.math").TrapezoidalMotionGenerator
    rng, n = np.random.default_rng(int(grid)), 5
    for _ in range(200):

        def number(scale):
            return scale * (rng.choice([0.0, 1.0, -1.0], size=n) if grid else rng.normal(size=n))

        fields = (number(1.0), number(1.5), number(1.0), rng.uniform(0.2, 3, n), rng.uniform(0.5, 8, n))
        options = {"minimum_time": float(rng.choice([0.0, 5.0])), "max_iter": int(rng.choice([1, 3, 30]))}
        ours, theirs = (generate(kind, *fields, **options) for kind in (TrapezoidalMotionGenerator, sdk))
        total = theirs.get_total_time()
        assert abs(ours.get_total_time() - total) <= 1e-12
        for t in rng.uniform(-0.2, total + 0.1, 12):
            got, want = ours(t), theirs(t)
            for name in ("position", "velocity", "acceleration"):
                assert np.abs(getattr(got, name) - getattr(want, name)).max() <= 1e-12, (name, t)


@pytest.mark.parametrize(
    ("v0", "target", "minimum_time", "total"),
    [
        ([0], [1], 0, 1.5),
        ([0], [0.1], 0, 0.447214),
        ([0], [1], 3, 3),
        ([0.5], [1], 0, 1.3125),
        ([-0.5], [1], 0, 1.8125),
        ([2], [0.1], 0, 2.4),
        ([2], [5], 0, 5),
        ([0, 0], [1, 0.2], 0, 1.5),
    ],
)
def test_golden_figures(v0, target, minimum_time, total):
    one = np.ones(len(target))
    generator = generate(TrapezoidalMotionGenerator, 0 * one, v0, target, one, 2 * one, minimum_time=minimum_time)
    assert generator.get_total_time() == pytest.approx(total, abs=5e-7)
    cruise = generator.at_time(total / 2).velocity
    if minimum_time:
        assert cruise[0] == pytest.approx(0.354249, abs=5e-7)
    if len(target) == 2:
        assert cruise[1] == pytest.approx(0.139853, abs=5e-7)
    assert generator(total + 1).position.tolist() == target


def test_before_the_first_update():
    generator = TrapezoidalMotionGenerator()
    assert generator.get_total_time() == 0.0
    with pytest.raises(StaleStateError, match="call update first"):
        generator(0.0)
    with pytest.raises(RuntimeError):  # what the SDK raises
        generator.at_time(0.0)


def test_wrong_inputs():
    good = dict(zip(FIELDS, ([0.0], [0.0], [1.0], [1.0], [2.0]), strict=True))

    def update(**changed):
        TrapezoidalMotionGenerator().update(untyped(TrapezoidalMotionGenerator.Input)(**(good | changed)))

    update()
    with pytest.raises(ShapeError, match=r"input.velocity_limit must have shape \(1,\), got \(2,\)"):
        update(velocity_limit=[1.0, 1.0])
    with pytest.raises(ValueError):  # what the SDK raises
        update(current_velocity=[])
    with pytest.raises(DtypeError, match=r"input\.target_position must be an array"):
        update(target_position=["one"])
    for name in ("velocity_limit", "acceleration_limit"):  # the SDK goes on, with a duration of 0 or infinity
        for wrong in (0.0, -1.0, np.nan):
            with pytest.raises(ArgumentError, match=rf"input.{name}\[0\] must be positive"):
                update(**{name: [wrong]})
    with pytest.raises(ArgumentError, match=r"input.current_position\[0\] must be finite"):
        update(current_position=[np.inf])
    with pytest.raises(ArgumentError, match="minimum_time"):
        update(minimum_time=np.nan)
    with pytest.raises(ArgumentError, match="max_iter"):
        TrapezoidalMotionGenerator(0)


def test_at_rest_on_the_target():
    generator = generate(TrapezoidalMotionGenerator, [0.3], [0.0], [0.3], [1.0], [2.0])
    assert generator.get_total_time() == 0.0
    assert generator(0.0).position.tolist() == [0.3]


def test_results_are_copies():
    generator = generate(TrapezoidalMotionGenerator, [0.0], [0.0], [1.0], [1.0], [2.0])
    generator(9.0).position[0] = 5.0
    assert generator(9.0).position.tolist() == [1.0]
