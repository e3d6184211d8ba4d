"""What a Net F/T box tells of itself over HTTP, asked now and then: its page of settings.

The elements of `netftapi2.xml` are those of ATI's manual (9620-05-NET FT, "System settings XML
pages"): values of an array stand between semicolons. They are read one by one, for a page from the
network need not be XML, nor be in the encoding that it tells; one that is missing is unknown.
"""

import http.client
import math
import re
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

PAGE = "/netftapi2.xml"

_LARGEST_PAGE = 1 << 16  # [byte]
_LONGEST_TEXT = 64
_TIME = 1.0  # [s] for an answer
_PERIOD = 5.0  # [s] between questions
_ELEMENT = re.compile(r"<(\w{1,32})>([^<>]{0,1024})</\1>")


class BoxError(Exception):
    """A box that does not tell its settings; says why in a line."""


@dataclass(frozen=True)
class BoxSettings:
    """Settings of a box, as it told them; None and empty texts for what it did not.

    Attributes:
        product: name of the box.
        serial, firmware: of its board.
        configuration: number of the active one, and its name.
        calibration_serial: of the sensor's calibration in it.
        counts_per_force, counts_per_moment: in the active configuration.
        tool_transform: (6,) by which the box moves and turns the frame it reports in.
        tool_units: of its displacements and of its angles.
        software_bias: (6,) that the box subtracts from its strain gages [counts].
        rate: of records [Hz].
        filter: number of the box's low-pass filter, 0 for none.
    """

    product: str = ""
    serial: str = ""
    firmware: str = ""
    configuration: str = ""
    calibration_serial: str = ""
    counts_per_force: float | None = None
    counts_per_moment: float | None = None
    tool_transform: tuple[float, ...] | None = None
    tool_units: tuple[str, str] = ("", "")
    software_bias: tuple[int, ...] | None = None
    rate: float | None = None
    filter: int | None = None

    @property
    def is_transformed(self) -> bool:
        """Whether the box reports in another frame than the sensor's own."""
        return any(self.tool_transform or ())

    @property
    def is_biased(self) -> bool:
        """Whether the box subtracts a bias of its own."""
        return any(self.software_bias or ())

    @property
    def transform_words(self) -> str:
        """The tool transform with its units, as 0 0 10 mm, 0 0 90 degrees."""
        if self.tool_transform is None:
            return "unknown"
        numbers = [f"{value:g}" for value in self.tool_transform]
        distance, angle = self.tool_units
        return f"{' '.join(numbers[:3])} {distance}, {' '.join(numbers[3:])} {angle}"


def read_page(page: bytes) -> BoxSettings:
    """Settings of a page.

    Raises:
        BoxError: it is none of a Net F/T.
    """
    if len(page) > _LARGEST_PAGE:
        raise BoxError("its page is too long")
    found: dict[str, str] = dict(_ELEMENT.findall(page.decode("iso-8859-1")))
    if "cfgcpf" not in found:  # counts per force: without it counts are not newtons
        raise BoxError("serves no calibration: not a Net F/T?")
    transform, bias = _numbers(found.get("cfgtfx")), _numbers(found.get("setbias"))
    number, name = _text(found.get("setcfgsel")), _text(found.get("cfgnam"))
    filter_code = _number(found.get("setuserfilter"))
    return BoxSettings(
        product=_text(found.get("prodname")),
        serial=_text(found.get("mfgdigsn")),
        firmware=_text(found.get("mfgdigver")),
        configuration=f"{number} ({name})" if name else number,
        calibration_serial=_text(found.get("cfgcalsn")),
        counts_per_force=_number(found.get("cfgcpf")),
        counts_per_moment=_number(found.get("cfgcpt")),
        tool_transform=transform,
        tool_units=(_text(found.get("scfgtdu")), _text(found.get("scfgtau"))),
        software_bias=None if bias is None else tuple(int(value) for value in bias),
        rate=_number(found.get("comrdtrate")),
        filter=None if filter_code is None else int(filter_code),
    )


def ask_box(host: str, port: int, timeout: float = _TIME) -> BoxSettings:
    """Settings of the box at an address.

    Raises:
        BoxError: it does not answer within `timeout` [s], or with something else.
    """
    try:
        with closing(http.client.HTTPConnection(host, port, timeout=timeout)) as connection:
            connection.request("GET", PAGE)
            answer = connection.getresponse()
            page = _read(answer, time.monotonic() + timeout)
    except TimeoutError:
        raise BoxError(f"no answer within {timeout:g} s") from None
    except (http.client.HTTPException, ValueError) as error:  # its text may be foreign
        raise BoxError(f"answers nonsense ({type(error).__name__}): not a Net F/T?") from None
    except OSError as error:
        raise BoxError(error.strerror or "no answer") from None
    if answer.status != http.HTTPStatus.OK:
        raise BoxError(f"HTTP status {answer.status}: not a Net F/T?")
    return read_page(page)


def _read(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    """A page that comes before a deadline [s], cut off where it is too long."""
    page = bytearray()
    while len(page) <= _LARGEST_PAGE and (piece := answer.read1(4096)):
        page += piece
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(page)


class BoxWatch:
    """Asks a box for its settings now and then, in a thread of its own: it may be slow to answer.

    Attributes:
        settings: as last told; None before.
        problem: why the last question had no answer; empty if it had.
    """

    def __init__(self, ask: Callable[[], BoxSettings], period: float = _PERIOD):
        """Asks nothing yet.

        Args:
            ask: the question; raises BoxError.
            period: between questions [s].
        """
        self.settings: BoxSettings | None = None
        self.problem = "not asked yet"
        self._ask, self._period = ask, period
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Begin to ask."""
        self._thread = threading.Thread(target=self._run, name="net-ft-settings", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ask no more; any number of times."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2.0 * _TIME)  # it may be waiting for the box
            self._thread = None

    def look(self) -> None:
        """Ask once, now."""
        try:
            self.settings, self.problem = self._ask(), ""
        except BoxError as error:
            self.problem = str(error)

    def _run(self) -> None:
        self.look()
        while not self._stop.wait(self._period):
            self.look()


def _text(value: str | None) -> str:
    """A short line."""
    shown = "".join(each if each.isprintable() else " " for each in value or "")
    return shown.strip()[:_LONGEST_TEXT]


def _number(value: str | None) -> float | None:
    numbers = _numbers(value, 1)
    return None if numbers is None else numbers[0]


def _numbers(value: str | None, count: int = 6) -> tuple[float, ...] | None:
    """As many finite numbers as must stand there; None if they do not."""
    words = re.split(r"[;,\s]+", (value or "").strip())
    try:
        numbers = tuple(map(float, words))
    except ValueError:
        return None
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        return None
    return numbers
