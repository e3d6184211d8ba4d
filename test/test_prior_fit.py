"""Unknowns of a recorded arm with priors: found where the recording tells them, else left alone."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softcr_estimation.identification.stages import write_robot
from softcr_models import UserError, load_robot
from softcr_models.identification.measured_groups import groups_of
from softcr_models.identification.prior_fit import _Search, next_rest, prior_fit
from softcr_models.identification.rod_identification import Recording, static_configurations
from softcr_models.identification.unknowns import FAMILIES, recorded_as, unknowns_of
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.cli import main

TRUE = {
    "stiffness": 0.2, "gain": 0.05, "gain_1": 0.03, "gain_3": -0.03, "offset": 0.02,
    "offset_2": 0.005, "base_x": 4e-3, "base_turn_z": 0.05, "middle_y": 3e-3,
}  # fmt: skip
FOUND = ("stiffness", "gains", "offsets", "registration", "markers")
NOISE = 1e-4


def arm():
    robot = load_robot("tendon_arm")
    sensors = [each.model_dump() for each in robot.sensors if each.type != "pose"]
    middle = {"type": "pose", "name": "middle", "at": 0.5, "offset": (0.01, 0, 0), "noise": NOISE}
    return robot.replace(sensors=[*sensors, middle])


ARM = arm()


def recording_of(robot, configurations, values):
    """Tip and marker as a fine rod has them, moved to the cameras' frame by hand."""
    made = recorded_as(robot, values)
    rod, turn = CosseratRod(made.robot, 15), Rotation.from_rotvec(made.rotation).as_matrix()
    (offset,) = [np.array(each.offset) for each in made.robot.sensors if each.type == "pose"]
    rows = {"tip position": [], "middle position": []}
    for reading in configurations:
        state = rod.equilibrium(np.maximum(0.0, made.gains * (reading - made.offsets)))
        pose = rod.pose_at(state, 0, 0.5)
        rows["middle position"].append(pose[:3, 3] + pose[:3, :3] @ offset)
        rows["tip position"].append(rod.tip_pose(state)[:3, 3])
    draw = np.random.default_rng(0)
    noisy = {}
    for name, found in rows.items():
        noise = NOISE * draw.standard_normal((len(found), 3))
        noisy[name] = np.array(found) @ turn.T + made.position + noise
    return Recording(np.array(configurations), noisy)


def groups(robot, recording):
    return [each for each in groups_of(robot) if each.name in recording.outputs]


def fitted(robot, recording, families=FOUND):
    chosen = groups(robot, recording)
    return prior_fit(robot, recording, chosen, unknowns_of(robot, families, chosen))


def test_what_the_recording_tells_is_found_within_its_own_deviations():
    fit = fitted(ARM, recording_of(ARM, static_configurations(ARM, 2), TRUE))
    for unknown, deviation in zip(fit.unknowns, fit.deviations, strict=True):
        off = fit.values[unknown.name] - TRUE.get(unknown.name, 0.0)
        assert abs(off) < 4.0 * deviation + 0.02 * unknown.deviation, unknown.name
    told = dict(zip((each.name for each in fit.unknowns), fit.told, strict=True))
    # stiffness and the gains together hardly change what is seen
    assert min(told[name] for name in ("offset", "base_x", "base_turn_z", "middle_y")) > 0.9
    assert ("stiffness", "gain") in [pair[:2] for pair in fit.alike]


@pytest.mark.parametrize(
    ("families", "true"),
    [
        (("stiffness", "registration"), {"base_turn_z": 2.4}),
        (("stiffness", "directions"), {"angle_1": -2.6, "angle_2": 1.8, "angle_3": 0.1}),
    ],
)
def test_a_frame_or_actuators_far_from_where_the_guess_has_them_are_found(families, true):
    fit = fitted(ARM, recording_of(ARM, static_configurations(ARM, 2), true), families)
    for name, value in fit.values.items():
        apart = value - true.get(name, 0.0)
        limit = 0.02 if name.startswith(("base_turn", "angle")) else 0.05
        assert abs(np.angle(np.exp(1j * apart))) < limit, name


def test_the_direction_of_gravity_is_found():
    to_world = Rotation.from_euler("xyz", ARM.base_orientation)
    tilted = to_world * Rotation.from_rotvec((0.04, -0.03, 0.0))
    true = ARM.replace(base_orientation=tilted.as_euler("xyz").tolist())
    recording = recording_of(true, static_configurations(ARM, 2), {})
    fit = fitted(ARM, recording, ("gravity",))
    assert fit.deviations.max() < 3e-3
    downs = [
        Rotation.from_euler("xyz", each.base_orientation).inv().apply((0.0, 0.0, -1.0))
        for each in (fit.recorded.robot, true, ARM)
    ]
    np.testing.assert_allclose(downs[0], downs[1], atol=4.0 * fit.deviations.max())
    assert np.linalg.norm(downs[2] - downs[1]) > 0.04
    weightless = ARM.replace(gravity=0.0)
    assert unknowns_of(weightless, ("gravity",), groups(ARM, recording)) == ()


