# PYTHON_ARGCOMPLETE_OK
"""The command ``rbydyn``: check, describe, move, convert, measure, compare and show robot files."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence

from .._errors import MissingExtraError, ParseError, RbydynError
from .parser import make_parser

_BROKEN_PIPE = 141  # as the shell counts it: 128 and the number of the signal


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: The words after ``rbydyn``; default is those of the process.

    Returns:
        The exit code: 0 if all is well, 1 if a result is not good enough or there are warnings under ``--strict``, 2 if
        an input is wrong, 141 if the reader of the output has gone, such as ``head``.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names that the encoding does not have
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # such as a full disk
            print(f"rbydyn: error: {error}", file=sys.stderr)
        if sys.stdout is not None:
            with contextlib.suppress(OSError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())  # for what is still to be flushed
        return _BROKEN_PIPE if isinstance(error, BrokenPipeError) else 2


def _run(arguments: Sequence[str] | None) -> int:
    try:
        parser = make_parser()
        if "_ARGCOMPLETE" in os.environ:  # set by the shell while it completes a line
            _complete(parser)
        options = parser.parse_args(arguments)
        return options.run(options)
    except BrokenPipeError:
        raise
    except ParseError as error:
        print(error, file=sys.stderr)
    except (RbydynError, OSError) as error:
        print(f"rbydyn: error: {error}", file=sys.stderr)
    return 2


def _complete(parser: argparse.ArgumentParser) -> None:
    try:
        import argcomplete
    except ImportError:
        raise MissingExtraError("argcomplete", "completion", "the completion of commands") from None
    argcomplete.autocomplete(parser)
