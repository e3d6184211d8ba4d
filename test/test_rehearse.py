"""`softcr rehearse` and what it needs."""

import json
import os
import subprocess

import pytest
from kit.processes import SOFTCR

from softcr_hardware.emulation import bench as emulated_bench
from softcr_hardware.ethercat.memory_cycle import memory_cycle
from softcr_models.errors import UserError
from softcr_tools.running import machine_speed, rehearse


def test_who_may_not_rehearse_is_told_in_one_line(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root"):
        rehearse.rehearse()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(emulated_bench.shutil, "which", lambda _: "/sbin/ip")
    monkeypatch.setattr(emulated_bench.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="needs pysoem"):
        rehearse.rehearse()


def test_a_slow_machine_is_refused_with_what_was_measured_unless_told_otherwise(monkeypatch):
    class Begun(Exception):
        pass

    def begin():
        raise Begun

    slow = machine_speed.Forecast(cycle=500e-6, cores=2)
    monkeypatch.setattr(rehearse, "what_a_wire_lacks", lambda: "")
    monkeypatch.setattr(rehearse, "forecast", lambda: slow)
    monkeypatch.setattr(rehearse, "cable", begin)
    with pytest.raises(UserError, match=r"500 us here .* at most\); --anyway starts it"):
        rehearse.rehearse()
    with pytest.raises(Begun):
        rehearse.rehearse(anyway=True)
    monkeypatch.setattr(rehearse, "forecast", lambda: machine_speed.Forecast(1e-6, 2))
    with pytest.raises(Begun):
        rehearse.rehearse()


def test_a_forecast_counts_the_slowest_core_and_how_many_there_are():
    limit = machine_speed.MOST * 2 / (machine_speed.NEEDED * 1e6)
    assert machine_speed.Forecast(0.99 * limit, 2).enough
    assert not machine_speed.Forecast(1.01 * limit, 2).enough
    assert not machine_speed.Forecast(0.99 * limit, 1).enough
    half = machine_speed.Forecast(0.99 * limit, 2, had=1.0)
    assert not half.enough
    assert "on 2 cores at once, of which 1.0 can be had, so" in half.words


def test_the_timed_work_is_the_valve_drivers_and_does_not_fail():
    cycle = memory_cycle()
    for _ in range(100):
        cycle()
    found = machine_speed.forecast()
    assert found.cores == min(len(os.sched_getaffinity(0)), machine_speed.CORES)
    assert 0.0 < found.cycle < 0.02


def test_few_candidates_are_the_nempcs_only():
    told = rehearse.RehearsalOptions.of_options
    assert "population" not in told({}).of("controller")
    assert told({"controller": "nempc"}).of("controller") == {"population": 64}
    given = {"controller": "nempc", "controller.population": "9"}
    assert told(given).of("controller") == {"population": 9}


@pytest.mark.network
def test_a_rehearsal_begins_over_the_real_protocols_and_leaves_no_cable(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root for a virtual cable and raw frames")
    pytest.importorskip("pysoem", reason="pip install 'softcr[ethercat]'")
    words = ["rehearse", "--duration", "2", "--anyway", "--results", str(tmp_path)]
    with subprocess.Popen(
        [SOFTCR, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said, _ = process.communicate(timeout=300)
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
    assert f"scr{process.pid % 10**7}a" not in links
    assert "no deadman's switch" in said
    if "valves/enable refused" in said:
        pytest.skip("this machine is too busy to play bench and loop at their pace")
    system = json.loads((tmp_path / "latest" / "system.json").read_text())
    agreed = [e["detail"] for e in system["events"] if e["event"] == "agreed"]
    assert agreed == ["valves/enable", "reference/start"], said
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert {"valves", "optitrack", "force_torque"} <= set(summary["other_nodes"])
