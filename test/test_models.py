"""Which prediction model a node gets, and the shipped network as one of them."""

from pathlib import Path

import numpy as np
import pytest

from softcr_control.controller import ControllerBlock
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.models import make_model
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_papers.licher2025.studies import models
from softcr_papers.licher2025.training.verification import Verification
from softcr_studies.frame.cell import Cell
from softcr_studies.frame.results import Results, Store
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.tracking_loop import SETTLED
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

ROBOT = load_robot("licher2025")


pytestmark = pytest.mark.usefixtures("one_thread")


def test_each_choice_gives_its_model():
    assert isinstance(make_model("rod", ROBOT), RodPrediction)
    surrogate = make_model("ddpinn", ROBOT)
    assert isinstance(surrogate, SurrogatePrediction)
    assert surrogate.state_size == 72


def test_what_does_not_fit_is_said_in_one_line():
    with pytest.raises(UserError, match="trained for 5"):
        make_model("ddpinn", ROBOT, {"intervals": 10})
    with pytest.raises(UserError, match="no such file"):
        make_model("ddpinn", ROBOT, {"network": "/nowhere/x"})
    with pytest.raises(UserError, match="another length"):
        make_model("ddpinn", ROBOT.replace(length=0.15), {"network": "licher2025"})


def test_options_reach_filter_and_controller():
    for asked, expected in (
        ({"controller.model": "ddpinn"}, (None, "ddpinn")),
        ({"controller.model": "ddpinn", "estimator.model": "ddpinn"}, ("ddpinn", "ddpinn")),
        ({}, (None, None)),
    ):
        system = simulation_system(SimulationOptions.of_options(asked), Path("bag"))
        told = {node.name: node.parameters.get("model") for node in system.parts}
        assert (told["estimator"], told["nempc_controller"]) == expected
        assert told["simulator"] is None
    for asked, told in (({}, []), ({"controller.population": "64"}, [64])):
        nodes = simulation_system(SimulationOptions.of_options(asked), Path("bag")).parts
        assert [n.parameters["population"] for n in nodes if "population" in n.parameters] == told
    gradient = SimulationOptions.of_options({"controller.model": "ddpinn", "controller": "rod_mpc"})
    (told,) = (n for n in simulation_system(gradient, Path("bag")).parts if n.name == "rod_mpc")
    assert told.parameters["model"] == "ddpinn"
    with pytest.raises(UserError, match="goes with model 'ddpinn'"):
        SimulationOptions.of_options({"controller.network": "x"})
    values = {"controller": "nempc", "model": "ddpinn", "device": "cpu"}
    assert ControllerBlock.settings_of(values).model == "ddpinn"


def test_what_depends_on_the_model_is_chosen_unless_somebody_says_otherwise(tmp_path):

    def chosen(kind, **values):
        settings = ControllerBlock.settings_of({"controller": kind, **values})
        return ControllerBlock(ROBOT, settings).controller.settings

    for model, perturbation, gain in (("rod", 2e-4, 0.0), ("ddpinn", 2e-3, 0.1)):
        found = chosen("rod_mpc", model=model)
        assert (found.perturbation, found.tip_offset_gain) == (perturbation, gain)
    for model, population in (("rod", 1000), ("ddpinn", 32)):
        assert chosen("nempc", model=model).population == population
    assert chosen("nempc", model="ddpinn", population=64).population == 64
    file = tmp_path / "mine.yaml"
    file.write_text("type: nempc\npopulation: 48\nhorizon: 6\ntip_offset_gain: 0.0\n")
    mine = chosen("nempc", model="ddpinn", controller_file=str(file))
    assert (mine.population, mine.horizon, mine.tip_offset_gain) == (48, 6, 0.0)
    mine = chosen("nempc", controller_file=str(file), horizon=4, estimate_lag=False)
    assert (mine.population, mine.horizon, mine.estimate_lag) == (48, 4, False)


def test_the_shipped_network_keeps_what_its_card_says():
    """A short form of `softcr verify-surrogate`: bounds of Table IV, with a margin for the
    few motions."""
    model = make_model("ddpinn", ROBOT)
    assert isinstance(model, SurrogatePrediction)
    network = model.network
    assert network.spectral_radius() < 1.0
    verification = Verification(CosseratRod(ROBOT, 5), network, count=3, ticks=280)
    motions = verification.motions("smooth 70 %")
    table, _ = verification.table(motions)
    assert table["tip position"][0] < 0.549  # Table IV
    assert all(value < 0.1 for value in verification.inside_step(motions))
    assert verification.from_noisy_states(motions) < 0.5
    for family in ("lagged_steps", "white_noise"):
        good, _ = verification.long_motions(family, 32, 1000)
        assert good == 32


@pytest.mark.later
def test_the_loop_closes_on_the_surrogate(tmp_path):
    ways = models.ways()
    key = ("population 96", "nempc, network")
    exact = ("population 96", "nempc, exact rod")
    settings = models.STUDY.settings()
    found = models.run(Cell(*key, 0, settings))
    assert mean_error_mm(found, SETTLED) < 0.5
    assert np.isfinite(found["commands"]).all()
    results = Results(settings, Store(tmp_path, models.STUDY.name, "code"))
    results.cells = [Cell(*way, 0, settings) for way in ways]
    for cell in results.cells:
        results.store.add(cell, found)
    rows = {row.key: row for row in models.STUDY.rows(results)}
    assert rows[(*key, "settled tip error")].must == pytest.approx(
        1.3 * mean_error_mm(found, SETTLED)
    )
    assert rows[(*exact, "settled tip error")].must is None
    assert (*key, "tick per candidate") in rows
