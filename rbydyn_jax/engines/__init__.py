"""Robots in Pinocchio, MuJoCo and rby1_sdk, and how far our results are from theirs.

`conventions` needs none of the engines; each of the other modules imports its own.
"""
