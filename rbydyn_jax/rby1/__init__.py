"""Everything for the Rainbow Robotics RB-Y1: one subpackage for each part of the vendor's SDK."""
