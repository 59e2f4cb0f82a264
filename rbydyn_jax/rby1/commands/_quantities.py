"""The quantities that fields of commands hold, each with its unit and its bounds."""

from __future__ import annotations

from typing import Annotated

from jax.typing import ArrayLike

from ._kinds import Bounds, Count, Flag, JointNames, JointVector, Number, Pose, Text, Vector

_LONGEST = 315_576_000_000.0  # what a Duration of Protocol Buffers holds [s]

# One number for each joint of the component.
Angles = Annotated[ArrayLike | None, JointVector(Bounds("rad", limit="position"))]
Rates = Annotated[ArrayLike | None, JointVector(Bounds("rad/s", limit="velocity"))]
RateLimits = Annotated[ArrayLike | None, JointVector(Bounds("rad/s", 0.0, above=True))]
AccelerationLimits = Annotated[ArrayLike | None, JointVector(Bounds("rad/s^2", 0.0, above=True))]
Stiffness = Annotated[ArrayLike | None, JointVector(Bounds("N m/rad", 0.0))]
TorqueLimits = Annotated[ArrayLike | None, JointVector(Bounds("N m", 0.0, above=True))]
JointWeights = Annotated[ArrayLike, JointVector(Bounds("", 0.0))]
AnglesSet = Annotated[ArrayLike, JointVector(Bounds("rad", limit="position"))]

# Vectors of a fixed size.
Point = Annotated[ArrayLike, Vector(Bounds("m"), 3)]
TranslationStiffness = Annotated[ArrayLike | None, Vector(Bounds("N/m", 0.0), 3)]
RotationStiffness = Annotated[ArrayLike | None, Vector(Bounds("N m/rad", 0.0), 3)]
PlanarVelocity = Annotated[ArrayLike, Vector(Bounds("m/s"), 2)]
PlanarAccelerationLimits = Annotated[ArrayLike, Vector(Bounds("m/s^2", 0.0, above=True), 2)]
Transform = Annotated[ArrayLike, Pose()]
TransformOrUnset = Annotated[ArrayLike | None, Pose()]

# Single numbers.
Time = Annotated[ArrayLike | None, Number(Bounds("s", 0.0, _LONGEST))]
JointDampingRatio = Annotated[ArrayLike | None, Number(Bounds("", 0.0, 1.0))]
CartesianDampingRatio = Annotated[ArrayLike | None, Number(Bounds("", 0.0, 1.5))]
Angle = Annotated[ArrayLike, Number(Bounds("rad", limit="position"))]
AngleDifference = Annotated[ArrayLike, Number(Bounds("rad"))]
RateLimit = Annotated[ArrayLike | None, Number(Bounds("rad/s", 0.0, above=True))]
AccelerationLimit = Annotated[ArrayLike | None, Number(Bounds("rad/s^2", 0.0, above=True))]
AngularRate = Annotated[ArrayLike, Number(Bounds("rad/s"))]
LinearVelocityLimit = Annotated[ArrayLike, Number(Bounds("m/s", 0.0, above=True))]
LinearVelocityLimitOrUnset = Annotated[ArrayLike | None, Number(Bounds("m/s", 0.0, above=True))]
AngularVelocityLimit = Annotated[ArrayLike, Number(Bounds("rad/s", 0.0, above=True))]
LinearAccelerationLimit = Annotated[ArrayLike | None, Number(Bounds("m/s^2", 0.0, above=True))]
AngularAccelerationLimit = Annotated[ArrayLike, Number(Bounds("rad/s^2", 0.0, above=True))]
Scaling = Annotated[ArrayLike, Number(Bounds("", 0.0, above=True))]
ScalingOrUnset = Annotated[ArrayLike | None, Number(Bounds("", 0.0, above=True))]
DistanceError = Annotated[ArrayLike | None, Number(Bounds("m", 0.0))]
AngleError = Annotated[ArrayLike | None, Number(Bounds("rad", 0.0))]
Weight = Annotated[ArrayLike, Number(Bounds("", 0.0))]
WeightOrUnset = Annotated[ArrayLike | None, Number(Bounds("", 0.0))]

# What is no number.
JointName = Annotated[str, Text("joint")]
JointNameOrUnset = Annotated[str | None, Text("joint")]
LinkName = Annotated[str, Text("link")]
LinkNameOrUnset = Annotated[str | None, Text("link")]
NamesOfJoints = Annotated[tuple[str, ...] | None, JointNames()]
Switch = Annotated[bool, Flag()]
SwitchOrUnset = Annotated[bool | None, Flag()]
Iterations = Annotated[int | None, Count()]
