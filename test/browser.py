"""A headless Chromium, driven over its DevTools protocol.

viser brings the websocket client; Playwright would bring 45 MB and a Node.js of its own.
"""

import base64
import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path

from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIMEOUT = 300.0  # of what will come, on a busy machine [s]


def find_browser() -> str | None:
    """Path of a browser; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of one browser."""

    def __init__(self, executable: str, profile: Path, width: int = 1600, height: int = 900):
        self._log = (profile / "chromium.log").open("w")
        self._process = subprocess.Popen(
            [
                executable,
                *("--headless=new", "--no-sandbox", "--remote-debugging-port=0"),
                *("--no-first-run", "--disable-background-networking", "--disable-extensions"),
                # WebGL in software, by the processor
                *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
                *("--disable-dev-shm-usage", "--hide-scrollbars"),
                *(f"--window-size={width},{height}", f"--user-data-dir={profile}", "about:blank"),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self._numbers = itertools.count(1)
        port = self._until(lambda: self._port(profile), "DevTools port")
        self._socket = connect(f"ws://127.0.0.1:{port[0]}{port[1]}", max_size=None)
        target = self._send("Target.createTarget", url="about:blank")
        attached = self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]

    @staticmethod
    def _port(profile: Path) -> list[str] | None:
        """Port and path, once Chromium has written both."""
        file = profile / "DevToolsActivePort"
        lines = file.read_text().splitlines() if file.exists() else []
        return lines if len(lines) == 2 else None

    def open(self, url: str) -> None:
        """Go to a page."""
        self._send("Page.navigate", self._session, url=url)

    def run(self, script: str):
        """The value of a JavaScript expression."""
        answer = self._send(
            "Runtime.evaluate", self._session, expression=script, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def text(self) -> str:
        """What the page says."""
        return self.run("document.body ? document.body.innerText : ''") or ""

    def until(self, script: str, what: str):
        """The first true value of an expression."""
        return self._until(lambda: self.run(script), what)

    def until_text(self, *texts: str) -> None:
        """Wait until all texts are on the page at once."""
        self._until(lambda: all(map(self.text().__contains__, texts)), f"texts {texts}")

    def press(self, key: str, code: int) -> None:
        """Press a key in what has the focus; `code` as in Windows."""
        for kind in ("keyDown", "keyUp"):
            self._send(
                "Input.dispatchKeyEvent", self._session,
                type=kind, key=key, code=key, windowsVirtualKeyCode=code,
            )  # fmt: skip

    def screenshot(self, path: Path) -> None:
        """What is to be seen, as PNG."""
        data = self._send("Page.captureScreenshot", self._session, format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """End it."""
        try:
            self._send("Browser.close")
            self._process.wait(10.0)
        finally:
            self._process.kill()
            self._process.wait()
            self._log.close()

    def _send(self, method: str, session: str | None = None, **parameters):
        number = next(self._numbers)
        request = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps(request | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(self._socket.recv(TIMEOUT))
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _until(self, condition, what: str):
        deadline = time.monotonic() + TIMEOUT
        while not (value := condition()):
            assert time.monotonic() < deadline, f"never came: {what}"
            assert self._process.poll() is None, "the browser has ended"
            time.sleep(0.1)
        return value
