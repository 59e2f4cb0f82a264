"""What a run measures: `quick` in two minutes, `standard` for the project's pages, `full` for everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .operations import OPERATIONS
from .ours import MAPPED_FROM
from .peers import IN_JAX, NAMES

REFERENCE = 1024  # the batch in which all libraries are compared
BATCHES = (1, 64, REFERENCE, 16384, 131072)
DTYPES = ("float64", "float32")
MAIN = ("fk", "jacobian", "rnea", "crba", "aba")
FLAT = ("fk", "rnea", "crba", "aba", "self_distance")  # measured over all batches in a standard run
CHAINS, TREES = ("chain7", "chain32", "chain64", "chain128"), ("tree7", "tree31", "tree63", "tree127")
ROBOTS = ("rby1a", "panda", "g1", "talos", *CHAINS, *TREES)
ONE_BY_ONE = tuple(name for name in NAMES if name not in IN_JAX)


@dataclass(frozen=True)
class Job:
    """One operation on one robot: the batches of this library, and the libraries beside it."""

    robot: str
    dtype: str
    operation: str
    batches: tuple[int, ...]
    peers: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.robot, self.dtype, self.operation


def plan(name: str) -> list[Job]:
    """The jobs, the most expensive robots last."""
    return list(_sized({"quick": _quick, "standard": _standard, "full": _full}[name]()))


def _quick() -> Iterator[Job]:
    for operation in (*MAIN, "self_distance"):
        yield Job("rby1a", "float64", operation, (1, REFERENCE), ONE_BY_ONE)


def _standard() -> Iterator[Job]:
    for operation in OPERATIONS:
        peers = NAMES if operation in MAIN else (*ONE_BY_ONE, "frax")
        yield Job("rby1a", "float64", operation, BATCHES if operation in FLAT else (REFERENCE,), peers)
        if OPERATIONS[operation].ratio:
            yield Job("rby1a", "float32", operation, (REFERENCE,), (*ONE_BY_ONE, "frax"))
    for robot in ("panda", "g1", "talos"):
        for operation in MAIN:
            yield Job(robot, "float64", operation, (REFERENCE,), (*ONE_BY_ONE, "frax"))
    for robot in (*CHAINS, *TREES):
        # Unrolled code for the largest robots takes a minute to compile: of the trees one operation is enough.
        for operation in ("rnea",) if robot in TREES else ("rnea", "aba"):
            yield Job(robot, "float64", operation, (REFERENCE,), ("pinocchio",))


def _full() -> Iterator[Job]:
    for robot in ROBOTS:
        for dtype in DTYPES:
            for operation in OPERATIONS:
                yield Job(robot, dtype, operation, BATCHES, NAMES)


def _sized(jobs: Iterable[Job]) -> Iterator[Job]:
    """Without batches too large for the operation; robots and dtypes together, for each is a process."""
    for job in sorted(jobs, key=lambda x: (ROBOTS.index(x.robot), DTYPES.index(x.dtype))):
        largest = OPERATIONS[job.operation].largest or BATCHES[-1]
        yield Job(job.robot, job.dtype, job.operation, tuple(b for b in job.batches if b <= largest), job.peers)


def peer_batches(job: Job) -> list[int]:
    """Sizes for libraries in JAX: those that go through plain `vmap`, but for single configurations."""
    return [b for b in job.batches if 1 < b < MAPPED_FROM]
