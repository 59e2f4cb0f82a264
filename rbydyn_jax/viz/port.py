"""Where a server can listen: viser waits forever for one that cannot."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import Any

from .._check import check_integer
from .._errors import ArgumentError, DtypeError

_LAST = 65535
_TRIED = 1000  # ports, as viser does
_TAKEN = (errno.EADDRINUSE, errno.EACCES)  # by another program, or kept for the administrator


def free_port(host: Any, port: Any) -> int:
    """The first port from `port` on at which a server can listen at `host`; 0, which is any, stays 0.

    Raises:
        ArgumentError: The port is not from 0 to 65535, none from there on is free, or the host is none of this machine.
        DtypeError: `host` is not a string, or `port` not an integer.
    """
    port = check_integer(port, "port")
    if not 0 <= port <= _LAST:
        raise ArgumentError(f"port must be from 0 to {_LAST}, got {port}")
    if not isinstance(host, str):
        raise DtypeError(f"host must be a string, got {type(host).__name__}")
    tried = range(port, min(port + _TRIED, _LAST + 1)) if port else range(1)
    for found in tried:
        try:
            _listen(host, found)
        except (OSError, ValueError) as error:  # ValueError: of a host that is no name, such as one with NUL
            if getattr(error, "errno", None) not in _TAKEN:
                raise ArgumentError(f"host {host!r}, port {found}: no server can listen there: {error}") from error
        else:
            return found
    raise ArgumentError(f"host {host!r}, port {port}: neither this port nor one of the next is free")


def _listen(host: str, port: int) -> None:
    """Listens at all addresses of a host, for a moment."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    with contextlib.ExitStack() as opened:
        for family, kind, protocol, _, address in set(found):
            listener = opened.enter_context(socket.socket(family, kind, protocol))
            if os.name == "posix":  # elsewhere it would take the port of another program
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen()
