"""Sensors are as noisy as the robot's file says, or as plant or filter are told."""

import numpy as np
import pytest
import yaml

from softcr_estimation.context import EstimationContext
from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_estimation.model_filter import ModelFilter
from softcr_models import load_robot
from softcr_models.files.config import config_directory
from softcr_models.model import TIP
from softcr_models.models import make_model
from softcr_models.robots.kinds import KINDS
from softcr_papers.dalenberg2024.arm_plant import TendonArmPlant
from softcr_simulation.plants import RodPlant

ROBOTS = config_directory() / "robots"


def robot_with(tmp_path, name, noises, *further):
    """A robot whose file says other noises of some sensors, and has further ones."""
    content = yaml.safe_load((ROBOTS / f"{name}.yaml").read_text())
    content["sensors"] += further
    for sensor in content["sensors"]:
        sensor |= noises.get(sensor["type"], {})
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    return load_robot(path, tuple(KINDS))


@pytest.mark.parametrize(
    ("name", "plant", "sensor"),
    [("licher2025", RodPlant, "tip_pose"), ("dalenberg_robot1", TendonArmPlant, "rack_poses")],
)
def test_positions_are_as_noisy_as_the_file_or_the_settings_say(tmp_path, name, plant, sensor):
    robot = robot_with(tmp_path, name, {sensor: {"noise": 3e-3}})

    def noise_mm(**told):
        if plant is RodPlant:
            told = {"errors": ",".join(f"{key}={value!r}" for key, value in told.items())}
        values = plant(robot, plant.Settings(**told)).describe()
        return values.get("plant_mismatch", values)["tip_noise_mm"]

    assert noise_mm() == pytest.approx(3.0)
    assert noise_mm(tip_noise=1e-3) == pytest.approx(1.0)
    assert noise_mm(tip_noise=0.0) == 0.0


def estimated(name, tmp_path, noises, settings):
    """What a filter says of a robot whose file says other noises of some sensors."""
    further = [{"type": "tendon_length", "noise": 1e-4}] if name == "tendon_arm" else []
    robot = robot_with(tmp_path, name, noises, *further)
    told = {"parameters": (), "filter": "ekf", **settings}
    model = make_model("rod" if name == "tendon_arm" else "arm", robot)
    node = ModelFilter(EstimationContext(robot, model, 1 / 70), ModelEstimatorSettings(**told))
    rest = np.zeros(model.inputs.size)
    parameters = np.array([[each.nominal for each in model.parameters]])
    outputs = ["rack_1", TIP] if name != "tendon_arm" else [TIP, "base_wrench", "tendon_lengths"]
    state = model.equilibrium(rest, parameters[0])[None]
    seen = model.observe(tuple(outputs), state, rest[None], parameters)
    node.update(rest, {}, 0.0)
    measured = {output: values[0].copy() for output, values in seen.items()}
    for values in measured.values():
        values[..., -1] += 1e-3
    return node.update(rest, measured, 1 / 70).state


@pytest.mark.parametrize(
    ("name", "sensor", "of_file", "setting"),
    [
        ("tendon_arm", "tip_pose", "noise", "position_noise"),
        ("tendon_arm", "tendon_length", "noise", "tendon_length_noise"),
        ("tendon_arm", "base_wrench", "force_noise", "wrench_force_noise"),
        ("tendon_arm", "base_wrench", "moment_noise", "wrench_moment_noise"),
        ("dalenberg_robot1", "rack_poses", "noise", "position_noise"),
    ],
)
def test_a_filter_assumes_the_noise_of_the_file_unless_it_is_told(
    tmp_path, name, sensor, of_file, setting
):
    def state(in_file, told):
        noises = {} if in_file is None else {sensor: {of_file: in_file}}
        return estimated(name, tmp_path, noises, {setting: told} if told else {})

    assert np.array_equal(state(3e-3, None), state(None, 3e-3))
    assert np.array_equal(state(3e-3, 1e-3), state(None, 1e-3))
    assert not np.array_equal(state(3e-3, None), state(None, 1e-3))
    default = {"wrench_force_noise": 0.02, "wrench_moment_noise": 1e-3}.get(setting, 2e-4)
    assert np.array_equal(state(0.0, None), state(None, default))
