"""A short-lived ROS node that finds names, asks services and hears topics, and offers nothing."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import FAILED, complain
from softcr_runtime.ros.context import ros_context, whereabouts
from softcr_runtime.settings.node_settings import Seconds
from softcr_runtime.wire.namespaces import Namespace

_SLICE = 0.05  # between two looks at what is waited for [s]
ANNOUNCED = 3.5
"""DDS tells of a new node at once and again every 3 s: one not heard by then is not there [s]."""
_QUIET = 0.5  # without a new name, what was found is all there is [s]
_AGAIN = 0.5  # after which a question is asked again [s]
_ACQUAINTANCE = 1.5  # for a server to know this client [s]
_LAST_WORDS = 0.5  # of a server that has ended, to come [s]
_MOST_NAMES = 8  # in one line
_OF_EVERY_NODE = {
    "describe_parameters", "get_parameter_types", "get_parameters", "list_parameters",
    "set_parameters", "set_parameters_atomically", "get_type_description", "change_state",
    "get_state", "get_available_states", "get_available_transitions", "get_transition_graph",
}  # fmt: skip
_OF_ROS = {"/parameter_events", "/rosout"}


class Connection(BaseModel):
    """Where a command looks for names, and how long it waits."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    namespace: Namespace = Field(
        "", description="namespace of names that do not begin with a slash, and of what is listed"
    )
    timeout: Seconds = Field(
        5.0, gt=0.0, le=3600.0, description="longest wait for a name or an answer"
    )


class Unanswered(Exception):
    """Nothing came in time; `str(error)` is the one line to show."""


@dataclass(frozen=True)
class Graph:
    """The names that others have, without those of this process.

    Attributes:
        nodes: full names, sorted; twice where two nodes have one name.
        topics: types by full name.
        services: types by full name, of services that somebody offers.
        servers: the nodes that offer a service, by its name.
    """

    nodes: tuple[str, ...] = ()
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    services: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    servers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def beside(what: str, connection: Connection, act: Callable[["Participant"], int]) -> int:
    """Do something as a ROS node beside the running ones.

    Args:
        what: the command's name.
        connection: names and time.
        act: what to do; returns the exit code.

    Returns:
        The exit code of `act`; 1 after one line on stderr where nothing came in time.

    Raises:
        UserError: as `act` does, or ROS does not start.
    """
    with ros_context():
        participant = Participant(what, connection)
        try:
            return act(participant)
        except Unanswered as error:
            complain(str(error))
            return FAILED
        finally:
            participant.close()


