"""Processes, threads and ROS contexts of tests, and launch files as `ros2 launch` runs them."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOFTCR = str(Path(sys.executable).with_name("softcr"))
TIMEOUT = 60.0  # of what will come, on a busy machine [s]


def until(condition, what="it", timeout=TIMEOUT, again=lambda: None):
    """Wait until a condition holds, doing something again and again; returns its value."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never came: {what}"
        again()
        time.sleep(0.005)
    return value


def free_port():
    """A port of this machine that is free for TCP and UDP."""
    with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", tcp.getsockname()[1]))
        return tcp.getsockname()[1]


@contextmanager
def ros(**options):
    """A ROS context of `rclpy.init`'s options, shut down afterwards."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, **options)
    try:
        yield context
    finally:
        context.try_shutdown()


@contextmanager
def running(device):
    """A device whose `run(stop)` turns in a thread meanwhile."""
    stop = threading.Event()
    thread = threading.Thread(target=device.run, args=(stop,))
    thread.start()
    try:
        yield device
    finally:
        stop.set()
        thread.join()


class Peer:
    """A node beside those under test, which says, hears and asks; it turns in `until`, or, where
    it is `threaded`, by itself."""

    def __init__(self, name="peer", lockstep=False, threaded=False, **options):
        import rclpy

        self.context = rclpy.Context()
        rclpy.init(context=self.context, **options)
        self.node = rclpy.create_node(name, context=self.context)
        self.executor = rclpy.executors.SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self._lockstep, self._publishers, self._clients = lockstep, {}, {}
        self._thread = threading.Thread(target=self.executor.spin, daemon=True)
        if threaded:
            self.start()

    def start(self):
        """Turn in a thread from now on."""
        self._thread.start()

    def stop(self):
        """Turn no more."""
        self.executor.shutdown()
        if self._thread.is_alive():
            self._thread.join()

    def hear(self, topic, take, lockstep=None, **options):
        """Hand each message of a topic of the table over."""
        from softcr_runtime.wire.topics import TOPICS, qos

        profile = qos(topic, self._lockstep if lockstep is None else lockstep)
        profile.depth = 1000
        self.node.create_subscription(
            TOPICS[topic].message_class(), topic, take, profile, **options
        )

    def publisher(self, topic):
        """The publisher of a topic of the table."""
        from softcr_runtime.wire.topics import TOPICS, qos

        if topic not in self._publishers:
            self._publishers[topic] = self.node.create_publisher(
                TOPICS[topic].message_class(), topic, qos(topic, self._lockstep)
            )
        return self._publishers[topic]

    def end(self, topic):
        """Offer a topic no more: in the thread that spins, which may wait for its events."""
        self.executor.create_task(self.node.destroy_publisher, self._publishers.pop(topic))

    def now(self):
        """The node's time [ns]."""
        return self.node.get_clock().now().nanoseconds

    def spin(self, seconds, until=lambda: False):
        """Turn for a time, or until a condition holds."""
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            if self._thread.is_alive():
                time.sleep(0.005)
            else:
                self.executor.spin_once(timeout_sec=0.02)

    def until(self, condition, what="it", again=lambda: None):
        """Wait until a condition holds, doing something again and again; returns its value."""
        return until(condition, what, again=lambda: (again(), self.spin(0.01, condition)))

    def ask(self, kind, name, request):
        """The answer of a service, once it is known."""
        client = self._clients.setdefault(name, self.node.create_client(kind, name))
        self.until(client.service_is_ready, name)
        answer = client.call_async(request)
        self.until(answer.done, f"the answer of {name}")
        return answer.result()

    def close(self):
        """End the node and its context."""
        self.stop()
        self.node.destroy_node()
        self.context.try_shutdown()


_MARK = "SOFTCR_TEST_LAUNCH"
_RUNNER = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
_, manner, file, *arguments = sys.argv
service = LaunchService(noninteractive=manner == "noninteractive")
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
    PythonLaunchDescriptionSource(file),
    launch_arguments=[argument.split(":=", 1) for argument in arguments])]))
sys.exit(service.run())
"""
"""What `ros2 launch FILE ARGUMENTS` does, without ros2cli; returns its exit code."""


class Launched:
    """One launch of a launch file, whose lines are collected.

    Attributes:
        lines: what it has printed so far.
    """

    def __init__(
        self,
        file: str,
        results: Path,
        *arguments: str,
        manner: str = "interactive",
        devices: ExitStack | None = None,
    ):
        """Launch.

        Args:
            file: of the folder launch.
            results: where the run's directory is made; must be empty.
            arguments: for the launch, NAME:=VALUE.
            manner: "noninteractive" where no terminal tells Ctrl-C to the whole group.
            devices: what the launch works with; closed after it.
        """
        self._devices = devices or ExitStack()
        self._mark = uuid.uuid4().hex
        self._results = results
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", _RUNNER, manner, str(ROOT / "launch" / file)),
                *(f"results:={results}", *arguments),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "120", _MARK: self._mark},
            start_new_session=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @property
    def output(self) -> str:
        """What it has printed so far, as one text."""
        return "".join(self.lines)

    def record(self) -> dict:
        """system.json of the run; empty before there is one."""
        for path in self._results.glob("[0-9]*/system.json"):
            return json.loads(path.read_text())
        return {}

    def wait_for(self, event: str, timeout: float = 200.0) -> None:
        """Wait until the run's record has an event."""
        deadline = time.monotonic() + timeout
        while not any(each["event"] == event for each in self.record().get("events", [])):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise AssertionError(f"no {event} within {timeout} s: {self.output}")
            time.sleep(0.1)

    def pid_of(self, node: str) -> int:
        """The process of a node."""
        started = [e for e in self.record()["events"] if e["event"] == "started"]
        return int(next(e["detail"] for e in started if e["node"] == node).split()[1])

    def interrupt(self) -> None:
        """Ctrl-C in the terminal, which tells all of its group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def exit_code(self, timeout: float = 200.0) -> int:
        """Its exit code, once it has ended; a hang is an error, and leaves nothing either."""
        try:
            return self.process.wait(timeout)
        finally:
            self._reading.join(1.0)

    def living(self) -> list[tuple[int, str]]:
        """Processes that the launch began and that still live: their ids and command lines."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # ended meanwhile, or not ours
                continue
            if words and f"{_MARK}={self._mark}".encode() in environment:
                found.append((int(folder.name), words.strip()))
        return found

    def orphans(self, timeout: float = 0.0) -> list[str]:
        """The command lines of those that still live after a time [s]."""
        deadline = time.monotonic() + timeout
        while self.living() and time.monotonic() < deadline:
            time.sleep(0.1)
        return [words for _, words in self.living()]

    def close(self) -> None:
        """Kill whatever is left."""
        for pid, _ in self.living():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._devices.close()

    def _read(self) -> None:
        assert self.process.stdout is not None  # a pipe
        for line in self.process.stdout:
            self.lines.append(line)

    def __enter__(self) -> "Launched":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
