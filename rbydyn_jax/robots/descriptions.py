"""The robots that come with the library as plain data."""

from __future__ import annotations

from .classics import describe_double_pendulum as describe_double_pendulum
from .classics import describe_panda_like as describe_panda_like
from .classics import describe_pendulum as describe_pendulum
from .classics import describe_two_link_arm as describe_two_link_arm
from .rby1 import describe_rby1a as describe_rby1a
from .rby1 import describe_rby1m as describe_rby1m
from .rby1 import describe_rby1ub as describe_rby1ub
