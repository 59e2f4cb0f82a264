"""Kinematics and dynamics of trees: one algorithm a module."""
