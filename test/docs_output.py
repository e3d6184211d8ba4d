"""What a page says that a command prints, compared with what it does print."""

import difflib
import re

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d)")
WITHIN = 0.05
"""Of a number's own size, by which another processor may print it differently; at least one unit of
the last digit that the page shows. Whole numbers are counts, and must be equal."""


def problem_of_output(told: str, printed: str, within: float = WITHIN) -> str | None:
    """What is wrong with an output block; None: nothing.

    Each of its lines must begin a printed line, in this order; other lines may be printed between
    them. Words must be equal, the space between them need not.

    Args:
        told: the block.
        printed: by the command.
        within: relative tolerance of numbers.
    """
    waiting = iter(printed.splitlines())
    for line in filter(str.strip, told.splitlines()):
        if not any(_same(line, other, within) for other in waiting):
            near = difflib.get_close_matches(line, printed.splitlines(), 1, cutoff=0.0)
            return f"{line!r} is not printed, but {near[0] if near else 'nothing'!r}"
    return None


def _same(told: str, printed: str, within: float) -> bool:
    words = _words(told)
    if words != _words(printed)[: len(words)]:
        return False
    pairs = zip(_NUMBER.findall(told), _NUMBER.findall(printed), strict=False)
    return all(abs(float(a) - float(b)) <= _tolerance(a, within) for a, b in pairs)


def _words(line: str) -> list[str]:
    return _NUMBER.sub("#", line).split()


def _tolerance(number: str, within: float) -> float:
    digits, _, exponent = number.partition("e")
    _, point, behind = digits.partition(".")
    if not point and not exponent:
        return 0.0  # a count
    return max(within * abs(float(number)), 1.01 * 10.0 ** (int(exponent or 0) - len(behind)))
