# PYTHON_ARGCOMPLETE_OK
"""The command ``rbydyn``: check, describe, move, convert, measure, compare and show robot files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .._errors import ParseError, RbydynError
from .parser import make_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: The words after ``rbydyn``; default is those of the process.

    Returns:
        The exit code: 0 if all is well, 1 if a result is not good enough or there are warnings under ``--strict``, 2 if
        an input is wrong.
    """
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # set by the shell while it completes a line
        import argcomplete

        argcomplete.autocomplete(parser)
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except ParseError as error:
        print(error, file=sys.stderr)
    except (RbydynError, OSError) as error:
        print(f"rbydyn: error: {error}", file=sys.stderr)
    return 2
