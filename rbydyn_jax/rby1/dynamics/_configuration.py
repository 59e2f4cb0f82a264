"""The configuration from which a robot is built."""

from __future__ import annotations

from dataclasses import dataclass

from ._links import Link
from ._mobility import MobileBase


@dataclass(eq=False)
class RobotConfiguration:
    """Name, base link and mobile base of a robot; all three can be changed before the robot is built.

    Args:
        name: Name of the robot.
        base_link: The link from which on the robot is taken.
        mobile_base: Its wheels, or None.
    """

    name: str = ""
    base_link: Link | None = None
    mobile_base: MobileBase | None = None

    def __repr__(self) -> str:
        base = "None" if self.base_link is None else self.base_link.name
        return f"RobotConfiguration(\n  name={self.name!r},\n  base_link={base!r},\n  mobile_base={self._kind}\n)"

    def __str__(self) -> str:
        base = "None" if self.base_link is None else self.base_link.name
        return f"RobotConfiguration({self.name}, base={base}, mobile={self._kind})"

    @property
    def _kind(self) -> str:
        return "None" if self.mobile_base is None else repr(self.mobile_base.type)
