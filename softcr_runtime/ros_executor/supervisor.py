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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import rclpy
import yaml
from lifecycle_msgs.msg import State
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from softcr_models.errors import UserError
from softcr_runtime.console import FAILED, USER_ERROR, complain, say, signals_call, step
from softcr_runtime.log_levels import LogLevels
from softcr_runtime.namespaces import absolute
from softcr_runtime.ros_context import set_environment
from softcr_runtime.ros_executor.connections import missing_connections
from softcr_runtime.ros_executor.exchange import (
    LEAD,
    READY_TIMEOUT,
    TAKEN_TIMEOUT,
    Lost,
    Refused,
    SwitchService,
    Wanted,
    agree,
    permit,
)
from softcr_runtime.ros_executor.heard import Heard
from softcr_runtime.ros_executor.node_process import Exit, NodeProcess
from softcr_runtime.ros_executor.node_services import (
    ACTIVATE,
    CLEAN_UP,
    CONFIGURE,
    DEACTIVATE,
    Change,
    LifecycleClient,
    refusal,
)
from softcr_runtime.ros_executor.run_record import EndReason, RunRecord
from softcr_runtime.running_systems import domain, lock_name
from softcr_runtime.system import Part, System

NODE_ENVIRONMENT = {
    # one BLAS thread: the nodes share the cores, and their matrices are small
    "OPENBLAS_NUM_THREADS": "1",
    # OpenMP's threads spin for milliseconds before they sleep: a tick of NEMPC 1000 x 8 took
    # 16.2 ms of CPU time on two cores, and takes 10.9 ms without, in the same 6.4 ms
    "OMP_WAIT_POLICY": "PASSIVE",
}

_PARAMETERS = "parameters.yaml"

POLL_PERIOD = 0.02  # [s]
_BREATH = 0.004  # [s]
REST_TIME = 0.1  # between two looks at ROS while the run goes on: the cores are the nodes' [s]
DISCOVERY_TIME = 0.6  # until nodes that already run have been heard of [s]
ANSWER_TIMEOUT = 2.0  # of a node that already runs [s]
START_TIMEOUT = 120.0  # from the process to its services [s]
CONNECT_TIMEOUT = 5.0  # for DDS to bring all nodes together [s]
CHANGE_TIMEOUTS = {  # [s]
    CONFIGURE: 900.0,  # on a new machine this compiles the kernels
    ACTIVATE: 60.0,
    DEACTIVATE: 5.0,
    CLEAN_UP: 30.0,  # the recorder finishes the bag
}
VENT_TIME = 1.0  # recorded after a failure, while the chambers empty [s]
LEAVE_TIME = 3.0  # for a node that stopped being active to end, and so to tell why [s]
EXIT_TIMEOUT = 5.0  # from SIGTERM to SIGKILL [s]
STALL_TIMEOUT = 60.0  # without progress of simulated time [s]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: the command's exit code, and whether the run began at all."""

    exit_code: int
    ran: bool


class _RunFailure(Exception):
    """The run cannot go on; the text is the line for the person."""

    def __init__(self, line: str, reason: EndReason = "failure", exit_code: int = FAILED) -> None:
        super().__init__(line)
        self.reason = reason
        self.exit_code = exit_code


class _Interrupted(Exception):
    """The person wants the run to end."""


class _InterruptedTwice(Exception):
    """The person does not want to wait for it."""


