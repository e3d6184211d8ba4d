"""The structural plant: its mechanics against the rod and closed forms, its effects one by one."""

import numpy as np
import pinocchio as pin
import pytest
from kit.refusals import one_line

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.rod.description import rod_inputs
from softcr_simulation.beam.beam import Beam
from softcr_simulation.beam.element import moved, relative_log, strain_maps
from softcr_simulation.errors.different_robot import different_robot
from softcr_simulation.errors.plant_errors import PlantErrors, load_plant_errors
from softcr_simulation.plant_effects.acting_pressures import ActingPressures
from softcr_simulation.plant_effects.camera import Camera
from softcr_simulation.plant_effects.softening import Softening
from softcr_simulation.plant_effects.valves import Valves
from softcr_simulation.plants import RodPlant, RodPlantSettings
from softcr_simulation.structural_plant import StructuralPlant

ROBOT = load_robot("licher2025")
PERIOD = 1.0 / 70.0
PRESSED = np.array([40e3, 15e3, 5e3])


def run(errors, seconds, seed=0, command=PRESSED, robot=ROBOT, intervals=5):
    plant = StructuralPlant(robot, errors, seed, intervals)
    plant.follow(command)
    found = []
    for cycle in range(round(seconds / PERIOD)):
        plant.advance(PERIOD)
        found.append(plant.measure(cycle))
    return found


# --- one element --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-9, 0.02, 0.4])
def test_an_element_is_that_of_the_lie_group(size):
    random = np.random.default_rng(1)
    pose = pin.exp6(random.standard_normal(6)).homogeneous[:3].copy()
    step = size * random.standard_normal(6)
    end = np.empty((3, 4))
    moved(end, pose, step)
    full = np.vstack((pose, [0, 0, 0, 1])) @ pin.exp6(step).homogeneous
    assert end == pytest.approx(full[:3], abs=1e-14)
    psi = np.empty(6)
    relative_log(psi, pose, end)
    assert psi == pytest.approx(step, abs=1e-9)
    map_a, map_b = np.empty((6, 6)), np.empty((6, 6))
    strain_maps(map_a, map_b, step)
    relative = pin.exp6(step)
    assert map_b == pytest.approx(pin.Jlog6(relative), abs=1e-8)
    assert map_a == pytest.approx(-pin.Jlog6(relative) @ relative.inverse().action, abs=1e-8)


# --- the body -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["licher2025", "two_segments", "tendon_arm"])
def test_beam_and_rod_move_alike_and_more_so_on_finer_grids(name):
    """Two discretisations and two integrators of the same continuum; moving inputs, 0.4 s."""
    robot = load_robot(name)
    high = rod_inputs(robot).high
    times = np.linspace(0.0, 0.4, 201)
    phases = 2.0 * np.pi * times[:, None] * (0.8 + 0.3 * np.arange(len(high)))
    levels = 0.35 * high * np.minimum(times / 0.2, 1.0)[:, None] * (1.0 + 0.5 * np.sin(phases))
    apart = {}
    for intervals in (4, 8):
        rod, beam = CosseratRod(robot, intervals), Beam(robot, intervals)
        none = np.zeros(rod.input_size)
        beam.settle(none)
        state, distances = rod.equilibrium(none), []
        for begin in range(0, 200, 10):
            part = np.ascontiguousarray(levels[begin : begin + 11])
            state = rod.simulate_ramps(state, part, 0.002, substeps=2)[-1]
            beam.advance(part, 0.002)
            poses = rod.tip_pose(state), rod.tip_pose_from_rod_tip(beam.node_poses()[-1])
            tips = [pose[:3, 3] for pose in poses]
            distances.append(np.linalg.norm(tips[0] - tips[1]))
        apart[intervals] = np.mean(distances)
    # second order on both sides: a quarter at half the length, measured 0.24 to 0.28
    assert apart[8] < 0.35 * apart[4]
    assert apart[8] < 0.002 * robot.length
    # the base feels the same
    base = beam.base_wrench(levels[-1])
    assert base == pytest.approx(rod.base_wrench(state, levels[-1]), abs=0.05 * np.abs(base).max())
    # and the state that the truth tells is near the rod's
    told = rod.tip_pose(beam.state(levels[-1]))[:3, 3]
    assert told == pytest.approx(tips[1], abs=0.01 * robot.length)


