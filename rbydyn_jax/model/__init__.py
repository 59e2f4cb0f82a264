"""The robot model: topology, joints, parameters, configurations."""
