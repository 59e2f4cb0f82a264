"""Films of motions, frame by frame."""

from __future__ import annotations

import shutil
import subprocess

import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import ArgumentError, DtypeError, RbydynError, RobotBuilder, ShapeError, build_model, robots
from rbydyn_jax.planning import Trajectory, TrajectorySamples
from rbydyn_jax.viz import animate

pytest.importorskip("matplotlib")
image = pytest.importorskip("PIL.Image")
ARM = robots.two_link_arm()
SWING = np.linspace([0.0, 0.0], [1.5, 0.0], 11)


@pytest.mark.ci
def test_a_film_has_a_frame_for_each_time_and_shows_the_motion(tmp_path):
    path = tmp_path / "swing.GIF"
    told = []
    animate(ARM, SWING, path, dt=0.1, fps=5.0, speed=2.0, progress=lambda *done: told.append(done))
    assert told == [(1, 3), (2, 3), (3, 3)]
    with image.open(path) as film:
        assert film.n_frames == 3  # 1 s at double speed, five frames a second, and the first
        assert film.info["duration"] == 200
        frames = []
        for k in range(film.n_frames):
            film.seek(k)
            frames.append(np.asarray(film.convert("RGB"), int))
    arms = [(frame[..., 2] - frame[..., 0] > 60) for frame in frames]
    assert all(arm.mean() > 0.005 for arm in arms)
    assert (arms[0] & arms[2]).sum() < 0.5 * arms[0].sum()  # a quarter of a turn later


@pytest.mark.ci
@pytest.mark.parametrize("fps", [0.5, 7.0, 30.0, 60.0, 200.0])
def test_a_gif_lasts_as_long_as_the_motion(fps, tmp_path):
    path = tmp_path / "swing.gif"
    animate(ARM, SWING, path, dt=0.04, fps=fps)
    durations = []
    with image.open(path) as film:
        for k in range(film.n_frames):
            film.seek(k)
            durations.append(film.info["duration"])
    delay = 10 * max(round(100.0 / fps), 2)  # a GIF has whole hundredths of a second
    assert set(durations[:-1]) <= {delay} and min(durations) >= 20
    assert 400 - delay <= sum(durations) - delay <= 400 + delay  # the last frame stays as long as the others


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the program ffmpeg is not installed")
def test_a_film_as_mp4_shows_the_motion(tmp_path):
    path = tmp_path / "swing.mp4"
    animate(ARM, SWING, path, dt=0.1, fps=5.0, speed=2.0)
    command = ["ffmpeg", "-loglevel", "error", "-i", str(path), str(tmp_path / "frame_%d.png")]
    subprocess.run(command, check=True)
    frames = [np.asarray(image.open(x).convert("RGB"), int) for x in sorted(tmp_path.glob("frame_*.png"))]
    assert [frame.shape for frame in frames] == [(500, 500, 3)] * 3
    arms = [(frame[..., 2] - frame[..., 0] > 60) for frame in frames]
    assert all(arm.mean() > 0.005 for arm in arms)
    assert (arms[0] & arms[2]).sum() < 0.5 * arms[0].sum()  # a quarter of a turn later


def test_a_robot_that_does_not_move_is_filmed(tmp_path):
    still = build_model(RobotBuilder("still").link("base", 1.0, inertia=0.1).capsule("base", 0.2, 0.05))
    animate(still, np.zeros((3, 0)), tmp_path / "still.gif", dt=0.1)
    with image.open(tmp_path / "still.gif") as film:
        assert film.n_frames >= 1 and np.ptp(np.asarray(film.convert("L"))) > 50


def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match=r"path must end in .gif or .mp4, got 'film.avi'"):
        animate(ARM, SWING, "film.avi", dt=0.1)
    with pytest.raises(ArgumentError, match="fps must be finite and positive"):
        animate(ARM, SWING, tmp_path / "x.gif", dt=0.1, fps=0.0)
    with pytest.raises(ArgumentError, match="speed and fps must give at most 100,000 frames, got"):
        animate(ARM, SWING, tmp_path / "x.gif", dt=0.1, speed=1e-12)
    with pytest.raises(DtypeError, match="model must be a Model"):
        animate(None, SWING, tmp_path / "x.gif", dt=0.1)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match="progress must be a function of two integers, or a bool, got str"):
        animate(ARM, SWING, tmp_path / "x.gif", dt=0.1, progress="bar")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="trajectory must have shape"):
        animate(ARM, np.zeros((4, 3)), tmp_path / "x.gif", dt=0.1)
    still = Trajectory(jnp.zeros((2, 2)), jnp.zeros((2, 1, 1)), jnp.ones(2), (0,), (0,), 2)
    samples = TrajectorySamples(jnp.zeros((2, 4)), *[jnp.zeros((2, 4, 2))] * 3)
    for batch in (still, samples):
        with pytest.raises(ShapeError, match=r"trajectory must be a single one, got a batch of \(2,\)"):
            animate(ARM, batch, tmp_path / "x.gif")
    for wrong in (None, b"x.gif", 3):
        with pytest.raises(DtypeError, match=f"path must be a string or a path, got {type(wrong).__name__}"):
            animate(ARM, SWING, wrong, dt=0.1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"color must be a colour of matplotlib.*'foo'"):
        animate(ARM, SWING, tmp_path / "x.gif", dt=0.1, color="foo")
    with pytest.raises(ArgumentError, match="alpha must be from 0 to 1, got 7"):
        animate(ARM, SWING, tmp_path / "x.gif", dt=0.1, alpha=7)
    monkeypatch.setattr("matplotlib.animation.writers.is_available", lambda kind: kind != "ffmpeg")
    with pytest.raises(RbydynError, match="needs the program ffmpeg"):
        animate(ARM, SWING, tmp_path / "x.mp4", dt=0.1)
    assert not list(tmp_path.iterdir())
