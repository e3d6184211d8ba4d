"""Settings as ROS 2 parameters."""

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from softcr_runtime.settings.node_settings import Setting

_CHANGES = "; can change "
_LIVE, _UNCONFIGURED, _NEVER = "in any state", "while unconfigured", "never"


def parameter_descriptor(setting: Setting) -> ParameterDescriptor:
    """Description, unit and range of a setting, and in which states of its node it can change, as
    ROS tools show them."""
    unit = f" [{setting.unit}]" if setting.unit else ""
    changes = "" if setting.fixed else _CHANGES + changes_in_words(setting)
    descriptor = ParameterDescriptor(
        description=setting.description + unit,
        additional_constraints=setting.allowed + changes,
        read_only=setting.fixed,
    )
    if setting.low is not None and setting.high is not None:
        if setting.kind == "integer":
            limits = IntegerRange(from_value=int(setting.low), to_value=int(setting.high))
            descriptor.integer_range = [limits]
        else:
            limits = FloatingPointRange(from_value=float(setting.low), to_value=float(setting.high))
            descriptor.floating_point_range = [limits]
    return descriptor


def changes_in_words(setting: Setting) -> str:
    """In which states of its node a setting can change."""
    if setting.fixed:
        return _NEVER
    if not setting.live:
        return _UNCONFIGURED
    return f"{_LIVE}, while {setting.condition}" if setting.condition else _LIVE


def changes_and_range(descriptor: ParameterDescriptor) -> tuple[str, str]:
    """In which states a parameter can change, and its allowed values, in words; of any node.

    Empty words for what the node does not tell.
    """
    allowed, told, changes = descriptor.additional_constraints.rpartition(_CHANGES)
    if not told:
        allowed, changes = descriptor.additional_constraints, ""
    if descriptor.read_only:
        changes = _NEVER
    ranges = (*descriptor.integer_range, *descriptor.floating_point_range)
    if not allowed and ranges:
        allowed = f"from {ranges[0].from_value:g} to {ranges[0].to_value:g}"
    return changes, allowed
