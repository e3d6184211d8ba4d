"""Sensors of a simulated plant are as noisy as the robot's file says, or as the plant is told."""

import pytest
import yaml

from softcr_models import load_robot
from softcr_models.files.config import config_directory
from softcr_papers.dalenberg2024.arm_plant import TendonArmPlant
from softcr_simulation.plants import RodPlant

ROBOTS = config_directory() / "robots"


@pytest.mark.parametrize(
    ("name", "plant", "sensor"),
    [("licher2025", RodPlant, "tip_pose"), ("dalenberg_robot1", TendonArmPlant, "rack_poses")],
)
def test_positions_are_as_noisy_as_the_file_or_the_settings_say(tmp_path, name, plant, sensor):
    content = yaml.safe_load((ROBOTS / f"{name}.yaml").read_text())
    next(one for one in content["sensors"] if one["type"] == sensor)["noise"] = 3e-3
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    robot = load_robot(path, ("rod", "arm"))

    def noise_mm(**told):
        if plant is RodPlant:
            told = {"errors": ",".join(f"{key}={value!r}" for key, value in told.items())}
        values = plant(robot, plant.Settings(**told)).describe()
        return values.get("plant_mismatch", values)["tip_noise_mm"]

    assert noise_mm() == pytest.approx(3.0)
    assert noise_mm(tip_noise=1e-3) == pytest.approx(1.0)
    assert noise_mm(tip_noise=0.0) == 0.0