def test_pure_bending_is_a_circle():
    """Without weight a moment bends the beam to the curvature that its compliance says."""
    share, moment = -0.3, ROBOT.actuation_matrix @ PRESSED
    beam = Beam(ROBOT.replace(gravity=0.0), 6, share, 15.0)
    beam.settle(PRESSED)
    curvature = np.linalg.norm(moment[3:5]) * ROBOT.bending_compliance
    linear = curvature
    for _ in range(50):  # k = c (1 + share (k / 15)^2) M
        curvature = linear * (1.0 + share * (curvature / 15.0) ** 2)
    assert curvature < 0.95 * linear
    angle = np.arccos(beam.node_poses()[-1, 2, 2])
    assert angle == pytest.approx(curvature * ROBOT.length, rel=1e-5)


def test_a_payload_is_felt_by_the_base_and_dropped_again():
    errors = PlantErrors(
        payload_mass=0.05, payload_picked_up=0.1, payload_dropped=0.3, damping_factor=8.0
    )
    plant = StructuralPlant(ROBOT, errors, 0, 5)
    own = plant.measure(0).wrench[2]
    plant.advance(0.29)
    assert plant.measure(1).wrench[2] - own == pytest.approx(-0.05 * 9.81, abs=0.12)
    plant.advance(1.0)
    assert plant.measure(2).wrench[2] == pytest.approx(own, abs=0.1)
    lighter = StructuralPlant(ROBOT, PlantErrors(payload_mass=-0.03, damping_factor=8.0), 0, 5)
    lighter.advance(1.0)
    assert lighter.measure(0).wrench[2] - own == pytest.approx(0.03 * 9.81, abs=0.12)
    with pytest.raises(UserError, match=r"payload_mass -0\.5 kg: robot licher2025 then has no"):
        StructuralPlant(ROBOT, PlantErrors(payload_mass=-0.5), 0, 5)


def test_a_tip_force_is_that_of_the_world():
    hanging = ROBOT.replace(base_orientation=(np.pi, 0.0, 0.0))
    errors = PlantErrors(tip_force=(0.0, 0.05, 0.0), damping_factor=8.0)
    found = run(errors, 3.0, 1, np.zeros(3), hanging)
    assert found[-1].true_tip_pose[1, 3] < -1e-3  # the hanging base's y axis is the other way
    felt = np.mean([each.wrench[:3] for each in found[-60:]], 0)
    assert felt[1] == pytest.approx(-0.05, abs=0.01)


def test_the_robot_differs_in_what_was_asked_alone():
    errors = PlantErrors(dilatation_factor=1.1, length_factor=1.02, base_tilt=(0.03, -0.02))
    other = different_robot(ROBOT, errors)
    ratio = other.segment_compliances[0] / ROBOT.segment_compliances[0]
    assert ratio == pytest.approx([1.0, 1.0, 1.1, 1.0, 1.0, 1.0])
    assert other.length == pytest.approx(1.02 * ROBOT.length)
    tilted = 9.81 * np.array([0.02, 0.03, 1.0])
    assert CosseratRod(other).grid.gravity == pytest.approx(tilted, abs=0.01)
    same = different_robot(ROBOT, PlantErrors())
    assert same.segment_compliances == pytest.approx(ROBOT.segment_compliances)
    assert same.actuators == ROBOT.actuators


# --- between command and body -------------------------------------------------------------------


def test_valves_rise_fall_and_rest():
    valves = Valves(1.005, 10.0, vent_pole_factor=0.5, dead_band=100.0)
    levels = valves.levels(np.array([0.0, 50e3, 20.05e3]), np.full(3, 20e3), 0.01, 10)
    aim = 1.005 * 20e3
    assert levels[-1, 0] == pytest.approx(aim * (1.0 - np.exp(-1.0)))
    assert levels[-1, 1] == pytest.approx(aim + (50e3 - aim) * np.exp(-0.5))
    assert (levels[:, 2] == 20.05e3).all()


def test_a_hose_lags_a_ramp_by_one_over_its_pole():
    acting = ActingPressures(PlantErrors(hose_pole=30.0), ROBOT)
    times = np.arange(0.0, 1.0005, 0.003)
    ramp = 20e3 * times[:, None] * np.ones(3)
    assert ramp[-1] - acting.levels(ramp, 0.003)[-1] == pytest.approx(20e3 / 30.0, rel=1e-6)


