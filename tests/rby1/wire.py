"""The messages of the RB-Y1's commands as they go over the wire, as a table, and protobuf classes made of it.

The table says message, and for each field its number, name and type; `*` marks a repeated field. It is the vendor's
format as recorded from the SDK, and independent of the library under test.
"""

from __future__ import annotations

from typing import Any

from tests.helpers import oracle

oracle("google.protobuf")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

_TARGET = "1 ref_link_name string, 2 link_name string, 3 T SE3Pose"
_JOINT_TARGET = (
    "1 joint_name string, 2 target_position double, 3 velocity_limit DoubleValue, 4 acceleration_limit DoubleValue"
)
_ARM = (
    "2 joint_position_command JointPosition, 3 gravity_compensation_command GravityCompensation, "
    "4 cartesian_command Cartesian, 5 impedance_control_command Impedance"
)

REQUESTS = {
    "Duration": "1 seconds int64, 2 nanos int32",
    "DoubleValue": "1 value double",
    "BoolValue": "1 value bool",
    "Int32Value": "1 value int32",
    "Vec2": "1 x double, 2 y double",
    "Vec3": "1 x double, 2 y double, 3 z double",
    "Euler": "1 z double, 2 y double, 3 x double",
    "SE3Pose": "1 position Vec3, 3 euler Euler",
    "SE2Velocity": "1 linear Vec2, 2 angular double",
    "Header": "1 control_hold_time Duration",
    "Stop": "1 command_header Header",
    "JointPosition": "1 command_header Header, 2 minimum_time Duration, 3 position double*, 4 velocity_limit double*, "
    "5 acceleration_limit double*",
    "JointGroupPosition": "1 command_header Header, 2 joint_names string*, 3 minimum_time Duration, 4 "
    "position double*, "
    "5 velocity_limit double*, 6 acceleration_limit double*",
    "JointImpedance": "1 command_header Header, 2 minimum_time Duration, 3 position double*, 4 velocity_limit double*, "
    "5 acceleration_limit double*, 6 stiffness double*, 7 damping_ratio DoubleValue, 8 torque_limit double*",
    "JointVelocity": "1 command_header Header, 2 minimum_time Duration, 3 velocity double*, 4 "
    "acceleration_limit double*",
    "SE2VelocityCommand": "1 command_header Header, 2 minimum_time Duration, 3 velocity SE2Velocity, "
    "4 acceleration_limit SE2Velocity",
    "GravityCompensation": "1 command_header Header, 2 on bool",
    "Jog": "1 command_header Header, 2 joint_name string, 3 velocity_limit DoubleValue, "
    "4 acceleration_limit DoubleValue, 5 absolute_position double?, 6 relative_position double?, 7 one_step bool?",
    "CartesianTarget": f"{_TARGET}, 4 linear_velocity_limit DoubleValue, 5 angular_velocity_limit DoubleValue, "
    "6 acceleration_limit_scaling DoubleValue",
    "JointTarget": _JOINT_TARGET,
    "Cartesian": "1 command_header Header, 2 minimum_time Duration, 3 targets CartesianTarget*, "
    "4 stop_position_tracking_error DoubleValue, 5 stop_orientation_tracking_error DoubleValue, "
    "6 stop_joint_position_tracking_error DoubleValue, 10 joint_position_targets JointTarget*",
    "CartesianImpedanceTarget": f"{_TARGET}, 4 linear_velocity_limit DoubleValue, 5 angular_velocity_limit "
    "DoubleValue, "
    "6 linear_acceleration_limit DoubleValue, 7 angular_acceleration_limit DoubleValue",
    "JointLimit": "1 joint_name string, 2 lower double, 3 upper double",
    "Nullspace": "1 target_position double*, 2 weight double*, 3 k_p DoubleValue, 4 k_d DoubleValue, "
    "5 cost_weight DoubleValue",
    "CartesianImpedance": "1 command_header Header, 2 minimum_time Duration, 3 targets CartesianImpedanceTarget*, "
    "4 joint_position_targets JointTarget*, 5 stop_position_tracking_error DoubleValue, "
    "6 stop_orientation_tracking_error DoubleValue, 7 stop_joint_position_tracking_error DoubleValue, "
    "8 joint_stiffness double*, 9 joint_damping_ratio DoubleValue, 10 joint_torque_limit double*, "
    "11 joint_limits JointLimit*, 12 reset_reference BoolValue, 13 nullspace_joint_target Nullspace",
    "Impedance": "1 command_header Header, 3 reference_link_name string, 4 link_name string, 5 transformation SE3Pose, "
    "6 translation_weight Vec3, 7 rotation_weight Vec3, 8 damping_ratio DoubleValue",
    "WeightedTarget": f"{_TARGET}, 4 translation_weight double, 5 rotation_weight double",
    "WeightedCom": "1 ref_link_name string, 2 pose Vec3, 3 weight double",
    "WeightedJoint": "1 joint_name string, 2 target_position double, 3 weight double",
    "OptimalControl": "1 command_header Header, 2 cartesian_targets WeightedTarget*, "
    "3 center_of_mass_target WeightedCom, 4 joint_position_targets WeightedJoint*, "
    "5 velocity_limit_scaling DoubleValue, 6 velocity_tracking_gain DoubleValue, 7 stop_cost DoubleValue, "
    "8 min_delta_cost DoubleValue, 9 patience Int32Value, 10 acceleration_limit_scaling DoubleValue, "
    "11 error_scaling DoubleValue",
    "Arm": f"{_ARM}, 6 joint_impedance_control_command JointImpedance, "
    "7 cartesian_impedance_control_command CartesianImpedance",
    "Torso": f"{_ARM}, 6 optimal_control_command OptimalControl, 7 joint_impedance_control_command JointImpedance, "
    "8 cartesian_impedance_control_command CartesianImpedance, 9 joint_group_position_command JointGroupPosition",
    "BodyComponents": "2 right_arm_command Arm, 3 left_arm_command Arm, 4 torso_command Torso",
    "Body": "2 joint_position_command JointPosition, 3 optimal_control_command OptimalControl, "
    "4 gravity_compensation_command GravityCompensation, 5 cartesian_command Cartesian, "
    "6 body_component_based_command BodyComponents, 7 joint_impedance_control_command JointImpedance, "
    "8 cartesian_impedance_control_command CartesianImpedance",
    "Mobility": "2 joint_velocity_command JointVelocity, 3 se2_velocity_command SE2VelocityCommand",
    "Head": "2 joint_position_command JointPosition",
    "Components": "2 mobility_command Mobility, 3 body_command Body, 4 head_command Head",
    "WholeBody": "2 stop_command Stop",
    "RobotCommand": "2 whole_body_command WholeBody, 3 component_based_command Components, 4 jog_command Jog",
    "Request": "2 robot_command RobotCommand, 3 priority int32",
}
FEEDBACKS = {
    "Header": "1 finished bool",
    "PoseError": "1 position_error double, 2 orientation_error double",
    "SpringError": "1 position_error double, 2 rotation_error double",
    "Plain": "1 command_header Header",
    "Jog": "1 command_header Header, 2 target_joint_name string",
    "JointPosition": "1 command_header Header, 2 time_based_progress double, 3 position_based_progress double",
    "JointGroupPosition": "1 command_header Header, 2 joint_indices int32*, 3 time_based_progress double, "
    "4 position_based_progress double",
    "JointImpedance": "1 command_header Header, 2 set_position double*, 3 error double*",
    "Cartesian": "1 command_header Header, 2 se3_pose_tracking_errors PoseError*, "
    "3 joint_position_tracking_errors double*, 4 remain_time double, 5 manipulability double",
    "CartesianImpedance": "1 command_header Header, 2 set_position double*, 3 remain_time double, "
    "4 manipulability double",
    "Impedance": "1 command_header Header, 2 tracking_error SpringError",
    "OptimalControl": "1 command_header Header, 2 total_cost double, 3 cartesian_costs double*, "
    "4 center_of_mass_cost double, 5 joint_position_costs double*",
    "Arm": "1 command_header Header, 2 joint_position_command JointPosition, 3 gravity_compensation_command Plain, "
    "4 cartesian_command Cartesian, 5 impedance_control_command Impedance, "
    "6 joint_impedance_control_command JointImpedance, 7 cartesian_impedance_control_command CartesianImpedance",
    "Torso": "1 command_header Header, 2 joint_position_command JointPosition, 3 gravity_compensation_command Plain, "
    "4 cartesian_command Cartesian, 5 impedance_control_command Impedance, 6 optimal_control_command OptimalControl, "
    "7 joint_impedance_control_command JointImpedance, 8 cartesian_impedance_control_command CartesianImpedance, "
    "9 joint_group_position_command JointGroupPosition",
    "BodyComponents": "1 command_header Header, 2 right_arm_command Arm, 3 left_arm_command Arm, 4 torso_command Torso",
    "Body": "1 command_header Header, 2 joint_position_command JointPosition, 3 optimal_control_command "
    "OptimalControl, "
    "4 gravity_compensation_command Plain, 5 cartesian_command Cartesian, "
    "6 body_component_based_command BodyComponents, 7 joint_impedance_control_command JointImpedance, "
    "8 cartesian_impedance_control_command CartesianImpedance",
    "Mobility": "1 command_header Header, 2 joint_velocity_command Plain, 3 se2_velocity_command Plain",
    "Head": "1 command_header Header, 2 joint_position_command JointPosition",
    "Components": "1 command_header Header, 2 mobility_command Mobility, 3 body_command Body, 4 head_command Head",
    "WholeBody": "1 command_header Header, 2 stop_command Plain",
    "Feedback": "1 command_header Header, 2 whole_body_command WholeBody, 3 component_based_command Components, "
    "4 jog_command Jog, 10 status int32, 11 finish_code int32",
    "Response": "2 feedback Feedback",
}


def message_classes(table: dict[str, str]) -> dict[str, Any]:
    """Protobuf classes of a table; a type that is no message of it is a scalar, `?` makes its presence known."""
    file = descriptor_pb2.FileDescriptorProto(name="wire.proto", package="wire", syntax="proto3")
    for name, fields in table.items():
        message = file.message_type.add(name=name)
        for row in fields.split(","):
            number, field_name, kind = row.split()
            field = message.field.add(name=field_name, number=int(number))
            field.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            if kind.endswith("?"):
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field_name}")
            kind = kind.rstrip("*?")
            if kind in table:
                field.type, field.type_name = field.TYPE_MESSAGE, f".wire.{kind}"
            else:
                field.type = getattr(field, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"wire.{name}")) for name in table}
