"""Calls that a user's error refuses."""

from kit.refusals import one_line


def refused(*cases):
    """Each case is a call, and what the one line matches with which it is refused."""
    for call, line in cases:
        with one_line(line):
            call()
