"""A robot that listens on 127.0.0.1, writes down what it is sent, and answers what it is told to.

Runs as a process of its own, because some calls of the SDK's client hold the interpreter's lock: `python
loopback_server.py [model.urdf]`. With the file it is a robot of 24 joints that knows its model and its state. It
prints its port, then one line of JSON for each event. A command of priority 7 is answered with the bytes that stand in
hexadecimal in the next line of its standard input; one of priority 9 runs until it is cancelled; any other is finished
at once.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
from concurrent import futures
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import grpc

_FINISHED_OK = bytes([0x12, 4, 0x50, 3, 0x58, 1])  # Response{feedback 2: Feedback{status 10: 3, finish_code 11: 1}}
_lock = threading.Lock()


def _report(**event: object) -> None:
    with _lock:
        print(json.dumps(event), flush=True)


def _priority(request: bytes) -> int:
    """Field 3, a varint, stands last and is below 128 here."""
    return request[-1] if len(request) > 1 and request[-2] == 0x18 else 0


def _command(request: bytes, context: grpc.ServicerContext) -> bytes:
    _report(event="command", request=request.hex())
    if _priority(request) == 9:
        ended = threading.Event()
        if not context.add_callback(ended.set):
            ended.set()
        ended.wait(20)
        _report(event="cancelled")
    return bytes.fromhex(sys.stdin.readline()) if _priority(request) == 7 else _FINISHED_OK


def _stream(requests, context: grpc.ServicerContext):
    for request in requests:
        _report(event="stream", request=request.hex())
        yield _FINISHED_OK


def _message(field: int, data: bytes) -> bytes:
    """A field of bytes of a message."""
    size = len(data)
    length = b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    key = field << 3 | 2
    return (bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])) + length + bytes([size]) + data


def _state() -> bytes:
    """GetRobotStateResponse with 24 joints, position 0.31, 0.311, ..., velocity 0.32, ... and so on."""
    numbers = {f: [0.01 * f + 0.001 * i for i in range(24)] for f in (30, 31, 32, 33, 34, 41, 42, 44)}
    joints = b"".join(_message(5, b"") for _ in range(24))
    vectors = b"".join(_message(f, struct.pack("<24d", *x)) for f, x in numbers.items())
    return _message(2, joints + vectors + _message(43, bytes([1] * 24))) + _message(3, b"")


def _states(request: bytes, context: grpc.ServicerContext):
    for _ in range(3):
        yield _state()


def _empty(request: bytes, context: grpc.ServicerContext) -> bytes:
    return b""


def main() -> None:
    import grpc  # not above: whoever collects tests without grpcio imports this module

    server = grpc.server(futures.ThreadPoolExecutor(8))
    handlers = {
        "RobotCommandService": {
            "RobotCommand": grpc.unary_unary_rpc_method_handler(_command),
            "RobotCommandStream": grpc.stream_stream_rpc_method_handler(_stream),
        },
        "PingService": {"Ping": grpc.unary_unary_rpc_method_handler(_empty)},
        "RobotInfoService": {"GetRobotInfo": grpc.unary_unary_rpc_method_handler(_empty)},
    }
    if len(sys.argv) > 1:
        with open(sys.argv[1], "rb") as file:
            model = _message(2, file.read())
        handlers["RobotInfoService"]["GetRobotModel"] = grpc.unary_unary_rpc_method_handler(lambda r, c: model)
        handlers["RobotStateService"] = {
            "GetRobotState": grpc.unary_unary_rpc_method_handler(lambda r, c: _state()),
            "GetRobotStateStream": grpc.unary_stream_rpc_method_handler(_states),
        }
    for service, methods in handlers.items():
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"rb.api.{service}", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    _report(event="listening", port=port)
    server.wait_for_termination(600)


if __name__ == "__main__":
    main()
