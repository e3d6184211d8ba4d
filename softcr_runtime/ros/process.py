"""Nodes as a process: arguments, signals, the executor's thread, the end."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_runtime.ros.context import find_log_directory
from softcr_runtime.ros.intra_process import IntraProcess
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.settings.node_settings import declared_settings

_END_TIMEOUT = 2.0  # how long a process waits for its nodes to end [s]

_SWITCH_INTERVAL = 0.0005
"""After which a thread that computes in Python lets another of its process go on [s]; Python's own
5 ms are a third of a control period."""


class SupervisedExecutor(SingleThreadedExecutor):
    """Spins the nodes of a process; whatever a callback raises is counted, by the first of them,
    and survived."""

    def __init__(self, *nodes: LoopNode):
        super().__init__(context=nodes[0].context)
        self._first = nodes[0]
        self._stopping = False
        for node in nodes:
            self.add_node(node)

    def spin(self) -> None:
        """Execute callbacks until `stop`, or until the context is shut down."""
        while self.context.ok() and not self._stopping:
            try:
                self.spin_once()
            except Exception:
                if self.context.ok():
                    self._first.count_exception("callback")

    def stop(self) -> None:
        """Let `spin` return after what is under way; from any thread."""
        self._stopping = True
        self.wake()


def run(node_class: type[LoopNode], arguments: list[str] | None = None) -> int:
    """Run a node as a process: the main function of every entry point; see `run_together`.

    Args:
        node_class: the node.
        arguments: command line, program name first; None for that of the process.

    Returns:
        0, or 2 after one line on stderr about an argument or parameter that is not allowed.
    """
    return run_together([node_class], sys.argv if arguments is None else arguments)


def run_together(node_classes: Sequence[type[LoopNode]], arguments: list[str]) -> int:
    """Run nodes as one process.

    SIGINT, SIGTERM and SIGHUP deactivate them, the last one first, clean up and end the process
    with exit code 0; so does the end of all of them. With SOFTCR_SUPERVISED=1 in the environment it
    ignores SIGINT, because whoever supervises it brings it down by lifecycle transitions and
    SIGTERM.

    Args:
        node_classes: at least one, each with a name of its own.
        arguments: command line, program name first.

    Returns:
        0, or 2 after one line on stderr about an argument or parameter that is not allowed.
    """
    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: end.set())
    if os.environ.get("SOFTCR_SUPERVISED") == "1":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The nodes share the cores and their matrices are small. At run time, because numpy has read
    # OPENBLAS_NUM_THREADS long before; numba's threads are none of BLAS's.
    threadpool_limits(limits=1, user_api="blas")
    if len(node_classes) > 1:
        sys.setswitchinterval(_SWITCH_INTERVAL)
    name = node_classes[0].default_name
    try:
        if _wants_help(arguments):
            print("\n\n".join(_help(node_class) for node_class in node_classes))
            return 0
        find_log_directory()
        # rclpy's own handlers shut the context down, and with it a controller's last command
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        intra_process = IntraProcess()
        nodes: list[LoopNode] = []
        for node_class in node_classes:
            name = node_class.default_name
            nodes.append(node_class(intra_process=intra_process))
    except UserError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        rclpy.try_shutdown()
        return 2
    _spin_until(end, nodes)
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown()
    return 0


def leave(code: int) -> NoReturn:
    """End this process with an exit code, after its nodes have ended: the last act of a program.

    Python would collect every object first, compiled kernels among them, which takes seconds on a
    busy machine, and whoever supervises the nodes kills what does not end in time.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads along
            stream.flush()
    os._exit(code)


def _spin_until(end: threading.Event, nodes: Sequence[LoopNode]) -> None:
    """Spin in a thread of its own, so that the main thread is free to take signals at once."""
    executor = SupervisedExecutor(*nodes)
    left = set(nodes)

    def gone(node: LoopNode) -> None:
        left.discard(node)
        if not left:
            end.set()

    for node in nodes:
        node.on_finalized = partial(gone, node)
    spinning = threading.Thread(target=executor.spin, name="executor", daemon=True)
    spinning.start()
    end.wait()

    def finish() -> None:
        try:
            for node in reversed(nodes):
                node.finish()
        finally:
            executor.stop()

    executor.create_task(finish)
    spinning.join(_END_TIMEOUT)
    if spinning.is_alive():
        # compiling in configure, most likely: nothing to save, and nothing can interrupt it
        names = ", ".join(node.default_name for node in nodes)
        print(f"{names}: did not end within {_END_TIMEOUT} s", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1 if any(node.active for node in nodes) else 0)


def _wants_help(arguments: list[str]) -> bool:
    try:
        others = remove_ros_args(arguments)[1:]
    except Exception as error:  # its kinds are not public
        raise UserError(str(error).split(", at /")[0]) from None
    if not others:
        return False
    if others[0] in ("-h", "--help"):
        return True
    raise UserError(f"argument {others[0]!r}: unknown; parameters follow --ros-args, see --help")


def _help(node_class: type[LoopNode]) -> str:
    name = node_class.default_name
    lines = [
        f"usage: {name} [--ros-args -p NAME:=VALUE ... -r __node:=NAME -r __ns:=NAMESPACE]",
        "",
        (node_class.__doc__ or "").strip().splitlines()[0],
        "",
        "parameters, with their defaults:",
    ]
    for setting in declared_settings(node_class.Settings).values():
        lines.append(f"  {setting.name} := {_yaml(setting.default)}")
        lines.append(f"      {setting.description}; {setting.allowed}")
    return "\n".join(lines)


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
