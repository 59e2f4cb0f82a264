"""Messages of ROS 2 as configurations, velocities and forces, and back; no ROS is needed.

A message is any object with the fields of its definition (`sensor_msgs/msg/JointState`), or a mapping of them. What is
made is a dictionary of the fields, or fills a message that is given. Arrays are NumPy's.
"""

from .joint_states import JointValues as JointValues
from .joint_states import from_joint_state as from_joint_state
from .joint_states import to_joint_state as to_joint_state
from .poses import from_odometry as from_odometry
from .poses import from_pose as from_pose
from .poses import to_odometry as to_odometry
from .poses import to_pose as to_pose
from .trajectories import JointMotion as JointMotion
from .trajectories import from_joint_trajectory as from_joint_trajectory
from .trajectories import to_joint_trajectory as to_joint_trajectory