class Participant:
    """The node of a command. Its name begins with an underscore: ROS tools hide such nodes."""

    def __init__(self, what: str, connection: Connection) -> None:
        """Join the default context.

        Args:
            what: the command's name, for the node's.
            connection: names and time.
        """
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self.connection = connection
        self.node = rclpy.create_node(
            f"_softcr_{what}_{os.getpid()}", start_parameter_services=False, enable_rosout=False
        )
        self._own_name = self.node.get_fully_qualified_name()
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)

    def close(self) -> None:
        """Leave."""
        self._executor.shutdown()
        self.node.destroy_node()

    def be_patient(self, timeout: float) -> None:
        """Wait longer for answers, unless the user says how long [s]."""
        if "timeout" not in self.connection.model_fields_set:
            self.connection = self.connection.model_copy(update={"timeout": timeout})

    # --- names --------------------------------------------------------------------------------

    def full_name(self, word: str) -> str:
        """A name with all its namespaces; one that begins with a slash has them already."""
        parts = word if word.startswith("/") else f"{self.connection.namespace}/{word}"
        return "/" + "/".join(part for part in parts.split("/") if part)

    def in_namespace(self, name: str) -> bool:
        """Whether a full name lies in the connection's namespace."""
        return not self.connection.namespace.strip("/") or name.startswith(self.full_name("") + "/")

    def graph(self) -> Graph:
        """What is known now."""
        nodes: list[str] = []
        services: dict[str, tuple[str, ...]] = {}
        servers: dict[str, tuple[str, ...]] = {}
        for name, namespace in self.node.get_node_names_and_namespaces():
            full = f"{namespace.rstrip('/')}/{name}"
            if full == self._own_name:
                continue
            nodes.append(full)
            try:
                offered = self.node.get_service_names_and_types_by_node(name, namespace)
            except Exception:  # it has just gone; its kind is not public
                continue
            for service, types in offered:
                services[service] = tuple(types)
                servers[service] = (*servers.get(service, ()), full)
        topics = {name: tuple(types) for name, types in self.node.get_topic_names_and_types()}
        return Graph(tuple(sorted(nodes)), topics, services, servers)

    def settled_graph(self) -> Graph:
        """What is known once no new name comes, or the timeout is over."""
        return self._looked(lambda _: False)

    def found(self, kind: str, word: str) -> tuple[str, Graph]:
        """A name that exists, and the names around it.

        Args:
            kind: "node", "topic" or "service".
            word: as the user typed it.

        Raises:
            UserError: nobody has this name; the line has the nearest that exist.
        """
        wanted = self.full_name(word)
        graph = self._looked(lambda known: wanted in getattr(known, f"{kind}s"))
        names = getattr(graph, f"{kind}s")
        if wanted in names:
            return wanted, graph
        raise UserError(f"{kind} {wanted}: unknown; {instead(word, wanted, names, kind)}")

    def is_offered(self, service: str) -> bool:
        """Whether a service of this full name exists; a new node's are heard of one by one."""
        return service in self._looked(lambda known: service in known.services).services

    def _looked(self, enough: Callable[[Graph], bool]) -> Graph:
        """The graph when it is enough, or when there are nodes and no others are to be expected."""
        began = changed = time.monotonic()
        graph = Graph()
        while not enough(graph):
            self.wait(lambda: False, _SLICE)
            before, graph, now = graph, self.graph(), time.monotonic()
            changed = changed if graph == before else now
            complete = now - began > ANNOUNCED and now - changed > _QUIET
            if now - began > self.connection.timeout or (graph.nodes and complete):
                break
        return graph

    # --- asking and hearing -------------------------------------------------------------------

    def wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Spin until a condition holds; returns whether it did within a time [s]."""
        deadline = time.monotonic() + timeout
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0.0:
                return False
            self._executor.spin_once(timeout_sec=min(left, _SLICE))
        return True

    def read(self, service: str, kind: Any, request: Any) -> Any:
        """Ask a service that changes nothing, again and again until an answer comes.

        Args:
            service: full name.
            kind: class of the service.
            request: of that class.

        Raises:
            Unanswered: nobody offers it, or no answer came in time.
        """
        return self._answer(service, kind, request, self.connection.timeout, _AGAIN)

    def ask(
        self,
        service: str,
        kind: Any,
        request: Any,
        server: str,
        has_ended: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Call a service once and wait for its answer.

        An answer is lost where the server has not discovered this client yet, and being ready
        tells only of the other direction. A server discovers clients in the order in which they
        were made: once it answers a later one, it knows the first.

        Args:
            service: full name.
            kind: class of the service.
            request: of that class.
            server: the node that offers it.
            has_ended: whether it is known to have ended, before DDS tells it.

        Raises:
            Unanswered: nobody offers it any more, or the answer did not come in time.
        """
        from rcl_interfaces.srv import GetParameterTypes as Types

        def know_us() -> None:
            with suppress(Unanswered):  # without this service, or busy: the call may wait there
                question = f"{server}/get_parameter_types"
                self._answer(question, Types, Types.Request(), _ACQUAINTANCE, _AGAIN)

        timeout = self.connection.timeout
        return self._answer(service, kind, request, timeout, timeout, know_us, has_ended)

    def _answer(
        self,
        service: str,
        kind: Any,
        request: Any,
        timeout: float,
        again: float,
        before: Callable[[], None] = lambda: None,
        has_ended: Callable[[], bool] = lambda: False,
    ) -> Any:
        """The answer to a request, which is sent again after `again` [s]."""

        def is_over() -> bool:
            return has_ended() or not client.service_is_ready()

        deadline = time.monotonic() + timeout
        client = self.node.create_client(kind, service)
        try:
            if not self.wait(client.service_is_ready, timeout):
                raise Unanswered(f"service {service}: no node offered it within {timeout:g} s")
            before()
            while (left := deadline - time.monotonic()) > 0.0:
                answer = client.call_async(request)
                if self._is_answered(answer, min(again, left), is_over):
                    return answer.result()
                if is_over():
                    raise Unanswered(f"service {service}: who offered it has ended, unanswered")
            raise Unanswered(
                f"service {service}: no answer within {timeout:g} s; what was asked may still be "
                "under way (--timeout waits longer)"
            )
        finally:
            self.node.destroy_client(client)

    def _is_answered(self, answer: Any, timeout: float, is_over: Callable[[], bool]) -> bool:
        """Whether a future came within a time [s], or soon after it was over with the server."""
        self.wait(lambda: answer.done() or is_over(), timeout)
        return self.wait(answer.done, _LAST_WORDS if is_over() else 0.0)

    def publishers(self, topic: str) -> list[Any]:
        """rclpy's `TopicEndpointInfo` of whoever publishes a topic."""
        return self._others(self.node.get_publishers_info_by_topic(topic))

    def subscriptions(self, topic: str) -> list[Any]:
        """rclpy's `TopicEndpointInfo` of whoever hears a topic, this command left out."""
        return self._others(self.node.get_subscriptions_info_by_topic(topic))

    def _others(self, endpoints: Iterable[Any]) -> list[Any]:
        return [each for each in endpoints if node_of(each) != self._own_name]

    def hear(
        self, topic: str, kind: Any, receive: Callable[[Any], None], raw: bool = False
    ) -> None:
        """Subscribe as the topic's publishers offer it: reliable and latched where all of them are.

        Args:
            topic: full name.
            kind: class of its messages.
            receive: is called with each message, in `wait`.
            raw: whether with its bytes.
        """
        from rclpy.event_handler import SubscriptionEventCallbacks
        from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

        offers = [each.qos_profile for each in self.publishers(topic)]
        reliable = offers and all(each.reliability == ReliabilityPolicy.RELIABLE for each in offers)
        latched = offers and all(
            each.durability == DurabilityPolicy.TRANSIENT_LOCAL for each in offers
        )
        profile = QoSProfile(
            depth=100,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        quiet = SubscriptionEventCallbacks(use_default_callbacks=False)  # prints into the table
        self.node.create_subscription(kind, topic, receive, profile, event_callbacks=quiet, raw=raw)


def node_of(endpoint: Any) -> str:
    """Full name of the node behind rclpy's `TopicEndpointInfo`."""
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}"