def test_what_the_recording_does_not_tell_stays_at_the_guess():
    first = [row for row in static_configurations(ARM, 2) if not row[1:].any()]
    fit = fitted(ARM, recording_of(ARM, first, {"gain_1": 0.1}), ("gains",))
    told = dict(zip((each.name for each in fit.unknowns), fit.told, strict=True))
    # what the tendons share is believed before one tendon's own
    assert fit.values["gain"] + fit.values["gain_1"] == pytest.approx(0.1, abs=5e-3)
    assert fit.values["gain"] > 5.0 * fit.values["gain_1"] > 0.0
    for name in ("gain_2", "gain_3"):
        assert abs(told[name]) < 1e-6
        assert abs(fit.values[name]) < 1e-6


def test_the_derivative_is_that_of_steady_states_found_anew():
    recording = recording_of(ARM, static_configurations(ARM, 2)[-4:], {})
    chosen = groups(ARM, recording)
    search = _Search(ARM, recording, tuple(chosen), unknowns_of(ARM, tuple(FAMILIES), chosen))
    values = np.array([0.1 * each.deviation for each in search.unknowns])
    jacobian = search.jacobian(values, search.states(values, None))
    for place, unknown in enumerate(search.unknowns):
        step = 1e-3 * unknown.deviation * np.eye(len(values))[place]
        ends = [search._residual(v, search.states(v, None)) for v in (values - step, values + step)]
        numeric = (ends[1] - ends[0]) / (2e-3 * unknown.deviation)
        scale = np.abs(numeric).max()
        assert np.abs(jacobian[:, place] - numeric).max() < 2e-3 * scale, unknown.name


def test_stiffening_is_found_where_the_curvature_differs():
    robot = load_robot("licher2025")
    inputs = static_configurations(robot, 3)
    rod = CosseratRod(robot.replace(curvature_stiffness=-0.15), 12)
    tips = np.array([rod.tip_pose(rod.equilibrium(row))[:3, 3] for row in inputs])
    recording = Recording(inputs, {"tip position": tips})
    fit = fitted(robot, recording, ("stiffness", "stiffening"))
    assert fit.values["stiffening"] == pytest.approx(-0.15, abs=1e-3)
    assert fit.recorded.robot.curvature_stiffness == fit.values["stiffening"]


def test_the_next_rest_is_one_that_moves_what_was_not_told():
    first = [row for row in static_configurations(ARM, 2) if not row[1:].any()]
    recording = recording_of(ARM, first, {})
    fit = fitted(ARM, recording, ("gains",))
    chosen, left = next_rest(ARM, fit, groups(ARM, recording))
    assert chosen[1:].any()
    assert (left <= fit.deviations * (1.0 + 1e-9)).all()
    for number in 1 + np.flatnonzero(chosen):
        place = [each.name for each in fit.unknowns].index(f"gain_{number}")
        assert left[place] < 0.9 * fit.deviations[place]


def test_at_the_edge_of_what_can_be_the_derivative_is_taken_backward():
    edge = ARM.replace(curvature_stiffness=1.0)
    recording = recording_of(ARM, static_configurations(ARM, 2)[-2:], {})
    chosen = groups(ARM, recording)
    search = _Search(edge, recording, tuple(chosen), unknowns_of(edge, ("stiffening",), chosen))
    assert np.isfinite(search.jacobian(np.zeros(1), search.states(np.zeros(1), None))).all()


def test_a_row_without_a_steady_state_does_not_end_the_fit():
    robot = load_robot("licher2025")
    inputs = static_configurations(robot, 1)
    rod = CosseratRod(robot, 12)
    tips = [rod.tip_pose(rod.equilibrium(row))[:3, 3] for row in inputs]
    lost = Recording(
        np.vstack((inputs, [5e6, 0.0, 0.0])), {"tip position": np.vstack((tips, tips[-1:]))}
    )
    fit = fitted(robot, lost, ("stiffness",))
    assert fit.lost == 1
    assert abs(fit.values["stiffness"]) < 0.2


def test_the_command_judges_what_was_held_out_and_says_how_it_was_recorded(tmp_path, capsys):
    recording = recording_of(ARM, static_configurations(ARM, 2), TRUE)
    header = [f"tension_{k + 1}" for k in range(recording.inputs.shape[1])]
    header += [f"{name}_{axis}" for name in ("tip", "middle") for axis in "xyz"]
    table = np.hstack((recording.inputs, *recording.outputs.values()))
    # what was held out has no marker
    for name, rows, width in (("fit.csv", table[::2], None), ("held.csv", table[1::2], -3)):
        head = ",".join(header[:width])
        np.savetxt(tmp_path / name, rows[:, :width], delimiter=",", header=head, comments="")
    path = tmp_path / "arm.yaml"
    write_robot(ARM, path)
    words = [
        "identify", str(tmp_path / "fit.csv"), "--robot", str(path), "--find", ",".join(FOUND),
        "--hold-out", str(tmp_path / "held.csv"), "--results", str(tmp_path / "results"),
    ]  # fmt: skip
    assert main(words) == 0
    said = capsys.readouterr().out
    (line,) = [each for each in said.splitlines() if each.startswith("held out: tip position")]
    assert float(line.split()[4]) < 0.5
    latest = tmp_path / "results/identification/latest"
    assert "base_position" in (latest / "recorded.yaml").read_text()
    assert load_robot(str(latest / "identified.yaml")).name == ARM.name
    assert (latest / "rests.png").is_file()


def test_a_family_that_does_not_exist_is_one_line():
    with pytest.raises(UserError, match="gain: not to be found; allowed are stiffness, taper"):
        unknowns_of(ARM, ["gain"], [])