OtherController = Callable[[Wanted], Part]
"""Makes the part of another controller for a running system; raises UserError."""


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
        self._controller = system.controller
        self._standby: set[str] = set()  # controllers that command no more
        self._used_names = {part.name for part in system.parts}
        self._commanders = [system.controller]  # that were brought up, in their order
        self._beside: NodeProcess | None = None  # of a controller that does not command yet
        self._directory = directory
        self._console, self._log_levels = console, log_levels or LogLevels()
        self._names = [node.name for node in system.parts]
        self._sections: dict[str, Any] = {}
        self._processes: list[NodeProcess] = []
        self._process_of: dict[str, NodeProcess] = {}
        self._clients: dict[str, LifecycleClient] = {}
        self._ends: dict[str, Exit] = {}
        self._wishes_to_end = 0
        self._going_up = False
        self._going_down = False
        self._active = False
        self._record = RunRecord(directory / "system.json", system.name, options, list(self._names))

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
                self._note_failure(_RunFailure("killed before it had ended", "interrupt"))
        self._record.write()
        if self._record.unwritten:
            complain(self._record.unwritten)
        return Outcome(self._record.exit_code or 0, ran=self._active)

    def _go_up_and_run(self) -> None:
        """From nothing to the end of the run, whatever ends it."""
        try:
            self._going_up = True
            self._start()
            for name in self._names:
                with step(self._console, f"configuring {name}"):
                    self._change(name, CONFIGURE)
            with step(self._console, "connecting"):
                self._connect()
            with step(self._console, "activating"):
                for name in self._system.activation:
                    self._change(name, ACTIVATE)
            self._begin()
            self._going_up = False
            self._active = True
            self._wait_for_the_end()
            self._record.ended_by = "duration"
        except _Interrupted:
            self._record.ended_by = "interrupt"
            self._record.add("interrupted")
            say(self._console, "ending the run; once more to kill it")
        except _RunFailure as failure:
            self._note_failure(failure)
        self._record.exit_code = self._record.exit_code or 0

    def _note_failure(self, failure: _RunFailure) -> None:
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
        for name in sorted(set(self._names) & here):
            # A killed node stays in the graph for a while, but does not answer.
            if self._answers(LifecycleClient(self._node, name), ANSWER_TIMEOUT):
                raise UserError(self._runs_already(f"node {name}"))

    def _start(self) -> None:
        self._write_parameters(self._system.parts)
        (self._directory / "log").mkdir()
        with step(self._console, "starting"):
            for name, parts in self._system.processes.items():
                process = self._process(name, parts)
                self._processes.append(process)
                self._process_of |= dict.fromkeys(process.names, process)
            for name in self._names:
                self._clients[name] = LifecycleClient(self._node, name)
                self._record.add("started", name, f"pid {self._process_of[name].pid}")
            for name in self._names:
                if not self._answers(self._clients[name], START_TIMEOUT):
                    raise self._failure(name, f"did not start within {START_TIMEOUT:.0f} s")

    def _write_parameters(self, parts: Sequence[Part]) -> None:
        """Of all nodes that are, or ever were, part of the run."""
        for node in parts:
            place = absolute(self._system.namespace, node.name)
            self._sections[place] = {"ros__parameters": dict(node.parameters)}
        text = yaml.safe_dump(self._sections, sort_keys=False)
        (self._directory / _PARAMETERS).write_text(text, encoding="utf-8")

    def _process(self, name: str, parts: Sequence[Part]) -> NodeProcess:
        environment = {"SOFTCR_SUPERVISED": "1"} | NODE_ENVIRONMENT
        return NodeProcess(
            parts,
            self._directory / _PARAMETERS,
            self._directory / "log" / f"{name}.log",
            environment,
            self._system.namespace,
            self._log_levels,
        )

    def _answers(
        self, client: LifecycleClient, timeout: float, over: Callable[[], bool] = lambda: False
    ) -> bool:
        """Whether a node tells its state in time; a killed one has services, but no answer."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and not over():
            if not self._wait(lambda: client.is_ready() or over(), deadline - time.monotonic()):
                break
            if not client.is_ready():
                break
            answer = client.request_state()
            if self._wait(answer.done, 1.0):
                client.state = answer.result().current_state.id
                return True
        return False

    def _change(self, name: str, change: Change) -> None:
        answer = self._clients[name].request(change)
        timeout = CHANGE_TIMEOUTS[change]
        if not self._wait(lambda: answer.done() or name in self._ends, timeout):
            raise self._failure(name, f"did not {change.verb} within {timeout:.0f} s")
        if name in self._ends:
            raise _RunFailure(f"node {name} ended while {change.passing}")
        if not answer.result().success:
            # It runs on and refuses: it was given something it cannot work with.
            raise self._failure(name, f"did not {change.verb}", USER_ERROR)
        self._clients[name].state = change.goal
        self._record.add(change.done, name)

    def _connect(self) -> None:
        """Wait until every node sees all others; the run can begin without, and lose messages."""
        connections = self._heard.connections
        connections.clear()  # what was told before all were configured

        def connected() -> bool:
            all_told = connections.keys() >= set(self._names)
            return all_told and not missing_connections(connections)

        if not self._wait(connected, CONNECT_TIMEOUT):
            silent = [name for name in self._names if name not in connections]
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
            raise _RunFailure(line)
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
            went = _Going(self._heard, self._system, lambda t: progress.update(task, completed=t))
            while not went.look():
                self._rest(REST_TIME)
                self._turn()
                self._switches.see_to(lambda wanted: self._exchange(wanted, went))
        self._record.add("run_ended")

    # --- another controller ---

    def _exchange(self, wanted: Wanted, run: "_Going") -> str:
        """Let another controller command; returns a line about it.

        Raises:
            Refused: it does not, and the old one goes on.
        """
        old, began = self._controller, time.monotonic()
        part = self._part_of(wanted)
        new = part.name
        self._used_names.add(new)
        self._commanders.append(new)
        try:
            self._permit(old)
            self._bring_up(part, run)
            moment = self._agree(old, new, run)
        except BaseException as error:
            self._let_go(new, gently=isinstance(error, Refused))
            if isinstance(error, Refused):
                self._record.add("refused", new, str(error))
            raise
        self._record.add("exchanged", new, f"answers from {moment:.6f} s on, in place of {old}")
        self._retire(old)
        try:
            self._permit(new)
        except Refused as error:  # both may still publish
            say(self._console, str(error), "yellow")
        line = f"{new} commands in place of {old}"
        say(self._console, f"{line}; {time.monotonic() - began:.1f} s after it was asked for")
        return line

    def _part_of(self, wanted: Wanted) -> Part:
        """The new controller's part, under a name that no node has.

        Raises:
            Refused: there can be none.
        """
        if self._system.simulated_time:
            raise Refused(
                "in lock-step all runs of a seed are equal, and the moment of an exchange would "
                "differ: choose --controller, or --mode wall"
            )
        if self._other_controller is None:
            raise Refused("this system has one controller")
        try:
            part = self._other_controller(wanted)
        except UserError as error:
            raise Refused(str(error)) from None
        except Exception as error:  # of somebody's own class; the robot goes on
            raise Refused(f"{wanted.controller}: {type(error).__name__}: {error}") from None
        # a bag tells nodes apart by name, and DDS does not forget a killed one at once
        name, number = part.name, 1
        while name in self._used_names:
            number += 1
            name = f"{part.name}_{number}"
        return replace(part, name=name, process="")

    def _bring_up(self, part: Part, run: "_Going") -> None:
        """Start, configure and activate the new controller; it hears, and says nothing.

        Raises:
            Refused: it does not come so far.
        """
        name = part.name
        self._write_parameters([part])
        self._heard.listen_to(name)
        process = self._beside = self._process(name, [part])
        self._process_of[name] = process
        client = self._clients[name] = LifecycleClient(self._node, name)
        self._record.add("started", name, f"pid {process.pid}")
        say(self._console, f"{name} is brought up beside {self._controller}")

        def over() -> bool:
            return process.exit() is not None or run.look()

        def refusal(what: str) -> Refused:
            if run.look():
                return Refused("the run is over")
            complaint = process.complaint(name)
            return Refused(f"{name} {what}{f': {complaint}' if complaint else ''}")

        if not self._answers(client, START_TIMEOUT, over):
            raise refusal("did not start")
        for change in (CONFIGURE, ACTIVATE):
            answer = client.request(change)
            self._wait(_either(answer.done, over), CHANGE_TIMEOUTS[change])
            if not (answer.done() and answer.result().success):
                raise refusal(f"did not {change.verb}")
            client.state = change.goal
            self._record.add(change.done, name)
        heard = self._heard.hand_over
        self._wait(lambda: heard.get(name) == "ready" or over(), READY_TIMEOUT)
        if heard.get(name) != "ready":
            raise refusal(
                f"has not seen estimates, references and commands within {READY_TIMEOUT:.0f} s"
            )

    def _agree(self, old: str, new: str, run: "_Going") -> float:
        """Both agree on the moment, and the new one commands; returns the moment [s].

        Raises:
            Refused: they do not agree.
        """
        process = self._process_of[new]
        if run.ends_within(LEAD + TAKEN_TIMEOUT):
            raise Refused("the run is about to end")
        try:
            moment = agree(self._node, old, new, self._wait)
        except Lost as error:
            raise _RunFailure(str(error)) from None
        self._processes.append(process)  # from now on the run ends where it ends
        self._names.append(new)
        self._record.nodes.append(new)
        self._beside, self._controller = None, new
        heard = self._heard.hand_over
        self._wait(lambda: heard.get(new) == "commands" or run.look(), TAKEN_TIMEOUT)
        if heard.get(new) != "commands" and not run.look():
            raise self._failure(new, "does not command")
        return moment

    def _retire(self, old: str) -> None:
        """The old controller ends; where it shares a process it stays there, inactive."""
        process = self._process_of[old]
        self._standby.add(old)
        self._lower(old, DEACTIVATE, State.PRIMARY_STATE_ACTIVE)
        if len(process.names) == 1:
            self._lower(old, CLEAN_UP, State.PRIMARY_STATE_INACTIVE)
            self._end([process])
            process.close()
            self._processes.remove(process)
            self._names.remove(old)
            del self._clients[old]

    def _let_go(self, name: str, gently: bool) -> None:
        """Of a controller that never commanded."""
        process, self._beside = self._beside, None
        if process is None:
            return
        try:
            if gently:
                process.send(signal.SIGTERM)
                self._wait(lambda: process.exit() is not None, EXIT_TIMEOUT)
        finally:
            process.close()
            self._record.add("ended", name, str(process.exit()))
            del self._clients[name]

    def _permit(self, first: str) -> None:
        """Tell the actuators who may command, where they must know: of those before, too, of whom
        DDS may still tell.

        Args:
            first: who commands now.

        Raises:
            Refused: they do not agree.
        """
        if self._system.actuators:
            others = [name for name in self._commanders if name != first]
            names = [absolute(self._system.namespace, each) for each in [first, *others]]
            permit(self._node, self._system.actuators, names, self._wait)

    # --- the way down ---

    def _take_down(self) -> None:
        self._going_down = True
        self._switches.close("the run is over")
        self._lower(self._controller, DEACTIVATE, State.PRIMARY_STATE_ACTIVE)
        if self._active and self._record.error:
            self._wait(lambda: False, VENT_TIME)
        with step(self._console, "ending"):
            for name in reversed(self._names):
                self._lower(name, DEACTIVATE, State.PRIMARY_STATE_ACTIVE)
            for name in reversed(self._names):
                self._lower(name, CLEAN_UP, State.PRIMARY_STATE_INACTIVE)
            self._end_processes()

    def _lower(self, name: str, change: Change, from_state: int) -> None:
        """A change on the way down; what cannot be done is noted, and the way goes on."""
        if name in self._ends or name not in self._clients:
            return
        if self._clients[name].state != from_state:
            return
        try:
            self._change(name, change)
        except _RunFailure as failure:
            self._record.add("failed", name, str(failure))
            say(self._console, str(failure), "yellow")

    def _end_processes(self) -> None:
        self._end([each for each in self._processes if each.names[0] not in self._ends])

    def _end(self, running: Sequence[NodeProcess]) -> None:
        """Ask processes to end, and kill those that do not."""
        for process in running:
            process.send(signal.SIGTERM)
        deadline = time.monotonic() + EXIT_TIMEOUT
        for process in running:
            while process.exit() is None and time.monotonic() < deadline:
                self._turn(watched=False)
            event, detail = "ended", str(process.exit())
            if process.exit() is None:
                process.send(signal.SIGKILL)
                event, detail = "killed", f"{EXIT_TIMEOUT:.0f} s after SIGTERM"
            for name in process.names:
                self._record.add(event, name, detail)

    # --- the loop ---

    def _wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Turn the loop until a condition holds; whether it did within the timeout [s]."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() >= deadline:
                return False
            self._turn()
        return True

    def _turn(self, watched: bool = True) -> None:
        """Look at everything once; a failure or a wish to end leaves as an exception."""
        self._executor.spin_once(timeout_sec=POLL_PERIOD)
        if self._switches.under_way:  # rclpy polls a service that answers later
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
        for process in self._processes:
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
        for process in self._processes:
            if process.names[0] in self._ends:
                continue
            left = [name for name in process.names if self._has_left(name)]
            if left:
                deadline = time.monotonic() + LEAVE_TIME
                while process.exit() is None and time.monotonic() < deadline:
                    self._turn(watched=False)
            if end := process.exit():
                for name in process.names:
                    self._ends[name] = end
                    self._record.add_death(name, end)
                self._tell_death(process, end)
            elif left and not self._is_spare(process):
                raise self._failure(left[0], "stopped being active")

    def _has_left(self, name: str) -> bool:
        if not self._active or self._going_down or name in self._standby:
            return False
        return bool(self._clients[name].state != State.PRIMARY_STATE_ACTIVE)

    def _tell_death(self, process: NodeProcess, end: Exit) -> None:
        who, complaint = _titled(process.names), process.complaint()
        if end.code == USER_ERROR and complaint:
            failure = _RunFailure(f"{who}: {complaint}", "failure", USER_ERROR)
        else:
            why = f": {complaint}" if end.signal is None and complaint else ""
            failure = _RunFailure(f"{who} died ({end}){why}", "death")
        if self._active and self._is_spare(process):
            say(self._console, f"{failure}: the run goes on without", "yellow")
            return
        if not self._going_down:
            raise failure
        if self._record.error is None:
            self._note_failure(failure)
        else:
            complain(str(failure))

    def _is_spare(self, process: NodeProcess) -> bool:
        spare = {part.name for part in self._system.parts if part.spare} | self._standby
        return spare.issuperset(process.names)

    def _failure(self, name: str, what: str, exit_code: int = FAILED) -> _RunFailure:
        complaint = self._process_of[name].complaint(name)
        why = f": {complaint}" if complaint else ""
        return _RunFailure(f"node {name} {what}{why}", exit_code=exit_code)

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
        set_environment()
        context = rclpy.Context()
        rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
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
        self._switches = SwitchService(self._node)
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
            for process in [*self._processes, *filter(None, [self._beside])]:
                process.close()


class _Going:
    """How far a run is."""

    def __init__(self, heard: Heard, system: System, tell: Callable[[float], None]) -> None:
        """
        Args:
            heard: of the system's nodes.
            system: says how long it runs, on which clock.
            tell: told the time in the run [s].
        """
        self._heard, self._system, self._tell = heard, system, tell
        self._began = self._progressed = time.monotonic()
        self._seen = 0.0

    def look(self) -> bool:
        """Whether it is over.

        Raises:
            _RunFailure: the valves vented, or time stands still.
        """
        now, system = time.monotonic(), self._system
        moment = self._heard.simulated_time if system.simulated_time else now - self._began
        if moment > self._seen:
            self._seen, self._progressed = moment, now
        if self._heard.disarmed:
            raise _RunFailure(f"the valves vented: {self._heard.vented}")
        if now - self._progressed > STALL_TIMEOUT:
            raise _RunFailure(f"simulated time stands still at {self._seen:.3f} s")
        self._tell(min(self._seen, system.duration))
        # In simulated time only the plant knows when its last cycle is complete: it says so.
        timed = not system.simulated_time and self._seen >= system.duration
        return self._heard.finished or timed

    def ends_within(self, time_left: float) -> bool:
        """Whether it ends within a time [s], where its end is known."""
        return not self._system.simulated_time and (self._seen + time_left >= self._system.duration)


def _either(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() or other()


def _titled(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]}"
    return f"nodes {', '.join(names[:-1])} and {names[-1]}"
