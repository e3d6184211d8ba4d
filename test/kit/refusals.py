"""Refusals that tell a person what is wrong in one line."""

from contextlib import contextmanager

import pytest

from softcr_models.errors import UserError


@contextmanager
def one_line(match, kind=UserError):
    """What is inside raises, and says so in one line that matches."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert "\n" not in str(caught.value)
