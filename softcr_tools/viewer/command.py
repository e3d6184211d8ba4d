"""`softcr view`: the command line, and the page in a browser."""

import importlib.util
import ipaddress
import os
import socket
import webbrowser
from typing import Annotated

from pydantic import Field
from rich.console import Console

from softcr_models.errors import UserError
from softcr_models.robots.robot import load_robot
from softcr_runtime.console.terminal import ended_by_signals, say, step
from softcr_runtime.ros.context import ros_context
from softcr_runtime.settings.command_line import RobotName, command
from softcr_runtime.wire.namespaces import Namespace, absolute

UNTIL_TOLD = "licher2025"
"""The robot that is shown until a running system tells its own."""

PORT = 8090  # of the page; 8080 is the emulated Net F/T box's


@command
def view(
    *,
    robot: RobotName = "",
    host: str = "127.0.0.1",
    port: Annotated[int, Field(ge=1, le=65535)] = PORT,
    namespace: Namespace = "",
    no_browser: bool = False,
) -> int:
    """Watch the running system on a browser page.

    The page shows the rod's shape, its reference and trail, pressures, errors, compliance and the
    safety state. It has a vent button, and sliders for the pressures while no controller commands
    and nothing is armed. It works with a simulation, the bench and `softcr replay --online`, and
    can be started and ended at any time. The page opens only with the printed URL, which contains a
    new token for each run.

    Args:
        robot: name or YAML file; empty: the robot of the running system.
        host: address to serve on. With an address other than this machine's, anybody who has
            the URL may watch and vent, and the page has no sliders. Nothing is encrypted:
            prefer an SSH tunnel.
        port: port of the page, from 1 to 65535.
        namespace: namespace of the robot's nodes and topics.
        no_browser: only serve the page.

    Raises:
        UserError: viser is not installed, the robot cannot be loaded, the port is not free.
    """
    if importlib.util.find_spec("viser") is None:
        raise UserError("viser is not installed: pip install 'softcr[view]'")
    described = load_robot(robot or UNTIL_TOLD, None)
    console, with_hand = Console(), ipaddress.ip_address(check_free(host, port)).is_loopback
    with ended_by_signals() as stop, ros_context():
        with step(console, "starting the live view"):
            from softcr_tools.nodes.viewer import Viewer

            viewer = Viewer(
                described, host, port, with_hand, absolute(namespace), follows=not robot
            )
        say(console, f"live view: {viewer.page.url} (Ctrl-C ends)")
        if not with_hand:
            say(console, f"--host {host}: others see the page, so it has no sliders")
        # without a display a browser might take over the terminal
        if not no_browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            webbrowser.open(viewer.page.url)
        try:
            viewer.run(stop)
        finally:
            viewer.close()
    return 0


def check_free(host: str, port: int) -> str:
    """The IP address of a host, whose port must be free: viser would silently take another one.

    Raises:
        UserError: the address is none of this machine, or the port is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise UserError(
            f"--host {host} --port {port}: {error.strerror}; name another one"
        ) from None
    return str(address[0])
