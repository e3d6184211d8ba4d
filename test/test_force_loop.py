"""A force at the tip and the poses along the body in the loop: topics, estimate, view, report."""

from types import SimpleNamespace

import numpy as np
import pytest
from kit.loops import SMALL, looped

from softcr_control.predictive.estimated_parameters import EstimatedParameters
from softcr_estimation.estimator import EstimatorBlock
from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.models import make_model
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState
from softcr_models.rod_model.tip_force import TIP_FORCE, known_tip_force
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.values import Pose
from softcr_runtime.wire.codecs import codec, expected_of
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.plants import BODY_POSES, RodPlant
from softcr_tools.report.run import Run
from softcr_tools.report.sections import summarize
from softcr_tools.viewer.drawing import lines
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.words import state_html

TWO = load_robot("two_segments")
PULL = """loads:
  - {name: pull, kind: dead, force: [0.15, 0.1, 0.0], start: 4.5, ramp: 0.1}
"""


def test_a_plant_measures_the_poses_along_its_body():
    robot = TWO.replace(sensors=[
        *(each for each in TWO.sensors if each.type != "pose"),
        {"type": "pose", "name": "middle", "segment": "proximal", "noise": 2e-4},
        {"type": "pose", "name": "side", "at": 0.5, "offset": (0.0, 0.015, 0.0), "noise": 0.0},
    ])  # fmt: skip
    simulated = SimulatedPlant(robot, PlantErrors.noiseless(), intervals=4, mocap_latency=1)
    plant = RodPlant.of(robot, simulated)
    assert BODY_POSES in plant.topics
    assert BODY_POSES not in plant.measure(5)  # nor is there a tip
    before = simulated.state
    plant.follow(np.full(6, 3e4))
    plant.advance(0.05)
    output = plant.measure(20)[BODY_POSES]
    assert output.stamp == 5  # a cycle late, as the tip's pose
    side = simulated.rod.pose_at(before, 1, 0.5)
    assert output.value[1].position == pytest.approx(side[:3, :3] @ [0, 0.015, 0] + side[:3, 3])
    assert output.value[1].matrix[:3, :3] == pytest.approx(side[:3, :3])
    seen = [plant.measure(k)[BODY_POSES].value[0].position for k in range(30, 230)][1:]
    assert np.std(seen, axis=0) == pytest.approx(2e-4, rel=0.2)


class Listener:
    """An estimator that keeps what it is told."""

    gives_state = False

    def __init__(self):
        self.told = []

    def reset(self):
        pass

    def update(self, inputs, measurements, stamp):
        self.told.append(dict(measurements))


def heard(robot, **settings):
    """What an estimator is told of each of a few ticks, some without further sensors."""
    given = {"robot": robot.name, "intervals": 2, "rate_hz": 50.0, "pressure_filter": False}
    given |= settings
    block = EstimatorBlock(robot, EstimatorBlock.settings_of(given))
    block.estimator = listener = Listener()
    pose = Pose(np.array([0.0, 0.0, 0.2]), np.array([0.0, 0.0, 0.0, 1.0]))
    values = {
        "pressure/state": np.zeros(len(robot.actuators)), "mocap/tip/pose": pose,
        BODY_POSES: (pose,), "force_torque/wrench": np.arange(6.0),
    }  # fmt: skip
    topics = [each.topic for each in block.inputs]
    patience = []
    for tick in range(1, 7):
        stamp = round(2e7 * tick)
        present = topics if tick < 3 else topics[:2]
        samples = {n: Sample(n, stamp, values[n], 0.0) for n in present if n in values}
        list(block.tick(stamp, samples))
        patience.append([each.patience_now() for each in block.inputs[2:]])
    return topics, listener.told, patience, block.warnings()


def test_an_estimator_is_told_what_its_settings_ask_for(monkeypatch):
    monkeypatch.setattr(RodPrediction, "warm_up", lambda self: None)  # nothing is predicted
    topics, told, patience, warnings = heard(TWO, use_base_wrench=True)
    assert topics == ["pressure/state", "mocap/tip/pose", BODY_POSES, "force_torque/wrench"]
    assert set(told[0]) == {"tip", "middle", "base_wrench"}
    assert told[0]["middle"].shape == (4, 4)
    assert told[0]["base_wrench"].tolist() == list(range(6))
    assert set(told[-1]) == {"tip"}
    # what is silent is not waited for, and is named
    assert max(patience[-1]) < 0.2 * min(patience[0])
    assert [line for line in warnings if BODY_POSES in line and "force_torque/wrench" in line]
    assert heard(TWO, use_body_poses=False)[0] == topics[:2]
    assert heard(load_robot("licher2025"))[0] == topics[:2]
    with_filter = heard(load_robot("licher2025"), pressure_filter=True)[0]
    assert with_filter == [*topics[:2], "pressure/sent"]


