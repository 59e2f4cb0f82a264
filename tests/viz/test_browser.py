"""The viewer in a real browser: the page loads, a slider moves the robot, and a hand that is dragged is followed."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rbydyn_jax import neutral, robots, viz
from rbydyn_jax.viz.viewer import rotated

pytest.importorskip("viser")
webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("default"),  # of sockets, as the browser opens and drops them
    pytest.mark.skipif(not (shutil.which("chromium") or os.environ.get("CI")), reason="Chromium is not installed"),
]

ARM = robots.two_link_arm()
WIDTH, HEIGHT = 1000, 700
# WebGL by software; and no calls to the hosts of the browser's maker.
FLAGS = """--headless=new --no-sandbox --disable-dev-shm-usage --use-angle=swiftshader --enable-unsafe-swiftshader
  --ignore-gpu-blocklist --disable-quic --no-first-run --disable-background-networking --disable-component-update
  --disable-sync""".split()


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    profile = tmp_path_factory.mktemp("chromium")
    for flag in (*FLAGS, f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@contextlib.contextmanager
def opened(browser, model, q) -> Iterator[viz.Viewer]:
    """A viewer whose page is open."""
    with viz.show(model, q, block=False, port=0, quiet=True) as viewer:
        browser.get(viewer.url)
        until(lambda: viewer.server.get_clients())
        until(lambda: browser.find_elements("css selector", "[role=slider]"))
        yield viewer
        browser.get("about:blank")


@pytest.fixture
def viewer(browser) -> Iterator[viz.Viewer]:
    with opened(browser, ARM, np.array([0.4, 0.6])) as viewer:
        yield viewer


@pytest.fixture
def floating(browser) -> Iterator[viz.Viewer]:
    """Of an arm that floats: its tool can follow a gizmo anywhere, whichever handle is dragged."""
    arm = robots.two_link_arm(floating_base=True)
    with opened(browser, arm, np.concatenate([np.asarray(neutral(arm))[:-2], [0.4, 0.6]])) as viewer:
        yield viewer


def until(holds: Callable[[], object], seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_the_page_loads_and_shows_the_robot(browser, viewer):
    text = browser.find_element("tag name", "body").text
    assert all(word in text for word in ("two_link_arm", "shoulder", "elbow", "minimum distance", "frames"))
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    (client,) = viewer.server.get_clients().values()
    picture = client.get_render(height=240, width=320, transport_format="png", timeout=40.0)[..., :3].astype(int)
    blue = (picture[..., 2] > picture[..., 0] + 20).mean()
    assert blue > 0.005  # the capsules


def test_a_slider_moves_the_robot(browser, viewer):
    keys = webdriver.Keys
    thumbs = browser.find_elements("css selector", "[role=slider]")
    assert len(thumbs) == 2
    thumbs[1].send_keys(keys.END)
    limit = float(ARM.position_upper[1])
    until(lambda: abs(viewer.q[1] - limit) < 1e-3)
    tool = viewer.server.scene.get_handle_by_name("/robot/tool").position
    wanted = 0.5 * np.array([np.cos(0.4), np.sin(0.4)]) + 0.4 * np.array([np.cos(0.4 + limit), np.sin(0.4 + limit)])
    assert np.abs(tool[:2] - wanted).max() < 1e-3


def test_the_robot_follows_a_gizmo_that_is_dragged(browser, floating):
    viewer = floating
    viewer.drag("tool")
    until(lambda: not viewer.compiling)
    gizmo = viewer.gizmos["tool"]
    before, start = viewer.q, gizmo.position.copy()
    # From above, and to the left of the panel.
    (client,) = viewer.server.get_clients().values()
    client.camera.position, client.camera.look_at = start + [0.3, -0.2, 1.0], start + [0.3, 0.0, 0.0]
    canvas = browser.find_element("tag name", "canvas")
    # The square between two of the arrows moves the gizmo in their plane.
    handle = start + rotated(gizmo.wxyz, 0.35 * gizmo.scale * np.array([1.0, 1.0, 0.0]))

    def is_dragged() -> bool:
        x, y = pixel(client.camera, handle, canvas.size)
        actions = webdriver.ActionChains(browser, duration=100)
        actions.move_to_element_with_offset(
            canvas, round(x - canvas.size["width"] / 2), round(y - canvas.size["height"] / 2)
        )
        actions.pause(0.5).click_and_hold().pause(0.2)
        for _ in range(4):
            actions.move_by_offset(-8, 6).pause(0.1)
        actions.release().perform()
        time.sleep(0.5)
        return bool(np.linalg.norm(gizmo.position - start) > 0.02)

    until(is_dragged)
    until(lambda: np.abs(viewer.q - before).max() > 0.01)

    def is_followed() -> bool:
        tool = viewer.server.scene.get_handle_by_name("/robot/tool").position
        return bool(np.linalg.norm(tool - gizmo.position) < 1e-3)

    until(is_followed)


def pixel(camera: Any, point: np.ndarray, size: dict) -> tuple[float, float]:
    """Where the camera of the page sees a point."""
    w, *xyz = camera.wxyz
    x, y, z = rotated(np.array([w, *(-np.array(xyz))]), point - camera.position)  # z ahead, y down
    focal = 0.5 * size["height"] / np.tan(0.5 * camera.fov)
    return 0.5 * size["width"] + focal * x / z, 0.5 * size["height"] + focal * y / z
