"""Smoothing against scipy, and data from a file."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.identification import (
    TrajectoryData,
    base_parameters,
    calibrate,
    data_from_samples,
    exciting_trajectory,
    fit,
    read_csv,
    smooth,
)
from tests.helpers import assert_close, normal, untyped


@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_smooth_is_the_filter_of_savitzky_and_golay(derivative):
    signal = pytest.importorskip("scipy.signal")
    x = np.asarray(normal(0, 60, 3), float)
    want = signal.savgol_filter(x, 11, 4, deriv=derivative, delta=0.1, axis=0)
    assert_close(smooth(x, 0.1, 11, 4, derivative), want, 1e-10)


@pytest.mark.ci
def test_a_joint_that_stands_still_has_no_velocity():
    """Not one of 1e-14 rad/s either: a fit would explain its torque by a huge damping, or by friction of its sign."""
    arm, t = robots.two_link_arm(), np.arange(200) * 0.005
    q = np.stack([0.7123 + 0.3 * np.maximum(t - 0.5, 0.0) ** 3, np.full(200, 0.3)], axis=1)
    data = data_from_samples(arm, jnp.asarray(q), normal(0, 200, 2), 0.005)
    for rates in (data.v, data.a):
        assert (rates[:90, 0] == 0.0).all() and (rates[:, 1] == 0.0).all()
        assert abs(float(rates[-1, 0])) > 0.1
    found = fit(arm, data, terms=("armature", "damping", "friction"))
    assert np.abs(found.values[1::2]).max() < 1e-6 and np.isinf(found.deviation[1::2]).all()


@pytest.mark.parametrize("window", [4, 10, 61])
def test_windows_that_do_not_fit(window):
    with pytest.raises(rb.ArgumentError, match="window must be odd"):
        smooth(np.zeros((60, 1)), 0.1, window, 4)


def write(path, times, q, tau, joints, extra="", measured="tau"):
    header = ",".join(["note", "time", *(f"q_{x}" for x in joints), *(f"{measured}_{x}" for x in joints)])
    rows = [",".join(["-", *(repr(float(x)) for x in row)]) for row in np.column_stack([times, q, tau])]
    path.write_text("\n".join([header, *rows]) + extra)


def test_a_file_of_polynomials_is_read_exactly(tmp_path):
    model, t = robots.two_link_arm(), np.arange(40) * 0.01
    q, tau = np.stack([t**3, 1.0 - 2.0 * t], axis=1), np.stack([t, t**2], axis=1)
    write(tmp_path / "log.csv", t, q, tau, model.joint_names)
    data = read_csv(model, tmp_path / "log.csv")
    assert len(data) == 40
    want = (q, np.stack([3 * t**2, -2.0 + 0 * t], 1), np.stack([6 * t, 0 * t], 1), tau)
    for got, expected in zip((*data.motion, data.tau), want, strict=True):
        assert_close(np.asarray(got, float), expected, 1e-4)
    write(tmp_path / "log.csv", t, q, tau, model.joint_names, measured="current")
    assert_close(read_csv(model, tmp_path / "log.csv", measured="current").tau, data.tau)
    with pytest.raises(rb.ArgumentError, match="measured must be one of 'tau', 'current'"):
        read_csv(model, tmp_path / "log.csv", measured="power")  # type: ignore[arg-type]
    for times, extra, message in (
        (t**2, "", "log.csv:3: error: the times are not equidistant"),
        (t + 0.01 * (t > 0.195), "", "log.csv:22: error: the times are not equidistant"),
        (t - 0.01 * (t > 0.195), "", "log.csv:22: error: the times do not increase"),
        (t, "\n-,0.4,x,0,0,0", "log.csv:42: error: a value is missing or no number"),
        (t, "\n-,0.4,0,nan,0,0", "log.csv:42: error: column 'q_elbow': a value must be finite"),
        (t, "\n-,0.4,0,0,0,-inf\n", "log.csv:42: error: column 'tau_elbow': a value must be finite"),
        (t, "\n\n-,0.4,0,0,0,0", "log.csv:42: error: a value is missing or no number"),
    ):
        write(tmp_path / "log.csv", times, q, tau, model.joint_names, extra)
        with pytest.raises(rb.ParseError, match=message):
            read_csv(model, tmp_path / "log.csv")
    write(tmp_path / "log.csv", t, q[:, :1], tau, model.joint_names[:1])
    with pytest.raises(rb.ParseError, match="the file has no column 'q_"):
        read_csv(model, tmp_path / "log.csv")


def test_files_of_spreadsheets(tmp_path):
    """UTF-8 with a byte order mark, other encodings, and a quotation mark without its other."""
    model, t, path = robots.two_link_arm(), np.arange(40) * 0.01, tmp_path / "log.csv"
    q = np.stack([t, t], axis=1)
    write(path, t, q, q, model.joint_names)
    plain = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + plain.removeprefix(b"note,").replace(b"\n-,", b"\n"))
    assert_close(read_csv(model, path).q, q)
    for contents, message in (
        (plain.replace(b"\n-,", "\nµ,".encode("latin-1")), "log.csv:2: error: the file is not UTF-8"),
        (plain.decode().encode("utf-16"), "log.csv:1: error: the file is not UTF-8"),
        (plain.replace(b"-,", b'"-,') + 200_000 * b"0", "log.csv:.*: error: field larger than field limit"),
    ):
        path.write_bytes(contents)
        with pytest.raises(rb.ParseError, match=message):
            read_csv(model, path)


def test_files_with_the_wrong_rows(tmp_path):
    model, t, path = robots.two_link_arm(), np.arange(40) * 0.01, tmp_path / "log.csv"
    q = np.stack([t, t], axis=1)
    write(path, t, q, q, model.joint_names, extra="\n\n,,,,,\n  \n\n")
    assert len(read_csv(model, path)) == 40
    lines = path.read_text().splitlines()
    for text, message in (
        (lines[0], "log.csv:1: error: there are no rows below the header"),
        ("\n".join(lines[:2]) + "\n\n", "log.csv:1: error: there is only one row below the header"),
        ("", "log.csv:1: error: the file has no column 'time'$"),
        ("\n".join([lines[0] + ",q_elbow", *lines[1:]]), "log.csv:1: error: .* the column 'q_elbow' more than once"),
        ("\n".join([*lines[:3], lines[3] + ",7", *lines[4:]]), "log.csv:4: error: the row has 7 values, the header 6"),
        ("\n".join(lines).replace(",", ";"), "no column 'time': columns are separated by commas, here it seems by ';'"),
        ("\n".join(lines).replace(",", "\t"), r"separated by commas, here it seems by '\\t'"),
    ):
        path.write_text(text)
        with pytest.raises(rb.ParseError, match=message):
            read_csv(model, path)


def test_wrong_data():
    rows = jnp.zeros((5, 2))
    with pytest.raises(rb.ShapeError, match="tau must have shape"):
        TrajectoryData(rows, rows, rows, rows[:4])
    with pytest.raises(rb.ArgumentError, match="a must be finite"):
        TrajectoryData(rows, rows, rows.at[0, 0].set(jnp.nan), rows)
    many = jnp.zeros((500, 2)).at[7, 1].set(jnp.nan).at[9].set(jnp.inf)
    with pytest.raises(rb.ArgumentError, match=r"^q must be finite, got nan at \[7, 1\], and 2 more that are not$"):
        TrajectoryData(many, *(jnp.zeros((500, 2)) for _ in range(3)))
    ball = rb.build_model(rb.RobotBuilder("r").link("a").link("b", 1.0, inertia=0.1).spherical("j", "a", "b"))
    with pytest.raises(rb.ModelError, match="joint 'j': only positions whose rates are velocities"):
        rb.identification.data_from_samples(ball, jnp.zeros((50, 4)), jnp.zeros((50, 3)), 0.1)


def test_rows_by_indices_and_truth_values():
    data = TrajectoryData(*(normal(k, 5, 2) for k in range(4)))
    mask = np.array([True, False, False, True, True])
    for rows in (mask, jnp.asarray(mask), mask.tolist(), [0, 3, 4], (0, -2, -1), jnp.array([0, 3, 4])):
        got = data[rows]
        assert (got.q == data.q[mask]).all() and (got.tau == data.tau[mask]).all() and len(got) == 3
    assert len(data[[]]) == len(data[np.zeros(5, bool)]) == 0
    for wrong in ([0.5], 3, "01", None, mask[None], np.ma.array([1, 2], mask=[True, False]), [[1], [1, 2]]):
        with pytest.raises(rb.DtypeError, match="rows must be a slice, indices, or a truth value for each"):
            data[untyped(wrong)]
    for wrong in ([5], mask[:3]):
        with pytest.raises(rb.ArgumentError, match="there are 5 rows"):
            data[wrong]
    with pytest.raises(rb.DtypeError, match="rows must be a slice"):
        jax.jit(lambda rows: data[rows].q)(jnp.arange(2))


def test_tracing_is_refused():
    arm, rows = robots.two_link_arm(), jnp.zeros((30, 2))
    data, places = TrajectoryData(rows, rows, rows, rows), jnp.zeros((30, 3))
    for name, call, traced in (
        ("smooth", lambda x: smooth(x, 0.1), rows),
        ("data_from_samples", lambda x: data_from_samples(arm, x, rows, 0.1), rows),
        ("base_parameters", lambda x: base_parameters(x), arm),
        ("calibrate", lambda x: calibrate(arm, x, {"tool": places}), rows),
        ("calibrate", lambda x: calibrate(arm, rows, {"tool": x}), places),
        ("exciting_trajectory", lambda x: exciting_trajectory(arm, 2.0, q_start=x), rows[0]),
        ("fit", lambda x: fit(arm, data, noise=x), rows[0]),
        ("fit", lambda x: fit(arm, TrajectoryData(x, rows, rows, rows)), rows),
        ("fit", lambda x: fit(arm, data), rows),
    ):
        with pytest.raises(rb.DtypeError, match=f"^{name} needs the values of its arguments: call it outside of jit"):
            jax.jit(call)(traced)
