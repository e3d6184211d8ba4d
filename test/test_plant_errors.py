"""The schema of plant errors: ranges, contradictions, presets, random draws."""

import numpy as np
import pytest
from kit.refusals import one_line

from softcr_models import UserError, load_robot
from softcr_models.files.yaml_files import validated
from softcr_simulation.errors.plant_errors import (
    DETAILS,
    MODEL_ERRORS,
    PlantErrors,
    about_field,
    available_plant_errors,
    load_plant_errors,
    require_meaning,
)
from softcr_simulation.errors.presets import errors_of
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.structural_plant import StructuralPlant

ROBOT = load_robot("licher2025")


def numbers_of(value):
    return value if isinstance(value, tuple) else (value,)


def test_every_field_says_what_it_is():
    for name, declared in PlantErrors.model_fields.items():
        about = about_field(name)
        assert declared.description.endswith(f"[{about.unit}]")
        assert about.low < about.high
        for number in numbers_of(declared.default):
            assert number is None or about.low <= number <= about.high
        if about.spread is not None:
            assert about.low <= about.spread[0] < about.spread[1] <= about.high


def test_presets_load_and_typical_ones_lie_within_the_spreads():
    assert available_plant_errors() == ["hard", "same_structure", "typical"]
    for name, value in load_plant_errors("typical").changed().items():
        low, high = about_field(name).spread
        assert all(low <= number <= high for number in numbers_of(value)), name
    same = {"bending_factor", "tip_mass_factor"}
    assert set(load_plant_errors("same_structure").changed()) == same
    assert load_plant_errors("hard").length_factor == 1.02


# what contradicts itself, and what is said of it
CONTRADICTIONS = [
    ({"play_half_width": [0, 300, 0], "hysteresis_share": 0.1},
     "play_half_width [0.0, 300.0, 0.0] and hysteresis_share 0.1: a chamber has one kind of "
     "hysteresis, one of them must be 0"),
    ({"hysteresis_radius_min": 500, "hysteresis_radius_max": 400},
     "hysteresis_radius_max 400 is below hysteresis_radius_min 500"),
    ({"creep_share": [0.1, 0.1], "creep_time": 2},
     "creep_share has 2 numbers and creep_time 1: they are pairs"),
    ({"payload_mass": 0.02, "payload_picked_up": 3, "payload_dropped": 2},
     "payload_dropped 2 must be after payload_picked_up 3"),
    ({"payload_dropped": 2}, "payload_dropped 2: payload_mass is 0, it would be without effect"),
    ({"tip_force_until": 2}, "tip_force_until 2: tip_force is 0, it would be without effect"),
    ({"outlier_size": 0.1}, "outlier_size 0.1: outlier_share is 0, it would be without effect"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "said"), CONTRADICTIONS)
def test_what_cannot_be_is_one_line(content, said):
    with one_line() as caught:
        validated(PlantErrors, content, "errors.yaml")
    assert str(caught.value).startswith(f"errors.yaml: {said}")


def test_lists_fit_the_actuators():
    errors = PlantErrors(pressure_bias=[300, -200, 100])
    assert errors.of_inputs("pressure_bias", ROBOT).tolist() == [300, -200, 100]
    two = load_robot("two_segments")
    assert errors.of_inputs("pressure_bias", two).tolist() == [300, -200, 100] * 2
    with pytest.raises(UserError, match="pressure_bias: 2 numbers are not allowed: robot licher2"):
        require_meaning(PlantErrors(pressure_bias=[1, 2]), ROBOT)


def test_fields_that_say_nothing_to_a_robot_are_refused():
    tendons = load_robot("tendon_arm")
    require_meaning(PlantErrors(length_factor=1.01, lever_factor=0.98), tendons)
    with pytest.raises(UserError, match="hose_pole: is not allowed for robot tendon_arm: is of ch"):
        require_meaning(PlantErrors(hose_pole=60), tendons)
    with pytest.raises(UserError, match=r"tip_mass_fraction: .* robot two_segments: .* is 0"):
        require_meaning(PlantErrors(tip_mass_fraction=0.1), load_robot("two_segments"))


def test_a_preset_leaves_out_what_a_robot_has_none_of_and_says_so():
    everything = errors_of(ROBOT, "hard")
    assert everything.errors == load_plant_errors("hard")
    assert everything.told == ""
    tendons = errors_of(load_robot("tendon_arm"), "hard")
    require_meaning(tendons.errors, load_robot("tendon_arm"))
    assert tendons.errors.length_factor == 1.02
    assert tendons.errors.chamber_angle_error == (0.0, 0.0524, 0.0, 0.0)
    assert "tip_mass_fraction: the robot's tip_mass is 0" in tendons.told
    assert "creep_time, pressure_noise, pressure_bias: is of chambers, and" in tendons.told
    assert "\n" not in tendons.told
    two = errors_of(load_robot("two_segments"), "hard")
    assert two.told == "tip_mass_fraction: the robot's tip_mass is 0"
    assert two.errors.pressure_bias == (600.0, -400.0, 200.0) * 2


def test_a_file_with_what_a_robot_has_none_of_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("hose_pole: 60\n")
    assert errors_of(ROBOT, path).errors.hose_pole == 60.0
    with pytest.raises(UserError, match="hose_pole: is not allowed for robot tendon_arm"):
        errors_of(load_robot("tendon_arm"), path)


