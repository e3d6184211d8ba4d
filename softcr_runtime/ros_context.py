"""A ROS context for commands that take part beside a running system."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from softcr_models.errors import UserError


def set_environment() -> None:
    """What ROS is told where the environment tells nothing; of this process and its nodes."""
    # A simulation is nobody's business on the laboratory's network, unless somebody says so.
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    # Killed processes leave their segments in DDS's shared memory (500 after a day of tests).
    # Over UDP nothing stays behind, and a tick is no slower.
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")


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
    chosen = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    means = ranges.get(chosen)
    if os.environ.get("ROS_LOCALHOST_ONLY") == "1":  # counts more in Jazzy
        chosen, means = "of ROS_LOCALHOST_ONLY", "this machine only"
    return (
        f"ROS domain {os.environ.get('ROS_DOMAIN_ID') or 0}, "
        f"discovery range {chosen}{f' ({means})' if means else ''}"
    )
