"""``rbydyn check``: everything that is wrong or doubtful in robot files, one line each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from .._errors import Finding, ParseError, RbydynError
from .source import find


def findings_of(robot: str) -> tuple[Finding, ...]:
    """All findings of a robot in the order of the lines of its file; those of an unreadable file, too."""
    try:
        return find(robot).describe().findings.report()
    except ParseError as error:
        return error.findings
    except RbydynError as error:
        return (Finding("error", str(error), source=robot),)


def check(robots: Sequence[str], *, as_json: bool = False, strict: bool = False) -> int:
    """Prints the findings of each file and a summary.

    Args:
        robots: Files or names.
        as_json: Whether to print one JSON document instead of lines.
        strict: Whether warnings count.

    Returns:
        2 if there is an error, 1 if there is a warning and `strict` is set, 0 otherwise.
    """
    found = {robot: findings_of(robot) for robot in robots}
    levels = [finding.level for findings in found.values() for finding in findings]
    count = {level: levels.count(level) for level in ("error", "warning", "note")}
    if as_json:
        files = [{"file": robot, "findings": [asdict(f) for f in fs]} for robot, fs in found.items()]
        print(json.dumps({"files": files, "count": count}, indent=2))
    else:
        for finding in (f for fs in found.values() for f in fs):
            print(finding)
        summary = ", ".join(f"{n} {level}{'' if n == 1 else 's'}" for level, n in count.items())
        print(f"{len(found)} file{'' if len(found) == 1 else 's'} checked: {summary}")
    return 2 if count["error"] else int(strict and count["warning"] > 0)
