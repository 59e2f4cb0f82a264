"""``rbydyn fk``: poses of links."""

from __future__ import annotations

import json
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms.kinematics import fk as forward_kinematics
from ..model.configuration import neutral
from ..model.states import random_states
from ..spatial import quaternions
from .source import load


def fk(
    robot: str,
    links: Sequence[str] = (),
    q: Sequence[float] | None = None,
    random: int | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> int:
    """Prints positions and quaternions of links in the world; returns 0.

    Args:
        robot: A file or a name.
        links: Their names; default is all.
        q: The configuration [rad, m]; default is the neutral one.
        random: Number of random configurations within the limits, instead of `q`.
        seed: Their seed.
        as_json: Whether to print a JSON document instead of tables.

    Raises:
        NameNotFoundError: There is no such robot or link.
        ParseError: The file describes no robot.
        ShapeError: `q` has another number of values than the configuration.
    """
    with jax.enable_x64(True):
        model = load(robot)
        chosen = [model.link_index(link) for link in links] or list(range(len(model.link_names)))
        rows = neutral(model)[None] if q is None else np.array(q)[None]
        if random is not None:
            rows = random_states(model, jax.random.key(seed), random)[0]
        poses = np.stack([forward_kinematics(model, row) for row in rows])[:, chosen]
        turns = np.asarray(jax.vmap(jax.vmap(quaternions.from_matrix))(jnp.asarray(poses[..., :3, :3])))
    names = [model.link_names[i] for i in chosen]
    if as_json:
        found = [
            {
                "q": np.asarray(row).tolist(),
                "links": {
                    name: {"position": T[:3, 3].tolist(), "quaternion_wxyz": turn.tolist(), "T": T.tolist()}
                    for name, T, turn in zip(names, at, turned, strict=True)
                },
            }
            for row, at, turned in zip(rows, poses, turns, strict=True)
        ]
        print(json.dumps({"name": model.name, "configurations": found}, indent=2))
        return 0
    width = max(map(len, names))
    for row, at, turned in zip(np.asarray(rows), poses, turns, strict=True):
        print(f"q = {','.join(f'{x:.6g}' for x in row)}")
        print(f"{'':{width}}  {'position [m]':>32}  {'quaternion wxyz':>43}")
        for name, T, turn in zip(names, at, turned, strict=True):
            numbers = "".join(f"{x + 0.0:11.6f}" for x in (*T[:3, 3].round(6), *turn.round(6)))
            print(f"{name:{width}}  {numbers}")
    return 0
