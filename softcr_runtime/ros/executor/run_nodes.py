"""The nodes of a run: their processes, their states, and how each of them ended."""

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from rclpy.node import Node
from rich.console import Console

from softcr_runtime.blocks.system import Part, System
from softcr_runtime.console.terminal import FAILED, USER_ERROR, say
from softcr_runtime.ros.executor.node_process import Exit, NodeProcess
from softcr_runtime.ros.executor.node_services import (
    ACTIVATE,
    CLEAN_UP,
    CONFIGURE,
    DEACTIVATE,
    Change,
    LifecycleClient,
)
from softcr_runtime.ros.executor.run_record import RunFailure, RunRecord
from softcr_runtime.ros.log_levels import LogLevels
from softcr_runtime.wire.namespaces import absolute

NODE_ENVIRONMENT = {
    # one BLAS thread: the nodes share the cores, and their matrices are small
    "OPENBLAS_NUM_THREADS": "1",
    # OpenMP's threads spin for milliseconds before they sleep: a tick of NEMPC 1000 x 8 took
    # 16.2 ms of CPU time on two cores, and takes 10.9 ms without, in the same 6.4 ms
    "OMP_WAIT_POLICY": "PASSIVE",
}
START_TIMEOUT = 120.0  # from the process to its services [s]
CHANGE_TIMEOUTS = {  # [s]
    CONFIGURE: 900.0,  # on a new machine this compiles the kernels
    ACTIVATE: 60.0,
    DEACTIVATE: 5.0,
    CLEAN_UP: 30.0,  # the recorder finishes the bag
}
EXIT_TIMEOUT = 5.0  # from SIGTERM to SIGKILL [s]

_PARAMETERS = "parameters.yaml"

Wait = Callable[[Callable[[], bool], float], bool]
"""Spins a node until a condition holds; whether it did within a time [s]."""


