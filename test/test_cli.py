"""The `softcr` command itself: what it lists."""

import re

import pytest

from softcr_tools.cli import COMMANDS, main


def test_help_lists_every_command_apart_from_what_it_does(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    listed = re.findall(r"^  (\S+)  +(\S.*)$", capsys.readouterr().out, re.MULTILINE)
    assert {(name, run.__doc__) for name, run in COMMANDS.items()} <= set(listed)