def test_play_lets_go_of_its_width():
    acting = ActingPressures(PlantErrors(play_half_width=(400.0, 1000.0, 0.0)), ROBOT)
    up = acting.levels(np.linspace(0.0, 10e3, 50)[:, None] * np.ones(3), 0.003)
    assert up[-1] == pytest.approx([9600.0, 9000.0, 10e3])
    down = acting.levels(np.linspace(10e3, 9e3, 50)[:, None] * np.ones(3), 0.003)
    assert down[-1] == pytest.approx([9400.0, 9000.0, 9e3])


def test_a_smooth_loop_has_the_area_of_its_plays():
    """A play of radius r loses 4 r (a - r) per cycle of amplitude a above r (Visintin)."""
    errors = PlantErrors(
        hysteresis_share=0.1, hysteresis_radius_min=500.0, hysteresis_radius_max=3000.0
    )
    acting, amplitude = ActingPressures(errors, ROBOT), 8e3
    angle = np.linspace(0.0, 4.0 * np.pi, 40001)
    pressures = 20e3 + amplitude * np.sin(angle)
    acted = acting.levels(pressures[:, None] * np.ones(3), 1e-3)[:, 0]
    last = slice(20000, None)
    area = -np.trapezoid(acted[last], pressures[last])
    radii = np.linspace(500.0, 3000.0, 10)
    expected = 0.1 * np.mean(4.0 * radii * (amplitude - radii))
    assert abs(area) == pytest.approx(expected, rel=1e-3)


def test_creep_comes_late_and_ends():
    acting = ActingPressures(PlantErrors(creep_share=(0.1,), creep_time=(2.0,)), ROBOT)
    step = np.full((1001, 3), 30e3)
    step[0] = 0.0
    acted = acting.levels(step, 0.01)[:, 0]
    late = 0.1 * 30e3 * np.exp(-np.array([1, 200, 1000]) * 0.01 / 2.0)
    assert acted[[1, 200, 1000]] == pytest.approx(30e3 - late)


def test_softening_counts_cycles():
    softening = Softening(0.1, np.full(3, 1e5))
    assert softening.factor == pytest.approx(0.9)
    for _ in range(5):
        softening.travelled(np.array([[0.0] * 3, [1e5] * 3, [0.0] * 3]))
    assert softening.cycles == pytest.approx(5.0)
    assert softening.factor == pytest.approx(1.0 - 0.1 * np.exp(-3.0))


# --- what sensors tell --------------------------------------------------------------------------


def test_readings_are_brought_to_the_command():
    errors = PlantErrors(pressure_bias=(300.0, -200.0, 100.0), pressure_gain=1.01)
    last = run(errors, 1.5)[-1]
    steady = ROBOT.pressure_lag.gain / ROBOT.pressure_lag.pole
    true = steady * (PRESSED - [300.0, -200.0, 100.0]) / 1.01
    assert last.true_pressures == pytest.approx(true, rel=1e-4)
    assert last.pressures == pytest.approx(1.01 * true + [300.0, -200.0, 100.0], rel=1e-4)


def test_a_camera_is_off_and_lies_as_often_as_it_should():
    errors = PlantErrors(
        dropout=0.2, outlier_share=0.1, outlier_size=0.01, marker_offset=(1e-3, 0.0, 2e-3),
        registration_offset=(0.0, 5e-4, 0.0), registration_rotation=(0.0, 0.0, 0.1),
    )  # fmt: skip
    streams = [np.random.default_rng(each) for each in np.random.SeedSequence(4).spawn(3)]
    camera = Camera(errors, 0.0, streams)
    pose = pin.exp6(np.array([0.02, 0.01, 0.15, 0.3, -0.2, 0.1])).homogeneous
    right = pose @ np.array([1e-3, 0.0, 2e-3, 1.0])
    right = pin.exp3(np.array([0.0, 0.0, 0.1])) @ right[:3] + [0.0, 5e-4, 0.0]
    seen = [camera.sees(pose) for _ in range(4000)]
    lost = sum(each is None for each in seen)
    off = np.array([np.linalg.norm(each[:3, 3] - right) for each in seen if each is not None])
    # five standard deviations of 4000 tosses
    assert lost / 4000 == pytest.approx(0.2, abs=0.032)
    assert np.mean(off > 1e-6) == pytest.approx(0.1, abs=0.026)
    assert off[off > 1e-6] == pytest.approx(0.01)


