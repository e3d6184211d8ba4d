"""The one exception for mistakes a user can mend, and a hint for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake in a file, an option or a device name; `str(error)` is the line to show.

    The line says what is wrong, where, which value was found and what is allowed. Of a file in
    which several things are wrong there is a line for each.
    """


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """`did you mean NAME? ` with the known name that is nearest to a misspelt one; empty where none
    is near. Another number, of a version perhaps, is no misspelt one."""
    named = any(map(str.isalpha, str(word)))
    near = get_close_matches(str(word), list(known), n=1) if named else []
    return f"did you mean {near[0]}? " if near else ""
