"""The Rainbow Robotics RB-Y1: what its SDK offers, in JAX where it can be, and as plain Python where it has to be."""
