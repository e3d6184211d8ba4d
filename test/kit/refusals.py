"""Refusals that tell a person what is wrong in one line."""

from contextlib import contextmanager

import pytest
import yaml

from softcr_models.errors import UserError


@contextmanager
def one_line(match=None, kind=UserError, *, says=""):
    """What is inside raises, and says so in one line that matches, and that holds what it says."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert "\n" not in str(caught.value)
    assert says in str(caught.value)


def line_about(load, path, *content):
    """The one line with which a path is refused, to which content is written before where told."""
    if content:
        path.write_text(yaml.safe_dump(*content))
    with one_line() as caught:
        load(path)
    return str(caught.value)