class RunNodes:
    """The nodes of a run, in the order in which they are configured.

    Attributes:
        names: of those that belong to the run now.
        processes: that they run in; the run ends where one of them ends.
        process_of: the process of each node that was started and has not left the run.
        clients: ask a node for its state, and for changes of it, by name.
        ends: how nodes ended before they were asked to, by name.
        standby: controllers that command no more; the run continues without them.
        node, system, record, console, wait: as below.
    """

    def __init__(
        self,
        node: Node,
        system: System,
        directory: Path,
        record: RunRecord,
        console: Console,
        log_levels: LogLevels,
        wait: Wait,
        wait_unwatched: Wait,
    ) -> None:
        """Nothing is started yet.

        Args:
            node: that asks, in the system's namespace.
            system: whose nodes they are.
            directory: for parameters and logs.
            record: of what happens to them.
            console: where the person reads along.
            log_levels: how much they log.
            wait: spins the node until a condition holds; whether it did within a time [s].
            wait_unwatched: the same, in which nodes may end.
        """
        self.names = [part.name for part in system.parts]
        self.processes: list[NodeProcess] = []
        self.process_of: dict[str, NodeProcess] = {}
        self.clients: dict[str, LifecycleClient] = {}
        self.ends: dict[str, Exit] = {}
        self.standby: set[str] = set()
        self.node, self.system, self._directory = node, system, directory
        self.record, self.console, self._log_levels = record, console, log_levels
        self.wait, self._wait_unwatched = wait, wait_unwatched
        self._sections: dict[str, Any] = {}

    def start_all(self) -> None:
        """Start every process of the system, and wait for each node's first answer.

        Raises:
            RunFailure: a node does not answer in time.
        """
        self._write_parameters(self.system.parts)
        (self._directory / "log").mkdir()
        for name, parts in self.system.processes.items():
            self.processes.append(self._process(name, parts))
        for name in self.names:
            self.connect(name)
        for name in self.names:
            if not self.answers(name, START_TIMEOUT):
                raise self.failure(name, f"did not start within {START_TIMEOUT:.0f} s")

    def start(self, part: Part) -> NodeProcess:
        """Start one node more, which does not belong to the run yet."""
        self._write_parameters([part])
        process = self._process(part.name, [part])
        self.connect(part.name)
        return process

    def connect(self, name: str) -> None:
        """Be able to ask a node that was started."""
        self.clients[name] = LifecycleClient(self.node, name)
        self.record.add("started", name, f"pid {self.process_of[name].pid}")

    def adopt(self, name: str) -> None:
        """From now on a node that was started belongs to the run, which ends where it ends."""
        self.processes.append(self.process_of[name])
        self.names.append(name)
        self.record.nodes.append(name)

    def retire(self, name: str) -> None:
        """A node ends, and the run goes on; where it shares a process it stays there, inactive."""
        process = self.process_of[name]
        self.standby.add(name)
        self.lower(name, DEACTIVATE)
        if len(process.names) == 1:
            self.lower(name, CLEAN_UP)
            self.end([process])
            process.close()
            self.processes.remove(process)
            self.names.remove(name)
            del self.clients[name], self.process_of[name]

    def kill(self, name: str) -> None:
        """End a node that was started and does not belong to the run."""
        process = self.process_of.pop(name)
        process.close()
        self.record.add("ended", name, str(process.exit()))
        del self.clients[name]

    def answers(self, name: str, timeout: float, over: Callable[[], bool] = lambda: False) -> bool:
        """Whether a node tells its state within a time [s], or until it is over."""
        return answers(self.clients[name], self.wait, timeout, over)

    def change(self, name: str, change: Change, over: Callable[[], bool] = lambda: False) -> None:
        """Let a node change its state; `over` ends the waiting.

        Raises:
            RunFailure: it does not.
        """
        answer = self.clients[name].request(change)
        timeout = CHANGE_TIMEOUTS[change]
        if not self.wait(lambda: answer.done() or name in self.ends or over(), timeout):
            raise self.failure(name, f"did not {change.verb} within {timeout:.0f} s")
        if name in self.ends:
            raise RunFailure(f"node {name} ended while {change.passing}")
        if not (answer.done() and answer.result().success):
            # It runs on and refuses: it was given something it cannot work with.
            raise self.failure(name, f"did not {change.verb}", USER_ERROR)
        self.clients[name].state = change.goal
        self.record.add(change.done, name)

    def lower(self, name: str, change: Change) -> None:
        """A change on the way down, of a node in the state before it; what cannot be done is noted,
        and the way goes on."""
        if name in self.ends or name not in self.clients:
            return
        if self.clients[name].state != change.start:
            return
        try:
            self.change(name, change)
        except RunFailure as failure:
            self.record.add("failed", name, str(failure))
            say(self.console, str(failure), "yellow")

    def end_all(self) -> None:
        """Ask the processes that still run to end, and kill those that do not."""
        self.end([each for each in self.processes if each.names[0] not in self.ends])

    def end(self, running: Sequence[NodeProcess]) -> None:
        """Ask processes to end, and kill those that do not."""
        for process in running:
            process.send(signal.SIGTERM)
        deadline = time.monotonic() + EXIT_TIMEOUT
        for process in running:
            left = max(deadline - time.monotonic(), 0.0)
            self._wait_unwatched(process.has_ended, left)
            event, detail = "ended", str(process.exit())
            if process.exit() is None:
                process.send(signal.SIGKILL)
                event, detail = "killed", f"{EXIT_TIMEOUT:.0f} s after SIGTERM"
            for name in process.names:
                self.record.add(event, name, detail)

    def compute(self) -> bool:
        """Whether a process of the run computes now, or is suspended."""
        return any(process.is_busy() for process in self.processes)

    def close(self) -> None:
        """Leave no process of the run, and wait for none."""
        for process in {*self.process_of.values()}:
            process.close()

    def are_spare(self, names: Sequence[str]) -> bool:
        """Whether the run continues without these nodes."""
        spare = {part.name for part in self.system.parts if part.spare} | self.standby
        return spare.issuperset(names)

    def failure(self, name: str, what: str, exit_code: int = FAILED) -> RunFailure:
        """Of a node, in its own words."""
        complaint = self.process_of[name].complaint(name)
        why = f": {complaint}" if complaint else ""
        return RunFailure(f"node {name} {what}{why}", exit_code=exit_code)

    def _write_parameters(self, parts: Sequence[Part]) -> None:
        """Of all nodes that are, or ever were, part of the run."""
        for node in parts:
            place = absolute(self.system.namespace, node.name)
            self._sections[place] = {"ros__parameters": dict(node.parameters)}
        text = yaml.safe_dump(self._sections, sort_keys=False)
        (self._directory / _PARAMETERS).write_text(text, encoding="utf-8")

    def _process(self, name: str, parts: Sequence[Part]) -> NodeProcess:
        environment = {"SOFTCR_SUPERVISED": "1"} | NODE_ENVIRONMENT
        process = NodeProcess(
            parts,
            self._directory / _PARAMETERS,
            self._directory / "log" / f"{name}.log",
            environment,
            self.system.namespace,
            self._log_levels,
        )
        self.process_of |= dict.fromkeys(process.names, process)
        return process


def answers(
    client: LifecycleClient, wait: Wait, timeout: float, over: Callable[[], bool] = lambda: False
) -> bool:
    """Whether a node tells its state in time; a killed one has services, but no answer.

    Args:
        client: of the node, whose state it notes.
        wait: spins the node that asks until a condition holds; whether it did within a time [s].
        timeout: [s].
        over: ends the waiting.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and not over():
        if not wait(lambda: client.is_ready() or over(), deadline - time.monotonic()):
            break
        if not client.is_ready():
            break
        answer = client.request_state()
        if wait(answer.done, 1.0):
            client.state = answer.result().current_state.id
            return True
    return False
