"""A ROS context for commands that take part beside a running system."""

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_models.kernel_cache import cache_home, can_be_written, home_directory

if TYPE_CHECKING:
    from rclpy.context import Context

_LOOPBACK_TIMEOUT = 2.0  # [s]

THIS_MACHINE = "dds/this_machine.xml"
"""Profiles for Fast DDS, below `config/`."""

_RANGE, _LOCALHOST_ONLY = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"
_FAST_DDS = "rmw_fastrtps"
_PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")  # Fast DDS 2 and 3


def set_environment() -> None:
    """What ROS is told where the environment tells nothing; of this process and its nodes.

    Nodes talk over UDP. DDS's shared memory lets whoever sends wait for a third of a second when a
    process comes, and killed processes leave their segments in it (500 after a day of tests). ROS's
    range LOCALHOST cannot do without it, so profiles of Fast DDS stand in for that range, unless
    somebody has other ones.
    """
    find_log_directory()
    # A simulation is nobody's business on the laboratory's network, unless somebody says so.
    os.environ.setdefault(_RANGE, "LOCALHOST")
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    ours = str(config_directory() / THIS_MACHINE)
    others = any(os.environ.get(name, ours) != ours for name in _PROFILES)
    others |= bool(os.environ.get("ROS_STATIC_PEERS"))
    others |= not os.environ.get("RMW_IMPLEMENTATION", _FAST_DDS).startswith(_FAST_DDS)
    if discovery_range() == "LOCALHOST" and not others:
        os.environ.pop(_LOCALHOST_ONLY, None)
        os.environ.update(dict.fromkeys(_PROFILES, ours) | {_RANGE: "SYSTEM_DEFAULT"})


def find_log_directory() -> None:
    """ROS does not start where it can make no folder for its logs, which it wants in ~/.ros."""
    if os.environ.get("ROS_LOG_DIR") or os.environ.get("ROS_HOME"):
        return
    home = home_directory()
    if home is None or not can_be_written(home / ".ros" / "log"):
        os.environ["ROS_LOG_DIR"] = str(cache_home() / "ros_log")


def require_network() -> None:
    """Nodes of one machine talk over its loopback interface.

    Raises:
        UserError: a datagram to 127.0.0.1 does not come back.
    """
    if error := loopback_error():
        raise UserError(
            f"nodes cannot hear each other: a datagram to 127.0.0.1 does not come back ({error}): "
            f"{LOOPBACK_UP}"
        )


LOOPBACK_UP = "switch the loopback interface on with: sudo ip link set lo up"


def loopback_error() -> str:
    """Why a datagram to this machine does not come back; empty if it does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.settimeout(_LOOPBACK_TIMEOUT)
        try:
            end.bind(("127.0.0.1", 0))
            end.sendto(b"softcr", end.getsockname())
            end.recv(16)
        except OSError as error:
            return error.strerror or str(error)
    return ""


def start_ros(context: "Context | None" = None) -> None:
    """Initialise rclpy, which leaves signals to us: it would shut the context down in the middle of
    a message.

    Args:
        context: that is initialised; None: the default one.

    Raises:
        UserError: the environment does not let ROS start, or nodes cannot hear each other.
    """
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    require_network()
    set_environment()
    try:
        rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
        if security_is_on():  # keys are looked at, and may be refused, when a node is made
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                rclpy.create_node("softcr_security", context=context).destroy_node()
    except Exception as error:  # its kind is not public
        rclpy.try_shutdown(context=context)
        reason = " ".join(str(error).split())
        raise UserError(f"ROS 2 does not start: {reason}; see softcr doctor") from None


def security_is_on() -> bool:
    """Whether nodes are told to use DDS Security."""
    return os.environ.get("ROS_SECURITY_ENABLE", "").lower() == "true"


def security_error() -> str:
    """Why a node with DDS Security does not start; empty if it does."""
    from rclpy.context import Context

    context = Context()
    try:
        start_ros(context)
    except UserError as error:
        return str(error).removesuffix("; see softcr doctor")
    context.try_shutdown()
    return ""


def discovery_range() -> str:
    """How far nodes are heard, in ROS's words; with our profiles for it as far as LOCALHOST."""
    if os.environ.get(_LOCALHOST_ONLY) == "1":  # counts more in Jazzy
        return "LOCALHOST"
    chosen = os.environ.get(_RANGE, "")
    ours = os.environ.get(_PROFILES[0]) == str(config_directory() / THIS_MACHINE)
    return "LOCALHOST" if ours and chosen == "SYSTEM_DEFAULT" else chosen


@contextmanager
def ros_context() -> Iterator[None]:
    """The default context, heard on this machine only unless the environment says otherwise.

    Raises:
        UserError: the environment does not let ROS start.
    """
    import rclpy

    start_ros()
    try:
        yield
    finally:
        rclpy.try_shutdown()


def whereabouts() -> str:
    """The ROS domain and the discovery range of this process, in words."""
    ranges = {"LOCALHOST": "this machine only", "SUBNET": "this network", "OFF": "nothing"}
    chosen = discovery_range() or "SUBNET"
    means = ranges.get(chosen)
    if os.environ.get(_LOCALHOST_ONLY) == "1":
        chosen = f"of {_LOCALHOST_ONLY}"
    return (
        f"ROS domain {os.environ.get('ROS_DOMAIN_ID') or 0}, "
        f"discovery range {chosen}{f' ({means})' if means else ''}"
    )