def test_streams_repeat_and_differ_from_each_other():
    noisy = PlantErrors(pressure_noise=100.0, tip_noise=1e-3)
    first, again, other = (run(noisy, 0.2, seed) for seed in (1, 1, 2))
    for a, b, c in zip(first, again, other, strict=True):
        assert (a.pressures == b.pressures).all()
        assert (a.tip_pose == b.tip_pose).all()
        assert (a.pressures != c.pressures).all()
    # an effect more does not change the noise of the others
    more = run(PlantErrors(pressure_noise=100.0, tip_noise=1e-3, dropout=0.5), 0.2, 1)
    assert [each.pressures.tolist() for each in more] == [e.pressures.tolist() for e in first]
    assert 0 < sum(each.tip_pose is None for each in more) < len(more)
    drawn = np.array([each.pressures - each.true_pressures for each in first]) / 100.0
    controllers = np.random.default_rng(1).standard_normal(drawn.size)
    assert np.abs(drawn.ravel()[:, None] - controllers).min() > 1e-9


# --- as a plant of the simulator ----------------------------------------------------------------


def test_the_rod_plant_takes_its_errors_from_a_file_and_one_given_alone_counts_before():
    alone = "tip_mass_factor=1.2, lever_factor=[1.05, 1, 1]"
    settings = RodPlantSettings(plant_errors="typical", errors=alone, intervals=5)
    plant = RodPlant(ROBOT, settings, 3)
    told, errors = plant.describe(), plant.simulated.errors
    assert (errors.tip_mass_factor, errors.lever_factor) == (1.2, (1.05, 1.0, 1.0))
    assert told["plant_model"] == "beam"
    assert told["plant_errors"]["hysteresis_share"] == errors.hysteresis_share == 0.08
    assert told["plant_mismatch"]["bending_compliance"] == -0.05
    assert {"mocap/tip/pose", "pressure/state", "simulation/truth/rod"} <= set(plant.measure(1))
    assert isinstance(plant.simulated, StructuralPlant)
    usual = RodPlant(ROBOT, RodPlantSettings(), 3)
    assert usual.simulated.rod.intervals == 10
    assert "plant_errors" not in usual.describe()
    usual = RodPlant(ROBOT, RodPlantSettings(plant_errors="same_structure", intervals=5), 3)
    assert usual.simulated.errors == load_plant_errors("same_structure")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("bending_factor", r"errors: 'bending_factor' is not allowed: must be NAME=VALUE"),
        ("bending_factor=soft", r"errors: 'bending_factor=soft' is not allowed"),
        ("bending_factor=1,bending_factor=2", r"each name once"),
        ("bending_factor=9", r"bending_factor: 9 is not allowed: must be from 0.2 to 5"),
        ("bend=1", r"bend: unknown field"),
        ("hose_pole=60", r"hose_pole: the plant has the equations of the model, allowed are base_"),
    ],
)
def test_an_error_that_cannot_be_is_one_line(text, line):
    with one_line(line):
        RodPlant(ROBOT, RodPlantSettings(errors=text, intervals=5))


def test_loads_are_for_a_plant_with_the_equations_of_the_model():
    with pytest.raises(ValueError, match=r"loads = 'tip_pull': has no meaning with plant_errors"):
        RodPlantSettings(plant_errors="typical", loads="tip_pull")


@pytest.mark.parametrize("name", ["till_tendon", "rao_two_segments"])
def test_robots_it_cannot_be_are_refused(name):
    robot = load_robot(name)
    with pytest.raises(UserError, match="a plant with errors knows no"):
        StructuralPlant(robot, PlantErrors(length_factor=1.01))


def test_after_a_reset_it_does_the_same_again():
    plant = StructuralPlant(ROBOT, load_plant_errors("hard"), 5, 5)
    found = []
    for _repetition in range(2):
        plant.reset()
        plant.follow(PRESSED)
        for _ in range(10):
            plant.advance(PERIOD)
        found.append(plant.measure(9))
    assert (found[0].state == found[1].state).all()
    assert (found[0].tip_pose == found[1].tip_pose).all()
