"""Bags of experiments: what ran on virtual time, read back and replayed as if nodes had run."""

import dataclasses

import numpy as np
import pytest
from rich.console import Console

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.bags.offline_bag import OfflineBag
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.replay.bag_replay import ReplayTask
from softcr_runtime.wire.messages import pressures_to_message
from softcr_studies.loops.tracking_loop import FAST, reference_of, run_loop, with_errors
from softcr_tools import report
from softcr_tools.replay.offline import replay

ROBOT = load_robot("licher2025")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    errors = with_errors(pressure_bias=(1e3, -1e3, 0.5e3), pressure_noise=100.0, dropout=0.2)
    case = dataclasses.replace(FAST, duration=1.0, errors=errors)
    path, source = tmp_path_factory.mktemp("bags") / "run", reference_of(ROBOT, case)
    trace = run_loop(ROBOT, case, source, "rod_mpc", (3, 4), bag=path)
    return case, trace, path


def test_a_bag_holds_what_the_loop_did(run):
    case, trace, path = run
    read = read_signals(Bag(path))
    assert read.problems == ()
    np.testing.assert_array_equal(read.role("true tip").values, trace["tips"])
    np.testing.assert_array_equal(read.role("commands").values, trace["commands"])
    np.testing.assert_array_equal(read.role("reference tip").values, trace["wanted"])
    np.testing.assert_allclose(read.role("estimated tip").values, trace["estimated"], atol=1e-12)
    np.testing.assert_array_equal(
        read.signal("estimate/rod", "parameter.bending_compliance").values, trace["compliance"]
    )
    assert set(read.signal("simulation/truth/rod", "parameter.bending_compliance").values) == {
        trace["true_compliance"]
    }
    assert 0.5 * len(trace["times"]) < len(read.role("measured tip")) < len(trace["times"])
    # the first sample is of the vented plant, read by biased sensors
    first = read.role("readings").values[0]
    assert first == pytest.approx(case.errors.pressure_bias, abs=400.0)
    assert read.said("simulator", "plant_errors")["dropout"] == 0.2


def test_a_replay_of_the_bag_is_equal_to_the_bit(run, tmp_path):
    _, trace, path = run
    told = replay(Bag(path), ReplayTask(True, None, {}), tmp_path / "again", Console(quiet=True))
    cycles = len(trace["times"])
    # estimates were made with filtered readings; beside a command for each of them, the vent of
    # a controller that stops
    for counts, each in ((told.estimates, cycles), (told.commands, cycles + 1)):
        assert (counts.recorded, counts.compared, counts.identical) == (each, each, each)


def test_a_report_of_the_bag_has_the_errors_of_the_trace(run, tmp_path):
    _, trace, path = run
    summary = report.build(path, tmp_path)
    assert summary["controller"] == "rod_mpc"
    # the last ticks, in which the controller sees that the reference stops, are not judged
    seen = 7  # as many as its horizon has
    assert summary["tip_aed_mm"] == pytest.approx(1e3 * trace["error"][:-seen].mean())
    assert summary["bending_compliance"]["true"] == pytest.approx(trace["true_compliance"])


def test_a_bag_that_cannot_be_written_is_one_line(tmp_path):
    bag = OfflineBag()
    bag.add("pressure/state", 5, pressures_to_message(np.zeros(3), ROBOT.chamber_names, 5))
    bag.write(tmp_path / "made")
    with pytest.raises(UserError, match=r"cannot write the bag .*made: .*exists"):
        bag.write(tmp_path / "made")
