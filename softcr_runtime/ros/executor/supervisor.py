"""Running a system: start its nodes, bring them up, watch them, take them down.

Everything happens in one thread, whose loop looks at ROS, at the processes and at the person's wish
to end. Whatever goes wrong on the way up or in the run, the way down is the same and begins with
the controller, so that the robot is vented first.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from lifecycle_msgs.msg import State
from rclpy.executors import SingleThreadedExecutor
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from softcr_models.errors import UserError
from softcr_runtime.blocks.system import System
from softcr_runtime.console.terminal import (
    INTERRUPTED,
    USER_ERROR,
    complain,
    say,
    signals_call,
    step,
)
from softcr_runtime.ros.context import start_ros
from softcr_runtime.ros.executor.connections import missing_connections
from softcr_runtime.ros.executor.exchange import ControllerExchange, OtherController
from softcr_runtime.ros.executor.heard import Heard
from softcr_runtime.ros.executor.node_process import Exit, NodeProcess
from softcr_runtime.ros.executor.node_services import (
    ACTIVATE,
    CLEAN_UP,
    CONFIGURE,
    DEACTIVATE,
    LifecycleClient,
    refusal,
)
from softcr_runtime.ros.executor.progress import RunProgress
from softcr_runtime.ros.executor.run_nodes import RunNodes, answers
from softcr_runtime.ros.executor.run_record import Outcome, RunFailure, RunRecord
from softcr_runtime.ros.log_levels import LogLevels
from softcr_runtime.ros.running_systems import domain, lock_name
from softcr_runtime.wire.namespaces import absolute

POLL_PERIOD = 0.02  # [s]
_BREATH = 0.004  # [s]
REST_TIME = 0.1  # between two looks at ROS while the run goes on: the cores are the nodes' [s]
DISCOVERY_TIME = 0.6  # until nodes that already run have been heard of [s]
ANSWER_TIMEOUT = 2.0  # of a node that already runs [s]
CONNECT_TIMEOUT = 5.0  # for DDS to bring all nodes together [s]
VENT_TIME = 1.0  # recorded after a failure, while the chambers empty [s]
LEAVE_TIME = 3.0  # for a node that stopped being active to end, and so to tell why [s]


class _Interrupted(Exception):
    """The person wants the run to end."""


class _InterruptedTwice(Exception):
    """The person does not want to wait for it."""


class Supervisor:
    """One run of one system."""

    def __init__(
        self,
        system: System,
        directory: Path,
        options: dict[str, Any],
        console: Console,
        log_levels: LogLevels | None = None,
        other_controller: OtherController | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            system: what to run.
            directory: for the nodes' parameters and logs and for system.json; must exist.
            options: what the system was made from, for system.json.
            console: where the person reads along.
            log_levels: how much the nodes log, here and in their files; None: what ROS does.
            other_controller: for the service `switch`; None: controllers cannot be exchanged.
        """
        self._system = system
        self._other_controller = other_controller
        self._directory = directory
        self._console, self._log_levels = console, log_levels or LogLevels()
        self._wishes_to_end = 0
        self._going_up = False
        self._going_down = False
        self._active = False
        names = [part.name for part in system.parts]
        self._record = RunRecord(directory / "system.json", system.name, options, names)

    def run(self) -> Outcome:
        """Run the system to its end; every process is gone on return.

        Raises:
            UserError: a system, or nodes of these names, already run in this ROS domain.
        """
        with self._alone(), signals_call(self._wish_to_end), self._ros(), self._no_process_left():
            self._refuse_to_run_twice()
            try:
                self._go_up_and_run()
                self._take_down()
            except _InterruptedTwice:
                self._note_failure(RunFailure("killed before it had ended", "interrupt"))
        self._record.write()
        if self._record.unwritten:
            complain(self._record.unwritten)
        return Outcome(self._record.exit_code or 0, ran=self._active)

    def _go_up_and_run(self) -> None:
        """From nothing to the end of the run, whatever ends it."""
        try:
            self._going_up = True
            with step(self._console, "starting"):
                self._nodes.start_all()
            for name in self._nodes.names:
                with step(self._console, f"configuring {name}"):
                    self._nodes.change(name, CONFIGURE)
            with step(self._console, "connecting"):
                self._connect()
            with step(self._console, "activating"):
                for name in self._system.activation:
                    self._nodes.change(name, ACTIVATE)
            self._begin()
            self._going_up = False
            self._active = True
            self._wait_for_the_end()
            self._record.ended_by = "duration"
        except _Interrupted:
            self._record.ended_by = "interrupt"
            self._record.add("interrupted")
            if not self._active:  # nothing ran that could have gone well
                self._record.exit_code = INTERRUPTED
            say(self._console, "ending the run; once more to kill it")
        except RunFailure as failure:
            self._note_failure(failure)
        self._record.exit_code = self._record.exit_code or 0

    def _note_failure(self, failure: RunFailure) -> None:
        complain(str(failure))
        self._record.ended_by = failure.reason
        self._record.error = str(failure)
        self._record.exit_code = failure.exit_code
        self._record.write()

    # --- the way up ---

    def _refuse_to_run_twice(self) -> None:
        self._wait(lambda: False, DISCOVERY_TIME)
        place = absolute(self._system.namespace)
        here = {n for n, space in self._node.get_node_names_and_namespaces() if space == place}
        for name in sorted(set(self._nodes.names) & here):
            # A killed node stays in the graph for a while, but does not answer.
            if answers(LifecycleClient(self._node, name), self._wait, ANSWER_TIMEOUT):
                raise UserError(self._runs_already(f"node {name}"))

    def _connect(self) -> None:
        """Wait until every node sees all others; the run can begin without, and lose messages."""
        connections = self._heard.connections
        connections.clear()  # what was told before all were configured

        def connected() -> bool:
            all_told = connections.keys() >= set(self._nodes.names)
            return all_told and not missing_connections(connections)

        if not self._wait(connected, CONNECT_TIMEOUT):
            silent = [name for name in self._nodes.names if name not in connections]
            lines = [f"{name} does not tell" for name in silent]
            lines += missing_connections(connections)
            self._record.add("unconnected", detail="; ".join(lines))
            say(self._console, f"not all nodes are connected: {lines[0]}", "yellow")

    def _begin(self) -> None:
        """What must agree before the run, does; or tells why not."""
        if not self._system.begin:
            return
        with step(self._console, f"asking {' and '.join(self._system.begin)}"):
            line = refusal(
                self._node, self._system.begin, self._wait, over=self._heard.may_ask_no_more
            )
            # what safety said before is not the end of this run
            self._wait(lambda: not self._heard.disarmed, 1.0)
        if line:
            raise RunFailure(line)
        for service in self._system.begin:
            self._record.add("agreed", detail=service)

    # --- the run ---

    def _wait_for_the_end(self) -> None:
        self._record.add("run_started")
        duration = self._system.duration
        with Progress(
            TextColumn("running"),
            BarColumn(),
            TextColumn("{task.completed:.1f} / {task.total:.1f} s"),
            console=self._console,
            refresh_per_second=2,
        ) as progress:
            task = progress.add_task("run", total=duration)
            run = RunProgress(
                self._heard,
                self._system,
                lambda t: progress.update(task, completed=t),
                self._nodes.compute,
            )
            while not run.look():
                self._rest(REST_TIME)
                self._turn()
                self._exchange.see_to(run)
        self._record.add("run_ended")

    # --- the way down ---

    def _take_down(self) -> None:
        self._going_down = True
        self._exchange.close("the run is over")
        self._nodes.lower(self._exchange.controller, DEACTIVATE)
        if self._active and self._record.error:
            self._wait(lambda: False, VENT_TIME)
        with step(self._console, "ending"):
            for name in reversed(self._nodes.names):
                self._nodes.lower(name, DEACTIVATE)
            for name in reversed(self._nodes.names):
                self._nodes.lower(name, CLEAN_UP)
            self._nodes.end_all()

    # --- the loop ---

    def _wait(self, condition: Callable[[], bool], timeout: float, watched: bool = True) -> bool:
        """Turn the loop until a condition holds; whether it did within the timeout [s]."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() >= deadline:
                return False
            self._turn(watched)
        return True

    def _wait_unwatched(self, condition: Callable[[], bool], timeout: float) -> bool:
        """The same, in which nodes may end."""
        return self._wait(condition, timeout, watched=False)

    def _turn(self, watched: bool = True) -> None:
        """Look at everything once; a failure or a wish to end leaves as an exception."""
        self._executor.spin_once(timeout_sec=POLL_PERIOD)
        if self._exchange.under_way:  # rclpy polls a service that answers later
            time.sleep(_BREATH)
        self._relay_logs()
        self._check(watched)

    def _rest(self, duration: float) -> None:
        """Watch over processes and wishes only, which costs next to nothing [s]."""
        end = time.monotonic() + duration
        while time.monotonic() < end:
            time.sleep(POLL_PERIOD)
            self._check()

    def _relay_logs(self) -> None:
        for process in self._nodes.processes:
            for line in process.new_lines():
                own = line.node in process.names
                name = line.node if own else process.names[0]
                if line.level in ("DEBUG", "INFO"):  # of the node, not of what carries it
                    if own and self._log_levels.shows(name, line.level):
                        say(self._console, f"{name}: {line.text}")
                elif line.level == "WARN" or (line.level and not self._going_up):
                    say(self._console, f"{name}: {line.text}", "yellow")

    def _check(self, watched: bool = True) -> None:
        if self._wishes_to_end > 1:
            raise _InterruptedTwice
        if watched:
            self._watch_nodes()
        if self._wishes_to_end and not self._going_down:
            raise _Interrupted

    def _watch_nodes(self) -> None:
        for process in self._nodes.processes:
            if process.names[0] in self._nodes.ends:
                continue
            left = [name for name in process.names if self._has_left(name)]
            if left:
                self._wait_unwatched(process.has_ended, LEAVE_TIME)
            if end := process.exit():
                for name in process.names:
                    self._nodes.ends[name] = end
                    self._record.add_death(name, end)
                self._tell_death(process, end)
            elif left and not self._nodes.are_spare(process.names):
                raise self._nodes.failure(left[0], "stopped being active")

    def _has_left(self, name: str) -> bool:
        if not self._active or self._going_down or name in self._nodes.standby:
            return False
        return bool(self._nodes.clients[name].state != State.PRIMARY_STATE_ACTIVE)

    def _tell_death(self, process: NodeProcess, end: Exit) -> None:
        who, complaint = _titled(process.names), process.complaint()
        if end.code == USER_ERROR and complaint:
            failure = RunFailure(f"{who}: {complaint}", "failure", USER_ERROR)
        else:
            why = f": {complaint}" if end.signal is None and complaint else ""
            failure = RunFailure(f"{who} died ({end}){why}", "death")
        if self._active and self._nodes.are_spare(process.names):
            say(self._console, f"{failure}: the run continues without", "yellow")
            return
        if not self._going_down:
            raise failure
        if self._record.error is None:
            self._note_failure(failure)
        else:
            complain(str(failure))

    # --- what holds from beginning to end ---

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold a lock that the kernel takes back whatever happens: one system per namespace of a
        ROS domain."""
        with socket.socket(socket.AF_UNIX) as lock:
            try:
                lock.bind(lock_name(domain(), self._system.namespace))
            except OSError:
                raise UserError(self._runs_already("a softcr system")) from None
            yield

    def _runs_already(self, what: str) -> str:
        space = self._system.namespace
        place = f", namespace {absolute(space)}," if space else ""
        return (
            f"{what} already runs in ROS domain {domain()}{place} on this machine: end it, or "
            "choose another --namespace, or another domain with ROS_DOMAIN_ID"
        )

    def _wish_to_end(self, number: int) -> None:
        """Signals are wishes to end, counted here and granted by the loop.

        A second Ctrl-C kills. Programs that end others send SIGTERM and SIGHUP, some of them to
        each process of a group, and none of them in haste: SIGKILL is theirs, too.
        """
        more = number == signal.SIGINT or not self._wishes_to_end
        self._wishes_to_end += more

    @contextmanager
    def _ros(self) -> Iterator[None]:
        context = rclpy.Context()
        start_ros(context)
        self._executor = SingleThreadedExecutor(context=context)
        self._node = rclpy.create_node(
            f"softcr_supervisor_{os.getpid()}",
            namespace=absolute(self._system.namespace),
            context=context,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._executor.add_node(self._node)
        self._heard = Heard(self._node, self._system)
        self._nodes = RunNodes(
            self._node,
            self._system,
            self._directory,
            self._record,
            self._console,
            self._log_levels,
            self._wait,
            self._wait_unwatched,
        )
        self._exchange = ControllerExchange(self._nodes, self._heard, self._other_controller)
        try:
            yield
        finally:
            self._executor.shutdown()
            self._node.destroy_node()
            context.try_shutdown()

    @contextmanager
    def _no_process_left(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._nodes.close()


def _titled(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]}"
    return f"nodes {', '.join(names[:-1])} and {names[-1]}"