def is_plumbing(name: str) -> bool:
    """Whether a topic or service is one that ROS gives every node, or is hidden."""
    last = name.rpartition("/")[2]
    return (
        name in _OF_ROS
        or last in _OF_EVERY_NODE | {"transition_event"}
        or any(part.startswith("_") for part in name.split("/"))
    )


def nearest(word: str, names: Iterable[str]) -> list[str]:
    """The names that a word was most likely meant to be, at most three."""
    lower = {name.lower(): name for name in names}
    close = get_close_matches(word.lower(), list(lower), n=3, cutoff=0.75)
    return [lower[each] for each in close]


def instead(word: str, wanted: str, names: Collection[str], kind: str) -> str:
    """What to say to a name that nobody has: the nearest, or else some, and where one looked.

    Args:
        word: as it was typed.
        wanted: its full name.
        names: those that exist, full.
        kind: of them, in a word.
    """
    where = f"looked on {whereabouts()}"
    shown = sorted({name for name in names if not is_plumbing(name)})
    below = [name for name in shown if name.endswith("/" + word.strip("/"))]
    near = (below + [name for name in nearest(wanted, names) if name not in below])[:3]
    if near:
        return f"did you mean {' or '.join(near)}? ({where})"
    if shown:
        more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
        return f"known are {', '.join(shown[:_MOST_NAMES])}{more} ({where})"
    return f"no {kind} is visible at all ({where}): is the system running?"
