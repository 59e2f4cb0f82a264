"""Starts and ends the process of `loopback_server.py`."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path

PATIENCE = 20.0  # seconds until a test gives up


class Server:
    """The robot's side: a process, and what it reports; with the path of a URDF it is a robot of that model.

    Args:
        *arguments: Path of the URDF, the model's name and the port.
    """

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.rby1.loopback_server", *arguments],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # grpc prints there what its threads die of
            text=True,
        )
        self.events: queue.Queue[dict] = queue.Queue()  # commands, streams and what becomes of them
        self.calls: list[tuple[str, str]] = []  # all calls in their order: name and request without its header
        threading.Thread(target=self._read, daemon=True).start()
        self.address = f"127.0.0.1:{self.next('listening')['port']}"

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            event = json.loads(line)
            if "request" in event:
                self.calls.append((event.get("name", event["event"]), event["request"]))
            if event["event"] != "call":
                self.events.put(event)

    def next(self, event: str) -> dict:
        """The next report, which must be of one kind."""
        got = self.events.get(timeout=PATIENCE)
        assert got["event"] == event
        return got

    def received(self) -> bytes:
        return bytes.fromhex(self.next("command")["request"])

    def answer(self, response: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(response.hex() + "\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()
