"""What a robot is: topology, joints, numbers, configurations."""
