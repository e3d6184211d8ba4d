"""The fault matrix of docs/troubleshooting.md is what the tests of its cells say."""

from pathlib import Path

import pytest
import test_force_torque
import test_mocap_session
import test_valve_driver

from softcr_hardware.emulation.faults import FAULT_KINDS
from softcr_hardware.safety.safety import Action

PAGE = Path(__file__).parents[1] / "docs/troubleshooting.md"

# column -> fault -> action that it ends in, and words that are said
TESTED = {
    "cameras": {
        kind: (action, says) for kind, (_, says, action) in test_mocap_session.END_STATES.items()
    },
    "force-torque": {
        kind: (Action.WARN if says else Action.NONE, says or "")
        for kind, says in test_force_torque.END_STATES.items()
    },
    "valves' bus": {
        kind: (action, says) for kind, (action, _, says) in test_valve_driver.END_STATES.items()
    },
    "controller": test_valve_driver.CONTROLLER_STATES,
}


def rows():
    """The cells of the page's fault matrix by row."""
    table = PAGE.read_text().split("\n| fault | cameras |")[1].split("\n\n")[0]
    lines = f"| fault | cameras |{table}".splitlines()
    columns, _, *table = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    length = len(FAULT_KINDS)
    return {row[0]: dict(zip(columns[1:], row[1:], strict=True)) for row in table[:length]}


def test_the_page_has_every_fault_and_every_part():
    assert set(rows()) == set(FAULT_KINDS)
    assert all(set(cells) == set(TESTED) for cells in rows().values())


@pytest.mark.parametrize("part", TESTED)
@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_each_cell_is_what_its_test_says(kind, part):
    cell = rows()[kind][part]
    action, says = TESTED[part][kind]
    assert cell.partition(":")[0] == action.words
    assert says.removeprefix("impaired: ") in cell
