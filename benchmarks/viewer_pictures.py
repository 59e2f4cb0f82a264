"""Pictures of the viewer for the documentation: `python -m benchmarks.viewer_pictures` writes docs/images/*.png.

Needs Chromium and ChromeDriver, selenium and Pillow (extras `view` and `test`).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image
from selenium import webdriver

from rbydyn_jax import collision, link_pose, robots, viz
from rbydyn_jax.cli.task import reaching_task, solve
from rbydyn_jax.planning import check_trajectory

FOLDER = Path(__file__).parent.parent / "docs" / "images"
FLAGS = "--headless=new --no-sandbox --use-angle=swiftshader --enable-unsafe-swiftshader --ignore-gpu-blocklist"
FLAGS += " --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"


def browser(width: int = 1280, height: int = 840) -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in (*FLAGS.split(), f"--window-size={width},{height}", f"--user-data-dir={tempfile.mkdtemp()}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def picture(driver: Any, viewer: viz.Viewer, name: str, look_at: Any, away: Any, ready: Callable[[], bool]) -> None:
    driver.get(viewer.url)
    while not (viewer.server.get_clients() and ready()):
        time.sleep(0.2)
    (client,) = viewer.server.get_clients().values()
    client.camera.position = np.add(look_at, away)
    client.camera.look_at = np.array(look_at)  # behind: a new position shifts it
    # viser warns of rendering by software, which is nothing to document.
    driver.execute_script("document.querySelectorAll('.mantine-Notifications-root').forEach(x => x.remove())")
    time.sleep(5.0)
    with tempfile.TemporaryDirectory() as folder:
        raw = str(Path(folder) / "raw.png")
        driver.save_screenshot(raw)
        Image.open(raw).convert("RGB").save(FOLDER / name, optimize=True)
    print(FOLDER / name, (FOLDER / name).stat().st_size // 1000, "kB")


def hands(driver: Any) -> None:
    """RB-Y1 A at a table, with the nearest pairs, and a gizmo on its right hand."""
    model = robots.rby1a()
    bent = {"torso_1": 0.5, "torso_2": -1.0, "torso_3": 0.5}
    bent |= {f"{side}_arm_{k}": x for side in ("right", "left") for k, x in ((0, -0.5), (3, -1.6), (5, -0.4))}
    bent |= {"right_arm_1": -0.25, "left_arm_1": 0.25}
    q = np.zeros(model.nq)
    for name, x in bent.items():
        q[model.tree.q_slices[model.joint_index(name)]] = x
    hand = np.asarray(link_pose(model, jnp.asarray(q, jnp.float32), "ee_right"))[:3, 3]
    place = jnp.eye(4).at[:3, 3].set(jnp.array([hand[0] + 0.1, 0.0, hand[2] - 0.3]))
    table = collision.box(place, jnp.array([0.5, 1.0, 0.05]))
    world = collision.World(table, collision.sphere(jnp.array([hand[0] + 0.15, 0.1, hand[2] - 0.19]), 0.08))
    with viz.show(model, q, world=world, drag="ee_right", block=False, port=0, quiet=True) as viewer:
        picture(driver, viewer, "viewer.png", [0.15, 0.12, 0.8], [1.15, 0.55, 0.45], lambda: not viewer.compiling)


def motion(driver: Any) -> None:
    """The motion of the demo, half way."""
    task = reaching_task()
    _, result = solve(task)
    report = check_trajectory(task.model, result.trajectory, task.link, task.target)
    with viz.Viewer(task.model, port=0, quiet=True) as viewer:
        viewer.play(report).time = 0.6 * float(report.samples.times[-1])
        picture(driver, viewer, "playback.png", [0.1, 0.05, 0.8], [2.1, -0.7, 0.6], lambda: True)


def main() -> None:
    driver = browser()
    try:
        hands(driver)
        with jax.enable_x64(True):
            motion(driver)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
