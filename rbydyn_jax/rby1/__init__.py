"""Everything for the Rainbow Robotics RB-Y1: what stands in for its SDK, and what talks to the robot through it."""
