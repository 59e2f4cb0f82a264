"""The viewer in a real browser: the page loads, a slider moves the robot, and a hand that is dragged is followed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from rbydyn_jax import robots, viz

pytest.importorskip("viser")
webdriver = pytest.importorskip("selenium.webdriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("default"),  # of sockets, as the browser opens and drops them
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]

ARM = robots.two_link_arm()
WIDTH, HEIGHT = 900, 700
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


@pytest.fixture
def viewer(browser) -> Iterator[viz.Viewer]:
    """A viewer whose page is open."""
    with viz.show(ARM, np.array([0.4, 0.6]), block=False, port=0, quiet=True) as viewer:
        browser.get(viewer.url)
        until(lambda: viewer.server.get_clients())
        until(lambda: browser.find_elements("css selector", "[role=slider]"))
        yield viewer
        browser.get("about:blank")


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


def test_the_robot_follows_a_gizmo_that_is_dragged(browser, viewer):
    viewer.drag("tool")
    until(lambda: viewer._drag.text.content == "drag the gizmo")
    gizmo = viewer.gizmos["tool"]
    before, start = viewer.q, gizmo.position.copy()
    canvas = browser.find_element("tag name", "canvas")
    # The square between two of the arrows moves the gizmo in their plane: here that of the arm.
    handle = start + viz.viewer.rotated(gizmo.wxyz, 0.33 * gizmo.scale * np.array([1.0, 1.0, 0.0]))
    x, y = pixel(viewer, handle, canvas.size)
    middle = canvas.size["width"] / 2, canvas.size["height"] / 2
    actions = webdriver.ActionChains(browser, duration=300)
    actions.move_to_element_with_offset(canvas, round(x - middle[0]), round(y - middle[1])).click_and_hold()
    for _ in range(4):
        actions.move_by_offset(-8, 6)
    actions.release().perform()
    until(lambda: np.linalg.norm(gizmo.position - start) > 0.02)
    until(lambda: np.abs(viewer.q - before).max() > 0.01)

    def is_followed() -> bool:
        tool = viewer.server.scene.get_handle_by_name("/robot/tool").position
        return np.linalg.norm(tool - gizmo.position) < 0.5 * np.linalg.norm(start - gizmo.position)

    until(is_followed)


def pixel(viewer: viz.Viewer, point: np.ndarray, size: dict) -> tuple[float, float]:
    """Where the camera of the page sees a point."""
    (client,) = viewer.server.get_clients().values()
    camera = client.camera
    w, *xyz = camera.wxyz
    x, y, z = viz.viewer.rotated(np.array([w, *(-np.array(xyz))]), point - camera.position)  # z ahead, y down
    focal = 0.5 * size["height"] / np.tan(0.5 * camera.fov)
    return 0.5 * size["width"] + focal * x / z, 0.5 * size["height"] + focal * y / z
