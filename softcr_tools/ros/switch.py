"""`softcr call switch CONTROLLER`: the request of the one service that is told by words."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import complain, show
from softcr_runtime.ros.executor.exchange import SERVICE
from softcr_runtime.ros.running_systems import domain, running_namespaces

TYPE = "rcl_interfaces/srv/SetParametersAtomically"
TIMEOUT = 180.0
"""The new controller is started, and may compile, before it is answered [s]."""


def is_switch(name: str, kind: str) -> bool:
    """Whether a service of a full name and a type is that of a supervisor."""
    return name.rpartition("/")[2] == SERVICE and kind == TYPE


def fill_switch(request: Any, words: Sequence[str]) -> None:
    """Write `CONTROLLER NAME=VALUE ...` into a request; texts that its node will read.

    Raises:
        UserError: no controller is named, or a word is no parameter.
    """
    from rclpy.parameter import Parameter

    values: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            name, text = "controller", word
        if not name or name in values:
            raise UserError(f"{word!r}: must be CONTROLLER, and NAME=VALUE of its parameters")
        values[name] = _from_here(name, text)
    if not values.get("controller"):
        raise UserError("switch: needs the name of a controller, or package.module:Class")
    request.parameters = [Parameter(n, value=text).to_parameter_msg() for n, text in values.items()]


def ended_run(service: str) -> Callable[[], bool]:
    """What tells at once that the run has ended whose supervisor offers a service; of another
    machine nothing tells it but DDS, after some time.

    Args:
        service: full name.
    """
    namespace = service.rpartition("/")[0] or "/"
    if namespace not in running_namespaces(domain()):
        return lambda: False
    return lambda: namespace not in running_namespaces(domain())


def tell(answer: Any) -> bool:
    """Print what a supervisor answered; whether the controller was exchanged."""
    result = answer["result"]
    if result["successful"]:
        show(result["reason"])
    else:
        complain(f"not exchanged: {result['reason']}")
    return bool(result["successful"])


def _from_here(name: str, text: str) -> str:
    """Files by their absolute paths: the system runs in another directory."""
    path, colon, rest = text.partition(":")
    if name == "controller" and colon and path.endswith(".py"):
        return f"{Path(path).resolve()}:{rest}"
    if name == "params_file" and text:
        if not Path(text).is_file():
            raise UserError(f"params_file = {text!r}: no such file")
        return str(Path(text).resolve())
    return text
