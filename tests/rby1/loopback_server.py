"""A robot that listens on 127.0.0.1, writes down what it is sent, and answers what it is told to.

Runs as a process of its own, because some calls of the SDK's client hold the interpreter's lock: `python -m
tests.rby1.loopback_server [model.urdf [a|m|ub [port]]]`. With the file it is the robot of `loopback_robot.py`, which
has a model and a state and answers every service. It prints its port, then one line of JSON for each event.

A command of priority 7 is answered with the bytes that stand in hexadecimal in the next line of its standard input;
one of priority 9 runs until it is cancelled; any other is finished at once. A stream of priority 8 breaks at its third
message.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING

from . import loopback_robot as robots

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc

_lock = threading.Lock()
_API = "/rb.api."


def _report(**event: object) -> None:
    with _lock:
        print(json.dumps(event), flush=True)


def _priority(request: bytes) -> int:
    return robots.fields(request).get(3, 0)


class _Services:
    """Every call of the SDK's client, by its path."""

    def __init__(self, robot: robots.Robot | None) -> None:
        self.robot = robot

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        import grpc

        name = str(details.method).removeprefix(_API)
        if name == "RobotCommandService/RobotCommand":
            return grpc.unary_unary_rpc_method_handler(self.command)
        if name == "RobotCommandService/RobotCommandStream":
            return grpc.stream_stream_rpc_method_handler(self.stream)
        if name == "SerialService/OpenSerialStream":
            return grpc.stream_stream_rpc_method_handler(self.serial)
        if self.robot and name in self.robot.streams:
            return grpc.unary_stream_rpc_method_handler(self._reported(name, self.robot.streams[name]))
        answer = self.robot and self.robot.unary.get(name)
        if self.robot is None and name not in ("PingService/Ping", "RobotInfoService/GetRobotInfo"):
            return None
        return grpc.unary_unary_rpc_method_handler(self._reported(name, answer or (lambda request: b"")))

    @staticmethod
    def _reported(name, answer):
        def handle(request: bytes, context: grpc.ServicerContext):
            _report(event="call", name=name, request=robots.without_header(request).hex())
            return answer(request)

        return handle

    def command(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        whole_body = robots.fields(robots.fields(request).get(2, b"")).get(2, b"")
        fast = robots.fields(whole_body).get(3)
        if self.robot and fast is not None:
            port = robots.fields(fast)[2]
            robots.control(port, len(self.robot.joints), lambda x: _report(event="call", name="udp", request=x.hex()))
            return robots.FINISHED_OK
        _report(event="command", request=request.hex())
        if _priority(request) == 9:
            return self._run(context)
        return bytes.fromhex(sys.stdin.readline()) if _priority(request) == 7 else robots.FINISHED_OK

    def _run(self, context: grpc.ServicerContext) -> bytes:
        """Until the call or, at the robot, control is cancelled."""
        ended = threading.Event()
        if not context.add_callback(ended.set):
            ended.set()
        running = self.robot.running if self.robot else set()
        running.add(ended)
        ended.wait(20)
        running.discard(ended)
        _report(event="cancelled")
        return robots.CANCELLED

    def stream(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        dying = False
        for count, request in enumerate(requests, 1):
            _report(event="stream", request=request.hex())
            dying = dying or _priority(request) == 8
            if dying and count == 3:
                raise RuntimeError("the thread of the stream dies")
            yield robots.progress(count) if self.robot else robots.FINISHED_OK

    def serial(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """Connects, and echoes what is written."""
        for request in requests:
            _report(event="call", name="serial", request=robots.without_header(request).hex())
            written = robots.fields(request).get(3)
            if written is None:
                yield robots.message((2, robots.message((1, True), (2, "open"))))
            else:
                yield robots.message((3, robots.message((1, True))))
                yield robots.message((4, robots.fields(written).get(1, b"")))


def main() -> None:
    import grpc  # not above: whoever collects tests without grpcio imports this module

    robot = None
    if len(sys.argv) > 1:
        robot = robots.Robot(sys.argv[2] if len(sys.argv) > 2 else "a", Path(sys.argv[1]).read_bytes())
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((type("Services", (_Services, grpc.GenericRpcHandler), {})(robot),))
    port = server.add_insecure_port(f"127.0.0.1:{sys.argv[3] if len(sys.argv) > 3 else 0}")
    server.start()
    _report(event="listening", port=port)
    server.wait_for_termination(600)


if __name__ == "__main__":
    main()
