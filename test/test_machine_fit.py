"""What is started on this machine: the loop's parts are timed before."""

import numpy as np
import pytest

from softcr_models.errors import UserError
from softcr_tools import machine_fit
from softcr_tools.machine_fit import TickCost, fitted, tick_costs
from softcr_tools.run_options import SimulationOptions
from softcr_tools.systems import simulation_system

PERIOD = 1 / 70


def wanted(**given):
    return SimulationOptions(robot="licher2025_chain", duration=1.0, **given)


def machine(monkeypatch, **periods):
    """One on which ticks take so many periods; returns the lines that are told."""

    def costs(system):
        names = ("simulator", "estimator", system.controller)
        return {name: TickCost(periods.get(name, 0.1) * PERIOD, PERIOD) for name in names}

    monkeypatch.setattr(machine_fit, "tick_costs", costs)
    return []


def test_a_nempc_that_nobody_asked_for_gives_way(monkeypatch):
    told = machine(monkeypatch, nempc_controller=2.5)
    assert fitted(wanted(), told.append, False).controller == "rod_mpc"
    assert told[0] == "rod_mpc: nempc takes 35.7 ms of 14.3 ms; it needs a faster processor"
    asked_for = wanted(controller="nempc")
    assert fitted(asked_for, told.append, False) is asked_for
    told = machine(monkeypatch, nempc_controller=1.9)
    by_default = wanted()
    assert fitted(by_default, told.append, False) is by_default


@pytest.mark.parametrize("slow", [{"estimator": 1.1}, {"simulator": 1.1}, {"rod_mpc": 4.1}])
def test_what_cannot_keep_up_is_refused_in_a_line_unless_told(monkeypatch, slow):
    options = wanted(controller="rod_mpc")
    told = machine(monkeypatch, **slow)
    with pytest.raises(UserError, match=f"too slow: {next(iter(slow))}; .*--anyway") as refusal:
        fitted(options, told.append, False)
    assert "\n" not in str(refusal.value)
    assert told == []
    assert fitted(options, told.append, True) is options
    assert "does not keep up" in told[0]


def test_cores_are_shared(monkeypatch):
    monkeypatch.setattr(machine_fit, "CORES", 2)
    all_of_it = {"simulator": 0.9, "estimator": 0.9, "rod_mpc": 0.9}
    told = machine(monkeypatch, **all_of_it)
    with pytest.raises(UserError, match=r"2\.7 of 2 cores"):
        fitted(
            wanted(controller="rod_mpc"),
            told.append,
            False,
        )


@pytest.mark.parametrize("mode", ["lockstep"])
def test_who_waits_for_nobody_s_clock_is_not_timed(monkeypatch, mode):
    monkeypatch.setattr(machine_fit, "tick_costs", lambda system: pytest.fail("timed"))
    options = wanted(mode=mode)
    assert fitted(options, print, False) is options


def test_each_part_is_timed_once_for_the_same_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_fit, "cache_directory", lambda: tmp_path)
    system = simulation_system(wanted(controller="rod_mpc"), tmp_path)
    found = tick_costs(system)
    assert set(found) == {"simulator", "estimator", "rod_mpc"}
    assert all(0.0 < cost.seconds < np.inf for cost in found.values())
    assert all(cost.period == pytest.approx(PERIOD) for cost in found.values())
    monkeypatch.setattr(machine_fit, "run_system", lambda *_, **__: pytest.fail("timed again"))
    assert tick_costs(system) == found
    [kept] = tmp_path.iterdir()
    kept.write_text("half a fi")  # who was stopped while it was written
    with pytest.raises(BaseException, match="timed again"):
        tick_costs(system)
