"""Settings as ROS 2 parameters."""

from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from softcr_runtime.settings import Setting


def parameter_descriptor(setting: Setting) -> ParameterDescriptor:
    """Description, unit and range of a setting, as ROS tools show them."""
    unit = f" [{setting.unit}]" if setting.unit else ""
    descriptor = ParameterDescriptor(
        description=setting.description + unit, additional_constraints=setting.allowed
    )
    if setting.low is not None and setting.high is not None:
        if setting.kind == "integer":
            limits = IntegerRange(from_value=int(setting.low), to_value=int(setting.high))
            descriptor.integer_range = [limits]
        else:
            limits = FloatingPointRange(from_value=float(setting.low), to_value=float(setting.high))
            descriptor.floating_point_range = [limits]
    return descriptor


def as_declared(setting: Setting, value: Any) -> Any:
    """A value as its parameter is declared: a whole number may be given for a number."""
    if setting.kind != "number":
        return value
    return [float(element) for element in value] if setting.is_list else float(value)
