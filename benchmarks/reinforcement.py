"""Reinforcement learning: PPO of Rejax learns the tasks of the right arm of the RB-Y1; learning curves.

One curve a seed: after each part of the training 128 new episodes of the policy with its noise. The share of success is
that of episodes whose hand ends within 3 cm of the goal. Beside it the same episodes without actions. Rejax and Gymnax
come with the extra `rl`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .store import Store

FILE = "reinforcement.json"
STEPS, EPISODES, NEAR = 1_280_000, 128, 0.03
PPO = {
    "num_envs": 256,
    "num_steps": 50,
    "num_minibatches": 16,
    "num_epochs": 4,
    "learning_rate": 1e-3,
    "gamma": 0.95,
    "ent_coef": 0.0,
    "max_grad_norm": 0.5,
    "normalize_observations": True,
    "agent_kwargs": {"activation": "tanh", "hidden_layer_sizes": [64, 64]},
}


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `reinforcement` to the command line."""
    command = commands.add_parser("reinforcement", help="PPO learns to reach and to lift: learning curves")
    command.add_argument("--tasks", default="reach,lift", help="some of reach, lift")
    command.add_argument("--seeds", type=int, default=3)
    command.add_argument("--steps", type=int, default=STEPS, help="actions in a training")
    command.add_argument("--points", type=int, default=20, help="evaluations in a training")
    command.add_argument("--output", type=Path, help="default: in the results")
    command.add_argument("--picture", type=Path, help="draw the curves there")
    command.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Trains, writes JSON and the picture, prints a table."""
    output = arguments.output or arguments.results / FILE
    about = Store(output, keep=False).about
    found: dict[str, Any] = {**about, "ppo": PPO, "episodes": EPISODES, "near": NEAR, "trainings": []}
    for task in arguments.tasks.split(","):
        for record in _train(task, arguments.seeds, arguments.steps, arguments.points):
            found["trainings"].append(record)
            print("   ", task, record["success"], f"{record['train_s']:.0f} s", file=sys.stderr)
            output.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.picture:
        _draw(found, arguments.picture)
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    head = (
        "task",
        "seed",
        "return",
        "without actions",
        "within 3 cm",
        "actions",
        "train [s]",
        "CPU [s]",
    )
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for r in found["trainings"]:
        numbers = (
            f"{r['return'][-1]:.1f} | {r['idle']['return']:.1f} | {100 * r['success'][-1]:.0f} % | {r['actions'][-1]}"
        )
        seconds = f"{r['train_s']:.0f} | {r['train_cpu_s']:.0f}"
        lines.append(f"| {r['task']} | {r['seed']} | {numbers} | {seconds} |")
    return "\n".join(lines)


def _train(task: str, seeds: int, steps: int, points: int) -> Iterator[dict[str, Any]]:
    """A training for each seed, all by one compiled program."""
    import importlib

    import jax
    import jax.numpy as jnp
    import numpy as np

    from rbydyn_jax import envs

    env = {"reach": envs.reach, "lift": envs.lift}[task](dtype=jnp.float32)

    def episode(act: Any, key: Any) -> tuple[Any, Any]:
        """Sum of the rewards, and the distance at the end."""
        first, rest = jax.random.split(key)

        def one(state: Any, key: Any) -> tuple[Any, Any]:
            after = envs.step(env, state, act(envs.observe(env, state), key))
            return after.state, (after.reward, after.distance)

        keys = jax.random.split(rest, env.max_steps_in_episode)
        _, (rewards, distances) = jax.lax.scan(one, envs.reset(env, first), keys)
        return rewards.sum(), distances[-1]

    def evaluate(algorithm: Any, state: Any, key: Any) -> tuple[Any, Any]:
        return jax.vmap(lambda key: episode(algorithm.make_act(state), key))(jax.random.split(key, EPISODES))

    rejax: Any = importlib.import_module("rejax")
    iteration = PPO["num_envs"] * PPO["num_steps"]
    every = max(round(steps / points / iteration), 1) * iteration
    algorithm = rejax.PPO.create(env=envs.RejaxEnv(env), total_timesteps=every * points, eval_freq=every, **PPO)
    algorithm = algorithm.replace(eval_callback=evaluate)
    still = jax.jit(jax.vmap(lambda key: episode(lambda observation, key: jnp.zeros(env.action_size), key)))
    train = jax.jit(algorithm.train).lower(jax.random.key(0)).compile()
    for seed in range(seeds):
        started, cpu = time.perf_counter(), time.process_time()
        _, (returns, distances) = jax.block_until_ready(train(jax.random.key(seed)))
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        idle = still(jax.random.split(jax.random.key(1000 + seed), EPISODES))
        distances = np.asarray(distances)
        yield {
            "task": task,
            "seed": seed,
            "actions": [every * k for k in range(points + 1)],
            "return": np.asarray(returns).mean(1).round(2).tolist(),
            "success": (distances < NEAR).mean(1).round(3).tolist(),
            "distance": np.median(distances, 1).round(4).tolist(),
            "idle": {"return": round(float(idle[0].mean()), 2), "success": float((idle[1] < NEAR).mean())},
            "train_s": round(seconds, 1),
            "train_cpu_s": round(cpu, 1),
        }


def _draw(found: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(r["task"] for r in found["trainings"]))
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = figure.subplots(1, 2)
    rows = (("success", "share within 3 cm at the end"), ("distance", "median distance at the end [m]"))
    for panel, (what, label) in zip(panels, rows, strict=True):
        for k, task in enumerate(tasks):
            curves = [r for r in found["trainings"] if r["task"] == task]
            for r in curves:
                name = task if r is curves[0] else None
                panel.plot([x / 1e6 for x in r["actions"]], r[what], color=f"C{k}", lw=1.4, alpha=0.8, label=name)
        panel.set_xlabel("actions, millions")
        panel.set_ylabel(label)
        panel.set_ylim(0.0, 1.02 if what == "success" else None)
        panel.grid(alpha=0.3)
        panel.legend(frameon=False)
    figure.savefig(path, dpi=110)
