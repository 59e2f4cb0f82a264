"""What the robot of `loopback_server.py` answers: the services that scripts for the SDK call, as bytes of protobuf.

Everything that it reports is fixed: no clocks and no chance, so that two runs of a script print the same.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

# The number of joints, by the model's name; the first stand for wheels, the last two for the head.
JOINTS = {"a": (2, 6), "m": (4, 6), "ub": (0, 2)}
FINISHED_OK = bytes([0x12, 4, 0x50, 3, 0x58, 1])  # Response{feedback 2: Feedback{status 10: 3, finish_code 11: 1}}
CANCELLED = bytes([0x12, 4, 0x50, 3, 0x58, 2])
DYING_RATE = 13.0  # [Hz] a stream of this rate breaks after two messages
SUCCESS = bytes([0x10, 1])  # status 2: success

Value = bytes | str | bool | int | float | list[float]


def message(*fields: tuple[int, Value]) -> bytes:
    """A message of fields in that order: text and bytes, integers as varints, doubles, packed doubles."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (1 << 64) - 1)
    if isinstance(value, list):
        value = struct.pack(f"<{len(value)}d", *value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(x: int) -> bytes:
    low = x & 127
    return bytes([low | 128]) + _varint(x >> 7) if x > 127 else bytes([low])


def fields(data: bytes) -> dict[int, Any]:
    """The last value of each field: bytes, integer or double."""
    found, at = {}, 0
    while at < len(data):
        key, at = _read_varint(data, at)
        size = {1: 8, 5: 4}.get(key & 7, 0)
        if key & 7 != 1 and key & 7 != 5:
            size, at = _read_varint(data, at)
        if key & 7 == 0:
            found[key >> 3] = size
            continue
        found[key >> 3] = struct.unpack("<d", data[at : at + 8])[0] if key & 7 == 1 else data[at : at + size]
        at += size
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def without_header(request: bytes) -> bytes:
    """A request without its header, which has a time stamp."""
    if request[:1] == b"\x0a":
        size, at = _read_varint(request, 1)
        return request[at + size :]
    return request


def failed(text: str) -> bytes:
    """A response header with an error."""
    return message((1, message((4, message((1, 3), (2, text))))))


def time_stamp(seconds: int, nanos: int = 0) -> bytes:
    return message((1, seconds), (2, nanos))


class Robot:
    """One robot: its joints, its switches, and a method for each call, by the name of the service and the call.

    Args:
        kind: ``"a"``, ``"m"`` or ``"ub"``.
        urdf: Text of its model.
    """

    def __init__(self, kind: str, urdf: bytes) -> None:
        wheels, torso = JOINTS[kind]
        self.kind, self.urdf = kind, urdf
        self.joints = [f"wheel_{i}" for i in range(wheels)] + [f"torso_{i}" for i in range(torso)]
        self.joints += [f"{side}_arm_{i}" for side in ("right", "left") for i in range(7)] + ["head_0", "head_1"]
        self.powers = {"5v": False, "12v": False, "24v": False, "48v": False}
        self.servo = False
        self.control = 3  # a minor fault, to be reset
        self.scale = 1.0
        self.parameters = {"joint_position_command.cutoff_frequency": '{"value":3}', "model_name": '{"value":"a"}'}
        self.gains = {name: [10 + i, 2 * i, 30 + i] for i, name in enumerate(self.joints)}
        self.clock = (1_700_000_000, "UTC")
        self.running: set[threading.Event] = set()
        # What is not here is answered with an empty message.
        self.unary: dict[str, Callable[[bytes], bytes]] = {
            "PingService/Ping": lambda r: message((1, message((2, time_stamp(5)), (3, time_stamp(5, 1000))))),
            "RobotInfoService/GetRobotInfo": lambda r: message((2, self.info())),
            "RobotInfoService/GetRobotModel": lambda r: message((2, self.urdf)),
            "RobotStateService/GetRobotState": lambda r: self.state(),
            "RobotStateService/GetControlManagerState": lambda r: message((2, self.manager())),
            "PowerService/PowerCommand": self.power,
            "PowerService/JointCommand": self.joint,
            "JointOperationService/ServoOff": lambda r: SUCCESS,
            "JointOperationService/BrakeEngage": lambda r: SUCCESS,
            "JointOperationService/BrakeRelease": lambda r: SUCCESS,
            "JointOperationService/HomeOffsetReset": lambda r: SUCCESS,
            "JointOperationService/GetPositionPIDGain": self.get_gain,
            "JointOperationService/SetPositionPIDGain": self.set_gain,
            "ControlManagerService/ControlManagerCommand": self.manage,
            "ControlManagerService/CancelControl": self.cancel,
            "ControlManagerService/GetTimeScale": lambda r: message((2, self.scale)),
            "ControlManagerService/SetTimeScale": self.set_scale,
            "ControlManagerService/WaitForControlReady": lambda r: message((3, True)),
            "ParameterService/GetParameterList": lambda r: message(
                *((2, message((1, name), (2, 1))) for name in self.parameters)
            ),
            "ParameterService/GetParameter": lambda r: message((2, self.parameters.get(_text(r, 2), "{}"))),
            "ParameterService/SetParameter": self.set_parameter,
            "ParameterService/ResetParameter": self.reset_parameter,
            "ParameterService/FactoryResetParameter": self.reset_parameter,
            "ParameterService/ResetParameterToDefault": self.reset_parameter,
            "LogService/GetLastLog": lambda r: message(*((2, _log(i)) for i in range(min(fields(r).get(2, 0), 7)))),
            "LogService/GetFaultLogList": lambda r: message((2, "faults/1.csv"), (2, "faults/2.csv")),
            "SystemService/GetSystemTime": self.get_time,
            "SystemService/SetSystemTime": self.set_time,
            "SystemService/ScanWifi": lambda r: message(
                (2, message((1, "workshop"), (2, -40), (3, True))), (2, message((1, "guests"), (2, -70)))
            ),
            "SystemService/ConnectWifi": lambda r: message((2, True)),
            "SystemService/GetWifiStatus": lambda r: message((2, "workshop"), (3, "10.0.0.7"), (5, "10.0.0.1"), (6, 1)),
            "SerialService/GetSerialDeviceList": lambda r: message(
                (2, message((1, "/dev/ttyS0"), (2, "port 0"))), (2, message((1, "/dev/ttyUSB1"), (2, "adapter")))
            ),
        }
        self.streams: dict[str, Callable[[bytes], Iterator[bytes]]] = {
            "RobotStateService/GetRobotStateStream": lambda r: self.several(r, self.state),
            "LogService/GetLogStream": lambda r: self.several(r, lambda: message((2, _log(1)), (2, _log(4)))),
            "FileService/DownloadFile": lambda r: iter([message((2, b"time,fault\n")), message((2, b"1,none\n"))]),
        }

    # -- what it is and how it is

    def info(self) -> bytes:
        """RobotInfo."""
        version = [(17, "1.2.3"), (18, "0.10.0"), (12, self.kind.upper()), (16, "1.2"), (4, len(self.joints))]
        joints = [(5, message((1, n), (2, True), (3, "motor"), (4, "7.1"))) for n in self.joints]
        wheels, torso = JOINTS[self.kind]
        arms = wheels + torso
        places = {6: (0, wheels), 7: (wheels, arms + 14), 8: (arms + 14, arms + 16), 13: (wheels, arms)}
        places |= {14: (arms, arms + 7), 15: (arms + 7, arms + 14)}
        indices = [(number, bytes(range(*span))) for number, span in places.items()]
        powers = [(3, message((1, name))) for name in self.powers]
        return message(*version, (2, b""), *powers, (11, message((1, "button"))), *joints, *indices)

    def state(self) -> bytes:
        """GetRobotStateResponse with velocities 0.32, 0.321, ..., currents 0.33, ... and so on."""
        n = len(self.joints)
        numbers = {f: [0.01 * f + 0.001 * i for i in range(n)] for f in (30, 32, 33, 34, 42, 44)}
        bent = {"right_arm_1": -0.4, "right_arm_3": -1.2, "left_arm_3": -1.3}  # these cannot be near zero
        numbers[31] = numbers[41] = [bent.get(name, 0.0) + 0.003 * i + 0.001 for i, name in enumerate(self.joints)]
        joint = message((1, self.servo), (2, 1), (9, time_stamp(0, 1000000)), (11, 0.25), (30, 31))
        flange = message((1, time_stamp(0, 5)), (2, _vector(1.0)), (3, _vector(9.0)), (4, True), (5, 12))
        sensor = message((1, time_stamp(0, 6)), (2, _vector(3.0)), (3, _vector(0.5)))
        gaps = (("link_torso_2", "link_right_arm_5", 0.08), ("link_torso_4", "link_left_arm_3", 0.011))
        collisions = [
            (47, message((1, a), (2, b), (3, _vector(0.1)), (4, _vector(0.2)), (5, gap))) for a, b, gap in gaps
        ]
        robot = message(
            (1, time_stamp(1_700_000_000, 500)),
            (2, message((1, 12.5), (2, 40.0), (3, 100.0), (4, 50.0))),
            (3, message((1, 48.5), (2, 1.25), (3, 80.0))),
            *((4, message((1, 1 if on else 2), (2, 48.0))) for on in self.powers.values()),
            *((5, joint) for _ in self.joints),
            *((6, flange), (7, flange), (8, sensor), (9, sensor), (100, message((1, 1)))),
            *numbers.items(),
            (43, bytes([1] * n)),
            (45, message((1, message((1, 0.5), (2, 0.25))), (2, 0.125))),
            (46, _vector(0.4)),
            *collisions,
            (48, bytes([30] * n)),
        )
        return message((2, robot), (3, self.manager()))

    def manager(self) -> bytes:
        """ControlManagerState."""
        return message((1, self.control), (2, self.scale), (3, 1), (4, bytes(range(3))))

    def several(self, request: bytes, answer: Callable[[], bytes]) -> Iterator[bytes]:
        """Three messages at once; the thread that sends them dies before the third at one rate."""
        for i in range(3):
            if i == 2 and fields(request).get(2) == DYING_RATE:
                raise RuntimeError("the thread of the stream dies")
            yield answer()

    # -- switches

    def power(self, request: bytes) -> bytes:
        on, name = fields(request)[3] == 1, _text(request, 2)
        self.powers = {n: on if name in (n, ".*") else was for n, was in self.powers.items()}
        return SUCCESS

    def joint(self, request: bytes) -> bytes:
        self.servo = self.servo or fields(request)[3] == 1
        return SUCCESS

    def manage(self, request: bytes) -> bytes:
        self.control = {1: 2, 2: 1, 3: 1}[fields(request)[2]]
        return message((2, self.manager()))

    def cancel(self, request: bytes) -> bytes:
        for ended in tuple(self.running):
            ended.set()
        return b""

    def set_scale(self, request: bytes) -> bytes:
        self.scale = fields(request).get(2, 0.0)
        return message((2, self.scale))

    def set_parameter(self, request: bytes) -> bytes:
        name, value = _text(request, 2), _text(request, 3)
        if '"value":1000' in value:
            return failed("out of range")
        self.parameters[name] = value
        return b""

    def reset_parameter(self, request: bytes) -> bytes:
        self.parameters[_text(request, 2)] = '{"value":3}'
        return b""

    def get_gain(self, request: bytes) -> bytes:
        given = fields(request)
        parts = {1: "torso", 2: "right_arm", 3: "left_arm", 4: "head"}
        part = given[2].decode() if 2 in given else parts[given[3]]
        gains = [gain for name, gain in self.gains.items() if name.startswith(part)]
        return message(*((2, message((1, time_stamp(3)), *zip((2, 3, 4), gain, strict=True))) for gain in gains))

    def set_gain(self, request: bytes) -> bytes:
        given, name = fields(request), _text(request, 2)
        old = self.gains[name]
        self.gains[name] = [fields(given[i + 3]).get(1, 0) if i + 3 in given else old[i] for i in range(3)]
        return SUCCESS

    def get_time(self, request: bytes) -> bytes:
        seconds, zone = self.clock
        return message((2, time_stamp(seconds)), (3, zone), (4, f"noon in {zone}"))

    def set_time(self, request: bytes) -> bytes:
        given = fields(request)
        self.clock = (fields(given[2]).get(1, 0), given.get(3, b"UTC").decode())
        return b""


def progress(count: int) -> bytes:
    """RobotCommandResponse of a running command of the right arm, nearer to its target at every request."""
    error = message((1, 0.02 / count), (2, 0.05 / count))
    arm = message((4, message((2, error), (3, [0.5, 0.25]), (4, 1.5), (5, 0.125))))
    body = message((6, message((2, arm))))
    return message((2, message((3, message((3, body))), (10, 2))))


def control(port: int, joints: int, report: Callable[[bytes], None]) -> None:
    """The fast loop over UDP: sends a state, waits for the answer and reports it, until one calls itself the last."""
    time.sleep(0.3)  # a robot takes time to start, too
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(5)
        for cycle in range(300):
            link.sendto(_cycle(0.002 * cycle, joints), ("127.0.0.1", port))
            answer = link.recv(4096)
            report(answer)
            if answer[-4]:
                return


def _cycle(t: float, n: int) -> bytes:
    values = [0.1 * k + 0.01 * i for k in range(4) for i in range(n)]
    body = bytes([n]) + struct.pack("<d", t) + bytes([1] * n) + struct.pack(f"<{4 * n}d", *values)
    packet = b"\x24\x24" + struct.pack("<H", len(body) + 3) + body
    return packet + bytes([_checksum(packet)]) + b"\x25\x25"


def _checksum(data: bytes) -> int:
    """CRC-8 with polynomial 0x31 and start 0xff."""
    crc = 0xFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x31 if crc & 0x80 else crc << 1) & 0xFF
    return crc


def _text(request: bytes, number: int) -> str:
    return fields(request).get(number, b"").decode()


def _vector(x: float) -> bytes:
    return message((1, x), (2, x + 1.0), (3, x + 2.0))


def _log(i: int) -> bytes:
    return message((1, time_stamp(10 + i)), (4, time_stamp(1_700_000_000 + i)), (2, i % 6), (3, f"line {i}"))