def test_draws_lie_within_the_spreads_and_repeat():
    random = np.random.default_rng(3)
    drawn = [PlantErrors.draw(random, ROBOT) for _ in range(60)]
    for errors in drawn:
        for name, value in errors.changed().items():
            low, high = about_field(name).spread
            assert all(low <= number <= high for number in numbers_of(value)), name
        assert about_field("payload_mass").group == "events"
        assert errors.payload_mass == 0.0
        assert not any(errors.marker_offset)
        assert len(errors.pressure_bias) == 3
    plays = sum(any(errors.play_half_width) for errors in drawn)
    assert 15 < plays < 45  # 60 fair tosses lie outside once in 10 000 times
    lengths = np.array([errors.length_factor for errors in drawn])
    assert lengths.min() < 0.99 < 1.01 < lengths.max()
    again = np.random.default_rng(3)
    assert [PlantErrors.draw(again, ROBOT) for _ in range(60)] == drawn


def test_a_draw_fits_its_robot():
    random = np.random.default_rng(5)
    for name in ("two_segments", "tendon_arm"):
        robot = load_robot(name)
        for _ in range(5):
            require_meaning(PlantErrors.draw(random, robot), robot)


def test_groups_are_chosen():
    errors = PlantErrors.draw(np.random.default_rng(1), ROBOT, ("calibration", "events"))
    groups = {about_field(name).group for name in errors.changed()}
    assert groups == {"calibration", "events"}


def driven_by_both():
    """A robot with a chamber and a tendon, whose lengths are measured."""
    robot = load_robot("tendon_arm")
    chamber = load_robot("licher2025").actuators[0].model_dump(by_alias=True)
    tendons = [each.model_dump(by_alias=True) for each in robot.actuators]
    lag = {"gain": 20.0, "pole": 20.0}
    sensors = [each.model_dump() for each in robot.sensors if each.type != "pressure"]
    sensors += [{"type": "pressure", "noise": 50.0}, {"type": "tendon_length", "noise": 1e-4}]
    return robot.replace(
        actuators=[*tendons, chamber | {"name": "c1", "lever_arm": 0.002, "area": 1e-5}],
        pressure_limits={"minimum": 0.0, "maximum": 1e4, "maximum_rate": 1e6},
        pressure_lag=lag, tension_lag=lag, sensors=sensors,
    )  # fmt: skip


def error_alone(name):
    """Errors of one field and of those that it needs, and the errors without it."""
    declared, about = PlantErrors.model_fields[name].default, about_field(name)
    value = about.spread[1] if about.spread else 0.1 * about.high
    if about.high == 1.0 and about.unit == "-" and about.low == 0.0:
        value = 0.9
    if value == declared:
        value = about.spread[0]
    others = {}
    if name in DETAILS:
        owner = DETAILS[name]
        three = isinstance(PlantErrors.model_fields[owner].default, tuple)
        value = 0.05 if about.unit == "s" else value  # within the run
        others[owner] = [0.02] * 3 if three else 0.02 if owner == "payload_mass" else 0.9
    if name.startswith("creep"):  # two fields of equal length
        others = {"creep_share": 0.4, "creep_time": 1.0}
        value = 2.0 * others[name]
    if isinstance(declared, tuple) and not about.each:
        value = [value] * len(declared)
    return PlantErrors(**others | {name: value}), PlantErrors(**others)


def samples(plant):
    """All that is measured while inputs rise, move by less than a dead band, and fall."""
    swing = plant.inputs.high - plant.inputs.low
    uneven = np.linspace(0.2, 0.4, len(swing))
    for step in range(9):
        target = plant.inputs.low + (uneven * swing if step < 3 else 0.0)
        if 3 <= step < 5:
            target = plant.pressures + 0.001 * swing
        plant.follow(target)
        plant.advance(1 / 70)
        found = plant.measure(step)
        seen = np.zeros(0) if found.tip_pose is None else found.tip_pose
        yield from (found.pressures, found.wrench, found.true_tip_pose, seen, found.tendon_lengths)


@pytest.mark.parametrize("name", ["licher2025", "tendon_arm", "asl_trunk", "both"])
@pytest.mark.parametrize("kind", [SimulatedPlant, StructuralPlant])
def test_each_error_that_a_robot_may_have_changes_its_run(name, kind):
    """Of every kind of actuator; what would be without effect is refused in a line."""
    robot = driven_by_both() if name == "both" else load_robot(name)
    if kind is StructuralPlant and robot.motors:
        pytest.skip("a plant with errors knows no motors")
    runs, refused = {}, []

    def run_of(errors):
        if errors not in runs:
            runs[errors] = list(samples(kind(robot, errors, intervals=3)))
        return runs[errors]

    for field in PlantErrors.model_fields if kind is StructuralPlant else sorted(MODEL_ERRORS):
        errors, without = error_alone(field)
        try:
            require_meaning(errors, robot)
        except UserError:
            refused.append(field)
            continue
        pairs = zip(run_of(errors), run_of(without), strict=True)
        assert not all(np.array_equal(one, other) for one, other in pairs), field
    quantities = {each: f"{each}_noise" in refused for each in ("pressure", "tension")}
    assert quantities == {each: each not in robot.quantities for each in quantities}
    for each in refused:
        if each.endswith("_noise"):
            require_meaning(PlantErrors.noiseless(), robot)