def test_a_controller_without_a_force_in_its_model_uses_what_else_is_estimated():
    reader = EstimatedParameters(RodPrediction(CosseratRod(load_robot("licher2025"), 2)))
    read = reader.read({"tip_force_x": 0.2, "tip_mass": 0.05})
    assert read.parameters[1] == 0.05
    assert len(read.parameters) == 3
    with pytest.raises(UserError, match="parameter tip_weight: unknown"):
        reader.read({"tip_weight": 0.2})


@pytest.mark.slow
def test_the_loop_finds_what_pulls_at_the_tip_and_view_and_report_show_it(tmp_path):
    (tmp_path / "pull.yaml").write_text(PULL)
    of = SMALL | {
        "plant": {"intervals": 4, "loads": str(tmp_path / "pull.yaml")},
        "estimator": {"tip_force": True, "use_base_wrench": True},
    }
    bag = tmp_path / "bag"
    sent = looped("nempc", "setpoint", of, bag, duration=6.0)
    assert max(each.max() for each in sent.values("pressure/sent")) > 1e3
    estimates = sent.by_stamp("estimate/rod")
    known = {t: known_tip_force(v.parameters, v.parameters_std) for t, v in estimates.items()}
    assert all(force is None for stamp, force in known.items() if stamp < 4.5e9)
    late = [force for stamp, force in known.items() if stamp > 5.5e9]
    assert all(force is not None for force in late)
    pull = np.array([0.15, 0.1, 0.0])
    force = np.mean(late, axis=0)
    cosine = force @ pull / np.linalg.norm(force) / np.linalg.norm(pull)
    assert np.degrees(np.arccos(cosine)) < 20.0
    summary = summarize(Run(read_signals(Bag(bag))))
    told = summary.numbers["tip_force"]
    assert 4.5 < told["tip_force_first_s"] < 5.5 < told["tip_force_last_s"]
    assert told["tip_force_max_n"] > 0.1
    assert any(figure[0] == "estimated force at the tip" for figure in summary.figures)
    robot = load_robot("licher2025")
    picture = Picture(robot)
    assert "estimated force 1" not in lines(picture)
    for topic in ("estimate/rod", "estimate/tip/pose"):
        output = [each for each in sent if each.topic == topic][-1]
        wire = codec(topic, expected_of(robot))
        value = wire.decode(wire.encode(output.value, output.stamp))
        picture.hear(topic, output.stamp, value, 0.0)
    arrow = lines(picture)["estimated force 1"].points
    assert arrow[1] == pytest.approx(picture.estimated_tip[1])
    force = np.array([picture.parameters[name][0] for name in TIP_FORCE])
    assert np.cross(arrow[1] - arrow[0], force) == pytest.approx(np.zeros(3), abs=1e-9)
    assert f"{np.linalg.norm(force):.2f} N" in state_html(picture, 0.0, {})


@pytest.mark.parametrize(("moment", "topics"), [(0.0, 2), (30.0, 0)])
def test_an_estimate_bent_more_than_its_model_holds_is_not_published(moment, topics):
    """Its state is finite, but has no poses."""
    robot = load_robot("licher2025")
    rod = CosseratRod(robot, 2)
    state = rod.rest_state()
    RodState(state).wrenches[..., 3] = moment  # turns an interval by 40 rad
    model = make_model("rod", robot, {"intervals": 2})
    numbers = {each.name: each.nominal for each in model.parameters}
    covariance = 1e-8 * np.eye(3)
    told = SimpleNamespace(
        state=state, parameters=numbers, parameters_std={}, tip_position_covariance=covariance
    )
    stub = SimpleNamespace(reset=lambda: None, update=lambda *_: told)
    settings = {"robot": robot.name, "intervals": 2, "pressure_filter": False}
    block = EstimatorBlock(robot, EstimatorBlock.settings_of(settings))
    block.estimator = stub
    pose = Pose(np.array([0.0, 0.0, 0.1]), np.array([0.0, 0.0, 0.0, 1.0]))
    values = {"pressure/state": np.zeros(3), "mocap/tip/pose": pose}
    samples = {name: Sample(name, 10**7, value, 0.0) for name, value in values.items()}
    assert len(list(block.tick(10**7, samples))) == topics
    beyond = "not published: 1 estimates, bent more than the rod's model holds"
    assert (beyond in block.warnings()) == (topics == 0)
