"""Damaged dictionaries for `from_dict`: what JSON can hold, at any depth."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.rby1.samples import all_commands

VALUES: tuple[Any, ...] = (
    None, True, "", "x", "StopCommand", 0, -1, 1.5, 10**400, -(10**5000), 2**40, float("nan"), float("inf"), 1e308, [],
    {}, [[]], [1, "a"], [[1], [2, 3]], [10**400, 1.0], {"type": []}, {"type": {}}, {"type": None}, {"x": 1},
    {"type": "StopCommand"}, {"type": "SE2Velocity", "angular": 0.1}, {"type": "StopComand"},
)  # fmt: skip
SAMPLES = [command.to_dict() for command in all_commands().values()]


def nested(depth: int, inner: Any, key: str = "") -> Any:
    """A value inside of `depth` lists, or of dictionaries with one key."""
    for _ in range(depth):
        inner = {"type": "RobotCommand", key: inner} if key else [inner]
    return inner


def places(x: Any) -> list[tuple[Any, Any]]:
    """Each container of a tree with one of its keys."""
    found: list[tuple[Any, Any]] = []
    stack = [x]
    while stack:
        node = stack.pop()
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            found.append((node, key))
            if isinstance(value, dict | list):
                stack.append(value)
    return found


def mutate(dice: random.Random) -> Any:
    """A sound dictionary with one to three random changes."""
    data = copy.deepcopy(dice.choice(SAMPLES))
    for _ in range(dice.randint(1, 3)):
        found = places(data)
        if not found:
            break
        node, key = dice.choice(found)
        kind = dice.randrange(7)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, dict):
            node[dice.choice(("x", key + "_", key.upper(), "type", ""))] = node.pop(key)
        elif kind == 2:
            other, at = dice.choice(found)
            node[key] = copy.deepcopy(other[at])
        elif kind == 3:
            depth = dice.choice((1, 3, 40, 500, 5000))
            node[key] = nested(depth, node[key], dice.choice(("", "command", "x")))
            break  # too deep for `places` and copies
        else:
            node[key] = copy.deepcopy(dice.choice(VALUES))
    return data if dice.random() < 0.98 else dice.choice(VALUES)
