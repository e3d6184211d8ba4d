"""The ROS parameters of a node: declared from its settings, checked all together.

A live one may change while the node is configured or active, a fixed one never, as ROS sees to by
`read_only`; the others while the node is unconfigured.
"""

import array
from typing import TYPE_CHECKING, Any

import numpy as np
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter

from softcr_models.errors import UserError
from softcr_runtime.ros.parameters import parameter_descriptor
from softcr_runtime.settings.node_settings import (
    NodeSettings,
    Setting,
    build_settings,
    declared_settings,
    name_and_nearest,
    setting_values,
    unknown_names,
)
from softcr_runtime.wire.namespaces import frame_prefix
from softcr_runtime.wire.quality_overrides import QOS_OVERRIDES, unused_overrides

if TYPE_CHECKING:
    from softcr_runtime.ros.node import LoopNode


class NodeParameters:
    """Between a node's settings and ROS.

    Attributes:
        first: the settings that the node begins with.
    """

    def __init__(self, node: "LoopNode") -> None:
        """Read what the node was given; of what it does not have, it warns.

        Raises:
            UserError: one line about a parameter whose value is not allowed.
        """
        self._node = node
        given = self._overrides()
        node.use_settings_model(given)
        self._declared = declared_settings(node.Settings)
        self.first = self._candidate = node.settings_from(self._without_unknown(given))

    def declare(self) -> None:
        """Declare all of them with the node's settings, and be asked about changes."""
        node, values = self._node, setting_values(self.first)
        for setting in self._declared.values():
            # a whole number given for a number was accepted, and is declared as a number
            value = _as_declared(setting, values[setting.name])
            node.declare_parameter(
                setting.name, value, parameter_descriptor(setting), ignore_override=True
            )
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(lambda _: node.use_settings(self._candidate))

    def given_names(self) -> list[str]:
        """Of everything that was given to the node at its start."""
        # rclpy offers no other way to see an override before, and without, a declaration
        return list(self._node._parameter_overrides)

    def values(self) -> dict[str, Any]:
        """Of all parameters that the node has now, as JSON has them."""
        parameters: Any = self._node.get_parameters_by_prefix("")
        return {name: _plain_value(parameter.value) for name, parameter in parameters.items()}

    def warn_of_unused_overrides(self) -> None:
        """Of qualities of service for topics that the node does not have."""
        for line in unused_overrides(self.given_names(), self._node.has_parameter):
            self._node.get_logger().warning(line)

    def _overrides(self) -> dict[str, Any]:
        node = self._node
        given = {
            name: _plain_value(parameter.value)
            for name, parameter in node._parameter_overrides.items()
            if not node.has_parameter(name) and not name.startswith(QOS_OVERRIDES)
        }
        return {"frame_prefix": frame_prefix(node.get_namespace())} | given

    def _without_unknown(self, given: dict[str, Any]) -> dict[str, Any]:
        """As ROS does, what the node does not have is left out; it is told, too."""
        unknown = unknown_names(self._node.Settings, given)
        if unknown:
            lines = [name_and_nearest(name, self._declared) for name in unknown]
            self._node.get_logger().warning(
                f"ignored: no parameter of this node is called {'; '.join(lines)}"
            )
        return {name: value for name, value in given.items() if name not in unknown}

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        node, now = self._node, setting_values(self._node.settings)
        given = {p.name: _plain_value(p.value) for p in parameters if p.name in self._declared}
        changes = {name: value for name, value in given.items() if value != now[name]}
        self._candidate = node.settings
        if not changes:
            return SetParametersResult(successful=True)
        fixed = [name for name in changes if not self._declared[name].live]
        if fixed and node.state != "unconfigured":
            reason = f"parameter {fixed[0]} cannot change while the node is {node.state}"
            return SetParametersResult(successful=False, reason=reason + self._way_back())
        try:
            candidate: NodeSettings = build_settings(node.Settings, now | changes)
            if node.configured:
                node.accept_settings(candidate)
        except UserError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._candidate = candidate
        return SetParametersResult(successful=True)

    def _way_back(self) -> str:
        """The transitions after which the parameter can change, as a person asks for them."""
        name = self._node.get_fully_qualified_name().lstrip("/")
        back = f"softcr lifecycle set {name}"
        if self._node.active:
            return f": first {back} deactivate, then {back} cleanup"
        return f": first {back} cleanup" if self._node.configured else ""


def _as_declared(setting: Setting, value: Any) -> Any:
    """A value as its parameter is declared: a whole number may be given for a number."""
    if setting.kind != "number":
        return value
    return [float(element) for element in value] if setting.is_list else float(value)


def _plain_value(value: Any) -> Any:
    """A parameter's value as settings hold it: every kind of array is a list."""
    return list(value) if isinstance(value, (array.array, np.ndarray, tuple)) else value
