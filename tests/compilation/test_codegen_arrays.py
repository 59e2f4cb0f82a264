"""Generated C that sorts, interpolates, accumulates and moves numbers to computed places gives what numpy does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from tests.helpers import X64

from .c_library import compiled

FLOAT = np.float64 if X64 else np.float32
KNOTS, HEIGHTS = np.array([-1.0, 0.0, 0.5, 2.0], FLOAT), np.array([3.0, -1.0, 0.5, 4.0], FLOAT)


def in_c(folder, f, **sizes):
    """A function of arrays of these sizes in C."""
    shapes = {name: jax.ShapeDtypeStruct(np.zeros(size).shape, FLOAT) for name, size in sizes.items()}
    (call,) = compiled(folder, rb.generate_c(robots.pendulum(), (f, shapes), name="own"))
    return call


# A function of eight numbers, the one of numpy, and whether numbers that are none are those of numpy as well.
OF_ROWS = {
    "floor_divide": (lambda x: x[:4] // x[4:], lambda x: x[:4] // x[4:], False),
    "mod": (lambda x: x[:4] % x[4:], lambda x: x[:4] % x[4:], True),
    "interp": (lambda x: jnp.interp(x, KNOTS, HEIGHTS), lambda x: np.interp(x, KNOTS, HEIGHTS), False),
    "cumprod": (jnp.cumprod, np.cumprod, True),
    "cummax": (jax.lax.cummax, np.maximum.accumulate, True),
    "cummin": (lambda x: jax.lax.cummin(x, reverse=True), lambda x: np.minimum.accumulate(x[::-1])[::-1], True),
    "cumlogsumexp": (jax.lax.cumlogsumexp, np.logaddexp.accumulate, True),
    "sort": (jnp.sort, np.sort, True),
    "sort_columns": (lambda x: jnp.sort(x.reshape(4, 2), axis=0), lambda x: np.sort(x.reshape(4, 2), axis=0), True),
    "argsort": (jnp.argsort, lambda x: np.argsort(x, kind="stable"), True),
    "lexsort": (lambda x: jnp.lexsort((x[4:], x[:4] > 0)), lambda x: np.lexsort((x[4:], x[:4] > 0)), True),
    "searchsorted": (lambda x: jnp.searchsorted(KNOTS, x), lambda x: np.searchsorted(KNOTS, x), True),
    "searchsorted_right": (
        lambda x: jnp.searchsorted(jnp.sort(x[:4]), x[4:], side="right"),
        lambda x: np.searchsorted(np.sort(x[:4]), x[4:], side="right"),
        True,
    ),
    "median": (jnp.median, np.median, True),
    "round": (jax.lax.round, lambda x: np.trunc(x + np.copysign(0.5, x)), True),
    "log2": (lambda x: jnp.log2(jnp.abs(x)), lambda x: np.log2(np.abs(x)), True),
    "tile": (lambda x: jnp.tile(x.reshape(4, 2), (2, 3)), lambda x: np.tile(x.reshape(4, 2), (2, 3)), True),
    "clip": (lambda x: jnp.clip(x, -0.5, 1.0), lambda x: np.clip(x, -0.5, 1.0), True),
    "sign": (jnp.sign, np.sign, True),
    "argmin": (jnp.argmin, np.argmin, True),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_functions_of_rows_give_what_numpy_does(tmp_path, name):
    ours, numpys, has_none = OF_ROWS[name]
    call = in_c(tmp_path, lambda model, x: ours(x).astype(FLOAT), x=8)
    rng = np.random.default_rng(0)
    rows = [*rng.normal(size=(9, 8)), *rng.integers(-3, 4, (9, 8)) / 2, [0.0, -0.0, 2.0, -1.0, 2.0, -0.5, 2.5, 300.0]]
    if has_none:
        rows.append([1.0, np.nan, 0.5, -2.0, np.nan, 3.0, 0.0, -1.0])
    with np.errstate(all="ignore"):
        for row in np.asarray(rows, FLOAT):
            np.testing.assert_allclose(call(row)[0], numpys(row), rtol=1e-13 if X64 else 1e-5, atol=1e-15)


COMBINED = {
    "add": (np.add, lambda at, y: at.add(y)),
    "subtract": (np.subtract, lambda at, y: at.subtract(y)),
    "multiply": (np.multiply, lambda at, y: at.multiply(y)),
    "max": (np.maximum, lambda at, y: at.max(y)),
    "min": (np.minimum, lambda at, y: at.min(y)),
}


def combined(ufunc, x, at, y):
    """An array with updates, of which those beyond it change nothing."""
    found, within = x.copy(), [-len(x) <= k < len(x) for k in at]
    ufunc.at(found, np.array(at)[within], y[within])
    return found


@pytest.mark.parametrize("name", COMBINED)
def test_numbers_at_computed_places_are_combined_as_by_numpy(tmp_path, name):
    """Places beyond the array change nothing, and one can be changed several times."""
    ufunc, method = COMBINED[name]

    def f(model, x, at, y):
        return method(x.at[at.astype(jnp.int32)], y), method(x.at[jnp.array([1, 3, 1])], y)

    call = in_c(tmp_path, f, x=5, at=3, y=3)
    x, y = np.array([0.5, -1.0, 2.0, 3.0, -0.25], FLOAT), np.array([2.0, -3.0, 0.75], FLOAT)
    for at in ([0, 4, 2], [3, 3, 3], [-1, 5, 1], [-5, -6, 99]):
        computed, known = call(x, at, y)
        np.testing.assert_allclose(computed, combined(ufunc, x, at, y))
        np.testing.assert_allclose(known, combined(ufunc, x, [1, 3, 1], y))


def moved(model, x, i, j):
    i, j = i.astype(jnp.int32), j.astype(jnp.int32)
    return {
        "applied": x.at[1, 2].apply(jnp.cos),
        "columns": x[:, j],
        "column_set": x.at[:, j[0]].set(x[:, 0]),
        "filled": x.at[i, j].get(mode="fill", fill_value=7.0),
        "nothing": jnp.take(x, j, axis=1),
        "places": x[i, j],
        "row_set": x.at[i[0]].set(x[1]),
        "taken": jnp.take_along_axis(x, jnp.stack([j, j[::-1]]), axis=1, mode="clip"),
        "vmapped": jax.vmap(lambda row, k: row.at[k].set(9.0))(x, j),
        "vmapped_rows": jax.vmap(lambda row, k: row[k])(x, j),
        "whole": jnp.take((8 * x).astype(jnp.int32), j.astype(jnp.uint8) % 8).astype(FLOAT),
        "within": x.at[i, j].set(8.0, mode="clip"),
    }


@pytest.mark.ci
@pytest.mark.parametrize("at", [([0, 1], [2, 3]), ([1, 1], [0, 0]), ([-1, 0], [-4, -1])])
def test_numbers_at_computed_places_are_read_and_written_as_by_numpy(tmp_path, at):
    call = in_c(tmp_path, moved, x=(2, 4), i=2, j=2)
    x, (i, j), rows = np.random.default_rng(1).normal(size=(2, 4)).astype(FLOAT), map(np.array, at), np.arange(2)
    want = {name: x.copy() for name in ("applied", "column_set", "row_set", "vmapped", "within")}
    want["applied"][1, 2] = np.cos(x[1, 2])
    want["column_set"][:, j[0]] = x[:, 0]
    want["row_set"][i[0]] = x[1]
    want["vmapped"][rows, j] = 9.0
    want["within"][i, j] = 8.0
    want |= {"columns": x[:, j], "nothing": x[:, j], "places": x[i, j], "filled": x[i, j], "vmapped_rows": x[rows, j]}
    want["taken"] = np.take_along_axis(x, np.stack([j, j[::-1]]), axis=1)
    want["whole"] = np.trunc(8 * x).reshape(-1)[j.astype(np.uint8) % 8]
    for got, (name, expected) in zip(call(x, i, j), sorted(want.items()), strict=True):
        np.testing.assert_allclose(got, expected, err_msg=name, rtol=1e-6)


def test_what_is_beyond_an_array_is_filled_clamped_or_left_out(tmp_path):
    call = in_c(tmp_path, moved, x=(2, 4), i=2, j=2)
    x = np.arange(8.0, dtype=FLOAT).reshape(2, 4)
    found = dict(zip(sorted(moved(None, jnp.asarray(x), *jnp.zeros((2, 2)))), call(x, [2, -3], [4, 9]), strict=True))
    np.testing.assert_array_equal(found["filled"], [7.0, 7.0])
    assert np.isnan(found["nothing"]).all()
    np.testing.assert_array_equal(found["row_set"], x)
    np.testing.assert_array_equal(found["vmapped"], x)
    np.testing.assert_array_equal(found["vmapped_rows"], [3.0, 7.0])
    within = x.copy()
    within[[1, 0], 3] = 8.0  # the lower index counts from the end before it is clamped: -3 + 2 = -1, which is row 0
    np.testing.assert_array_equal(found["within"], within)


def test_gradients_of_sorts_and_of_rows_at_computed_places(tmp_path):
    def slopes(model, x):
        at = jnp.floor(x[:3]).astype(jnp.int32)
        rising = jax.grad(lambda x: (jnp.sort(x) * jnp.arange(8.0)).sum())(x)
        return rising, jax.grad(lambda x: (x[at] ** 2).sum())(x)

    x = np.array([3.2, 0.1, 3.7, -1.0, 0.6, 2.2, 9.0, -4.0], FLOAT)
    rising, squares = in_c(tmp_path, slopes, x=8)(x)
    np.testing.assert_array_equal(rising, np.argsort(np.argsort(x)))
    np.testing.assert_allclose(squares, 2 * x * np.bincount([3, 0, 3], minlength=8))


def test_long_sorts_are_refused():
    with pytest.raises(rb.ArgumentError, match=r"'sort' \(a sort\) of more than 64 numbers is not supported"):
        rb.generate_c(robots.pendulum(), (lambda m, x: jnp.sort(x), {"x": jax.ShapeDtypeStruct((65,), FLOAT)}))
