"""A ROS context for commands that take part beside a running system."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from softcr_models.config import config_directory
from softcr_models.errors import UserError

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
    from rclpy.signals import SignalHandlerOptions

    set_environment()
    # signals are ours: rclpy would shut the context down in the middle of a message
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # its kind is not public
        raise UserError(f"ROS 2 does not start: {error}; see softcr doctor") from None
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
