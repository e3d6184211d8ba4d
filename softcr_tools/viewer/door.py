"""Who may open the live view: requests are checked before viser sees them.

A WebSocket may be opened by any page that a browser shows, wherever that page came from (RFC 6455,
section 10.2), so an address that only this machine reaches is no protection. Each request must

- name this machine in `Host`: a foreign name that was pointed at this address (DNS rebinding) is
  refused;
- come from the view's own page where it names an `Origin`;
- carry the token: in the URL, or in the cookie that the page with that URL sets, as Jupyter does.
"""

import ipaddress
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import websockets.asyncio.server
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from softcr_models.errors import UserError

_TOKEN_BYTES = 24
_SERVE = "websockets.asyncio.server.serve"  # by this name viser finds it
_PROTECTION = {
    "Referrer-Policy": "no-referrer",  # the token is in the URL
    "Content-Security-Policy": "frame-ancestors 'none'",  # no page may lay itself over the buttons
}

Answer = Callable[[Any, Request], Response | None]
"""What a server makes of a request: a response, or None to open a WebSocket."""


class Door:
    """Lets in whoever has the token, and nobody else.

    Attributes:
        token: the secret of this run, to be put into the URL as `?token=...`.
    """

    def __init__(self, port: int):
        """A new token; `port` keeps the cookies of several views of one machine apart."""
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._cookie = f"softcr-view-{port}"

    def refusal(self, path: str, headers: Headers) -> str:
        """Why a request is refused, in a sentence; empty where it is let in.

        Args:
            path: of the request, with its query.
            headers: of the request.
        """
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or not _is_this_machine(hosts[0]):
            return "the request must name this machine as its host"
        if origins and origins != [f"http://{hosts[0]}"]:
            return "the request comes from another page than the live view's own"
        if not (self._in_url(path) or self._in_cookie(headers)):
            return "open the URL that softcr view has printed, which ends in ?token=..."
        return ""

    def guarded(self, answer: Answer) -> Answer:
        """A server's answer to the requests that are let in; to the others, status 403."""

        def checked(connection: Any, request: Request) -> Response | None:
            if why := self.refusal(request.path, request.headers):
                refused: Response = connection.respond(
                    HTTPStatus.FORBIDDEN, f"softcr view: {why}\n"
                )
                return refused
            response = answer(connection, request)
            if response is not None:
                response.headers.update(_PROTECTION)
                if self._in_url(request.path):
                    rules = "Path=/; HttpOnly; SameSite=Strict"
                    response.headers["Set-Cookie"] = f"{self._cookie}={self.token}; {rules}"
            return response

        return checked

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Guard the one server that is started meanwhile, for which viser offers no way.

        Raises:
            UserError: no server was started that way, so that nothing is guarded.
        """
        serve, guarded = websockets.asyncio.server.serve, []

        def serve_guarded(*arguments: Any, process_request: Answer, **options: Any) -> Any:
            guarded.append(True)
            return serve(*arguments, process_request=self.guarded(process_request), **options)

        with patch(_SERVE, serve_guarded):
            yield
        if not guarded:
            raise UserError(
                "this release of viser starts its server in another way, so that the live view "
                "would not be protected: install the release that constraints.txt names"
            )

    def _in_url(self, path: str) -> bool:
        return any(map(self._is_token, parse_qs(urlsplit(path).query).get("token", ())))

    def _in_cookie(self, headers: Headers) -> bool:
        cookies = ";".join(headers.get_all("Cookie")).split(";")
        pairs = (each.strip().partition("=") for each in cookies)
        return any(name == self._cookie and self._is_token(value) for name, _, value in pairs)

    def _is_token(self, said: str) -> bool:
        return secrets.compare_digest(said.encode(errors="replace"), self.token.encode())


def _is_this_machine(host: str) -> bool:
    """Whether a `Host` is an address, which no foreign name can hide behind, or our own name."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:  # a bracket that is not closed
        return False
    if name in {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
