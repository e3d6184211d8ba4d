"""Planar strain robots in the stack: options, messages, plant, estimator, regulator, bags, runs."""

from dataclasses import replace

import numpy as np
import pytest
from kit.loops import replayed, sent_by
from kit.refusals import one_line
from kit.refused_calls import refused

from softcr_control.observation import ControlContext, Observation
from softcr_control.reference.references import Reference
from softcr_estimation.context import EstimationContext
from softcr_models.model import Group, Layout, nominal_parameters
from softcr_models.models import make_model
from softcr_models.robots.robot import load_robot
from softcr_papers.valadas2024.learning.bag_recordings import bag_motion
from softcr_papers.valadas2024.shape_estimator import ShapeEstimator, ShapeSettings
from softcr_papers.valadas2024.shape_regulator import RegulatorGains, ShapeRegulator
from softcr_papers.valadas2024.strain.arm import StrainArm, load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, simulate
from softcr_papers.valadas2024.strain.strain_model import LagrangianModel, StrainModelSettings
from softcr_papers.valadas2024.strain_plant import StrainPlant, StrainPlantSettings
from softcr_papers.valadas2024.strain_references import SETPOINTS, StrainSetpoints, StrainSines
from softcr_papers.valadas2024.strain_regulator import StrainRegulator, StrainRegulatorSettings
from softcr_papers.valadas2024.studies.control import GAINS
from softcr_runtime.blocks.values import Pose, ReferenceRows, StateEstimate
from softcr_runtime.wire.codecs import codec, expected_of
from softcr_runtime.wire.frames import base_in_world
from softcr_runtime.wire.messages import MessageError
from softcr_runtime.wire.topics import TRUTH
from softcr_tools import cli, report
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.shape import hangs

TWO = load_strain_arm("pcs_two_segments")
STIFF = load_strain_arm("pcs_stiff_axial_shear")
PLANT = StrainDynamics(TWO.numbers)
MODEL = LagrangianModel(TWO, StrainModelSettings(longest_step=0.005, held_torques=True))
STRAINS = np.array([-16.0, -0.01, 0.08, 9.5, -0.05, -0.09])
WANTED = np.array([-16.7, -0.008, 0.079, 9.6, -0.048, -0.095])
QUIET = {"tip_noise": 0.0, "angle_noise": 0.0}
SAME = {"stiffness_factor": 1.0, "damping_factor": 1.0, "mass_factor": 1.0}


def options_of(**given):
    return SimulationOptions.of_options({"robot": "pcs_two_segments", "mode": "lockstep", **given})


def system_of(of, **given):
    """The blocks of `softcr up simulation`, with other settings by node."""
    system = simulation_system(options_of(**given), "none")
    parts = tuple(
        replace(part, parameters={**part.parameters, **of.get(part.name, {})})
        for part in system.parts
        if part.name != "recorder"
    )
    return replace(system, parts=parts, activation=tuple(part.name for part in parts))


# --- options ------------------------------------------------------------------------------------


def test_a_strain_robot_has_its_own_defaults_and_a_given_option_wins():
    own = options_of()
    assert (own.controller, own.estimator, own.reference) == (
        "strain_regulator", "shape", "strain_setpoints",
    )  # fmt: skip
    mpc = options_of(controller="rod_mpc", reference="strain_sines")
    assert (mpc.estimator, mpc.of("controller"), mpc.reference) == (
        "rod", {"controller_file": "rod_mpc_strain"}, "strain_sines",
    )  # fmt: skip
    assert options_of(estimator="rod").estimator == "rod"
    assert SimulationOptions.of_options({"robot": "licher2025"}).controller == "nempc"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"plant.errors": "payload_mass=0.1"}, "plant.errors = .*: unknown"),
        ({"plant.loads": "tip_pull"}, "unknown; did you mean"),
        ({"reference": "tip_circle"}, "gives only the tip, and the regulator needs strains"),
        ({"estimator": "cc"}, "is for a rod of soft segments"),
        (
            {"estimator.model_file": "pcs_one_segment"},
            "is driven by bending_1, shear_1, axial_1, but robot",
        ),
        ({"controller.model_file": "pcs_none"}, "'pcs_none': unknown"),
        ({"controller": "strain_regulator", "controller.proportional": "1, 2"}, "proportional"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(given, message):
    with one_line(message):
        simulation_system(options_of(**given), "none")


def test_a_file_of_another_robot_is_refused_by_what_needs_strains():
    rod = load_robot("licher2025")
    seen, told = (
        context(rod, make_model("constant_curvature", rod), 0.01)
        for context in (EstimationContext, ControlContext)
    )
    refused(
        (lambda: ShapeEstimator(seen, ShapeSettings()), "strain"),
        (lambda: StrainRegulator(told, StrainRegulatorSettings()), "strain"),
        (lambda: StrainSetpoints(told, StrainSetpoints.Settings()), "strain"),
    )


# --- messages -----------------------------------------------------------------------------------


def test_states_of_another_model_are_refused():
    expected = expected_of(TWO, layout=MODEL.state)
    assert (expected.bodies, expected.frame) == (TWO.markers, "base")
    rows = ReferenceRows(5, 0.01, np.arange(24.0).reshape(2, 12), np.ones((2, 3)))
    message = codec("reference/output", expected).encode(rows, 5)
    assert "state.bending.1" in [field.name for field in message.fields]
    other = LagrangianModel(load_strain_arm("pcs_one_segment"))
    foreign = codec("reference/output", expected_of(TWO, layout=other.state))
    with pytest.raises(MessageError, match=r"state.bending.0, .* are not those of the model"):
        foreign.decode(message)


def test_the_viewer_bends_a_robot_by_its_strains():
    picture = Picture(TWO)
    truth = StateEstimate(np.r_[STRAINS, np.zeros(6)], {}, layout=MODEL.state)
    picture.hear(TRUTH, 1_000_000_000, truth, 1.0)
    tip = MODEL.observe(("tip",), np.r_[STRAINS, np.zeros(6)][None], None, np.ones((1, 3)))["tip"]
    np.testing.assert_allclose(picture.truth.positions[-1], tip[0, :, 3], atol=1e-12)
    assert (TWO.length, TWO.radius, hangs(TWO)) == (pytest.approx(0.17), 0.02, False)
    section = Layout((Group("coordinates", np.arange(2), "m"),), np.ones(2))
    foreign = StateEstimate(np.zeros(2), {}, layout=section)
    picture.hear("estimate/state", 1_000_000_000, foreign, 1.0)
    picture.hear("estimate/shape", 1_000_000_000, (Pose(np.ones(3), np.eye(4)[3]),), 1.0)
    assert picture.shape_topic == "estimate/shape"  # a state of another model has no shape
    assert [each.unit for each in picture.inputs_shown] == ["mN m", "N", "N"] * 2


def test_a_hanging_robot_hangs_in_the_world():
    along = base_in_world(TWO)[:3, :3] @ [0.0, 0.0, 1.0]
    np.testing.assert_allclose(along, [0.0, 0.0, -1.0], atol=1e-12)
    tilted = StrainArm.model_validate({**TWO.model_dump(), "gravity": [9.81, 0.0]})
    down = base_in_world(tilted)[:3, :3] @ [1.0, 0.0, 0.0]
    np.testing.assert_allclose(down, [0.0, 0.0, -1.0], atol=1e-12)


# --- plant --------------------------------------------------------------------------------------


def test_the_plant_is_the_robot_with_other_numbers_under_held_torques():
    settings = StrainPlantSettings(
        stiffness_factor=1.1, damping_factor=0.8, mass_factor=1.2, tip_noise=0.0, angle_noise=0.0
    )
    plant = StrainPlant(TWO, settings)
    torques = np.array([[0.03, 0.1, 0.5, -0.01, 0.05, 0.3], [0.0, -0.2, 0.1, 0.02, 0.0, -0.5]])
    numbers = TWO.numbers
    true = numbers.replace(
        stiffness=1.1 * numbers.stiffness, damping=0.8 * numbers.damping, mass=1.2 * numbers.mass,
        inertia=1.2 * numbers.inertia, weight=1.2 * numbers.weight,
    )  # fmt: skip
    exact = Integration("radau", 1e-9)
    oracle = simulate(StrainDynamics(true), np.zeros(12), torques, 0.02, exact)[0]
    for torque, state in zip(torques, oracle[1:], strict=True):
        plant.follow(torque)
        plant.advance(0.02)
        measured = plant.measure(1)
        found = measured[TRUTH].state[:6]
        assert (np.abs(found - state[:6]) < [4e-4, 1e-5, 1e-5] * 2).all()
        np.testing.assert_array_equal(measured["torque/state"], torque)  # what acted until now
    assert len(measured["mocap/body/poses"]) == TWO.markers
    tip = measured["simulation/truth/tip/pose"]
    np.testing.assert_allclose(measured["mocap/body/poses"][-1].position, tip.position, atol=1e-12)


def test_a_seed_repeats_the_cameras_noise_and_without_commands_no_torque_acts():
    plants = [StrainPlant(TWO, StrainPlantSettings(tip_noise=1e-3), seed) for seed in (3, 3, 4)]
    places = []
    for plant in plants:
        plant.follow(np.full(6, 1e3))  # beyond the largest torques
        plant.advance(0.001)
        assert plant.measure(1)["torque/state"][0] == TWO.largest_torque[0]
        plant.idle()
        plant.advance(0.001)
        measured = plant.measure(2)
        assert not measured["torque/state"].any()
        places.append([pose.position for pose in measured["mocap/body/poses"]])
    np.testing.assert_array_equal(places[0], places[1])
    spread = np.std(np.subtract(places[0], places[2])[:, [0, 2]]) / np.sqrt(2.0)
    assert 0.6e-3 < spread < 1.6e-3  # seeds 3 and 4: 40 differences of two draws of 1 mm


# --- estimator ----------------------------------------------------------------------------------


def seen(strains, robot=TWO):
    model = LagrangianModel(robot)
    names = tuple(f"marker_{k + 1}" for k in range(robot.markers))
    state = np.r_[strains, np.zeros(len(strains))]
    found = model.observe(names, state[None], None, np.ones((1, 3)))
    return {name: np.vstack([pose[0], [0.0, 0.0, 0.0, 1.0]]) for name, pose in found.items()}


@pytest.mark.parametrize(("robot", "stiff"), [(TWO, []), (STIFF, [2, 4])], ids=["soft", "stiff"])
def test_strains_and_rates_come_from_the_markers(robot, stiff):
    """Those that the markers' noise would hide come from the torques, here none."""
    size = len(robot.actuator_names)
    random, rates = np.random.default_rng(2), np.linspace(-2.0, 3.0, size)
    begin = random.uniform(-0.1, 0.1, size)
    begin[stiff] = rates[stiff] = 0.0
    context = EstimationContext(robot, LagrangianModel(robot), 0.005)
    estimator = ShapeEstimator(context, ShapeSettings())
    for k in range(10):
        found = estimator.update(np.zeros(size), seen(begin + rates * 0.005 * k, robot), 0.005 * k)
    np.testing.assert_allclose(found.state[:size], begin + rates * 0.045, atol=1e-7)
    np.testing.assert_allclose(found.state[size:], rates, atol=1e-4)
    tip = seen(begin + rates * 0.045, robot)[f"marker_{robot.markers}"][:3, 3]
    np.testing.assert_allclose(found.tip_position, tip, atol=1e-8)


def test_a_robot_that_hardly_stretches_and_shears_is_held_at_setpoints():
    """Its axial modulus is a thousand times that of the others: the noise of its markers would be
    forces beyond the largest, and the setpoints of the soft robot are out of its reach."""
    sent = sent_by(system_of({}, robot="pcs_stiff_axial_shear", duration="2.0"))
    truths = np.array([each.state[:6] for each in sent.values(TRUTH)[-40:]])
    wanted = sent.values("reference/output")[-1].states[0, :6]
    inputs = LagrangianModel(STIFF).inputs
    assert (np.abs(np.array(sent.values("torque/sent")[-40:])) < inputs.high).all()
    assert (np.abs(truths - wanted) < [0.5, 0.01, 2e-4, 0.5, 1e-3, 0.02]).all()
    assert abs(wanted[0]) > 10.0


def test_markers_that_are_no_shape_tell_nothing():
    estimator = ShapeEstimator(EstimationContext(TWO, MODEL, 0.005), ShapeSettings())
    poses = seen(STRAINS)
    assert estimator.update(np.zeros(6), poses, 0.0) is not None
    swapped = poses | {"marker_5": poses["marker_15"], "marker_15": poses["marker_5"]}
    assert estimator.update(np.zeros(6), swapped, 0.005) is None
    assert "off any shape" in estimator.warnings()[0]
    assert estimator.describe()["refused_frames"] == 1
    assert estimator.update(np.zeros(6), {}, 0.01) is None


# --- references and regulator -------------------------------------------------------------------


def test_setpoints_are_those_of_the_paper_and_sines_have_their_rates():
    context = ControlContext(TWO, MODEL, 0.005)
    setpoints = StrainSetpoints(context, StrainSetpoints.Settings(hold=5.0))
    rows = setpoints.window(4.995, 3)
    np.testing.assert_array_equal(rows.states[:, :6], SETPOINTS[[0, 1, 1]])
    np.testing.assert_array_equal(setpoints.window(1e3, 1).states[0, :6], SETPOINTS[6])
    sines = StrainSines(context, StrainSines.Settings())
    around = sines.window(0.7, 3).states  # within the fade-in
    slopes = (around[2, :6] - around[0, :6]) / 0.01
    np.testing.assert_allclose(slopes, around[1, 6:], rtol=2e-3, atol=1e-3)
    context = ControlContext(STIFF, LagrangianModel(STIFF), 0.005, 3)
    drawn = StrainSetpoints(context, StrainSetpoints.Settings())
    assert drawn.shapes.shape == (7, len(STIFF.actuator_names))


def observation(state, wanted, stamp=0.0, delay=1, inputs=None):
    rows = np.tile(np.r_[wanted, np.zeros(6)], (4 + delay, 1))
    reference = Reference(stamp, 0.005, rows, np.zeros((4 + delay, 3)))
    acted = np.zeros(6) if inputs is None else inputs
    return Observation(stamp, state, {}, reference, acted, MODEL, delay)


def regulator_of(**told):
    return StrainRegulator(ControlContext(TWO, MODEL, 0.005), StrainRegulatorSettings(**told))


@pytest.mark.parametrize("delay", [1, 2])
def test_an_answer_that_acts_later_is_that_to_the_predicted_state(delay):
    """The law at the state that the model predicts under the torques that are on their way."""
    regulator = regulator_of()
    law = regulator._regulator
    begin, sent = np.zeros(12), np.array([0.01, 0.1, 0.2, 0.01, -0.1, 0.2])
    first = regulator.command(observation(begin, STRAINS, delay=delay, inputs=sent))
    state, integral = begin, law.integral.copy()
    for _ in range(delay):  # until the answer acts, what acted goes on
        state = simulate(PLANT, state, sent[None], 0.005)[0, -1]
        integral = integral + 0.005 * np.tanh(law.gains.saturation * (STRAINS - state[:6]))
    expected = law.held_torque(state[:6], state[6:], STRAINS, 0.005, integral)
    np.testing.assert_allclose(first, expected, rtol=1e-2, atol=2e-3)  # a step of 5 ms, 0.2 %
    regulator.reset()
    assert not law.integral.any()


def test_a_torque_is_held_until_the_next_answer_which_may_be_ticks_away():
    """A controller that is too slow for its period answers every third tick; a law that takes the
    torque as held for one tick alone swings from limit to limit then."""
    arm = load_strain_arm("pcs_one_segment")
    model = LagrangianModel(arm, StrainModelSettings(longest_step=0.005, held_torques=True))
    regulator = StrainRegulator(ControlContext(arm, model, 0.005), StrainRegulatorSettings())
    size, parameters = model.inputs.size, nominal_parameters(model.parameters)[None]
    wanted, state, acting = np.array([10.0, 0.0, 0.0]), np.zeros(2 * size), np.zeros((1, size))
    rows = Reference(0.0, 0.005, np.tile(np.r_[wanted, np.zeros(size)], (8, 1)), np.zeros((8, 3)))
    for answer in range(100):
        told = Observation(0.015 * answer, state, {}, rows, acting[0], model, 3)
        sent = regulator.command(told)[None]
        for _ in range(3):
            state = model.step(state[None], acting, acting, parameters, 0.005)[0]
        acting = sent
    np.testing.assert_allclose(state[:size], wanted, atol=0.1)


def test_estimated_parameters_change_the_feedforward():
    """At rest at the shape wanted, all that is left is what holds it: of a robot that is 20 %
    stiffer and 10 % heavier than its file."""
    regulator, numbers = regulator_of(), TWO.numbers
    other = StrainDynamics(
        numbers.replace(
            stiffness=1.2 * numbers.stiffness, weight=1.1 * numbers.weight,
            mass=1.1 * numbers.mass, inertia=1.1 * numbers.inertia,
        )
    )  # fmt: skip
    holds = 1.2 * numbers.stiffness * STRAINS + other.gravity_force(STRAINS)
    told = replace(
        observation(np.r_[STRAINS, np.zeros(6)], STRAINS, inputs=holds),
        parameters={"stiffness_factor": 1.2, "mass_factor": 1.1},
    )
    np.testing.assert_allclose(regulator.command(told), holds, rtol=1e-5, atol=1e-7)


def test_a_reference_of_tips_alone_is_refused():
    told = observation(np.zeros(12), STRAINS)
    tips = replace(told, reference=replace(told.reference, states=None))
    with one_line("the reference gives no strains"):
        regulator_of().command(tips)
    with one_line(r"proportional .* must be 3 gains"):
        regulator_of(proportional=(1.0, 2.0, 3.0, 4.0))


# --- the law of the regulator: its statics, its period, its limits ---


@pytest.mark.parametrize("model", [PLANT, MODEL], ids=["dynamics", "model"])
def test_the_feedforward_holds_the_shape(model):
    regulator = ShapeRegulator(model, GAINS)
    at_rest = regulator.torque(WANTED, np.zeros(6), WANTED)
    np.testing.assert_allclose(
        PLANT.acceleration(WANTED, np.zeros(6), at_rest), np.zeros(6), atol=1e-6
    )
    np.testing.assert_array_equal(at_rest, regulator.feedforward(WANTED))


def test_torque_is_the_law():
    regulator, random = ShapeRegulator(PLANT, GAINS), np.random.default_rng(0)
    q, rate, before = (random.normal(size=6) * 0.1 for _ in range(3))
    regulator.integrate(before, WANTED, 0.5)
    expected = (
        regulator.feedforward(WANTED) + GAINS.proportional * (WANTED - q)
        - GAINS.derivative * rate
        + GAINS.integral * 0.5 * np.tanh(GAINS.saturation * (WANTED - before))
    )  # fmt: skip
    np.testing.assert_allclose(regulator.torque(q, rate, WANTED), expected, rtol=1e-12)
    regulator.reset()
    assert not regulator.integral.any()


def test_a_short_period_is_the_continuous_law():
    regulator, random = ShapeRegulator(PLANT, GAINS), np.random.default_rng(1)
    q, rate = 0.1 * random.normal(size=6), 0.1 * random.normal(size=6)
    law = regulator.torque(q, rate, WANTED)
    errors = [np.abs(ShapeRegulator(PLANT, GAINS).tick(q, rate, WANTED, h) - law).max()
              for h in (1e-7, 1e-8)]  # fmt: skip
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize("period", [0.001, 0.01])
def test_a_light_robot_is_held_with_a_period(period):
    regulator, state = ShapeRegulator(PLANT, GAINS), np.zeros(12)
    for _ in range(round(0.3 / period)):
        torque = regulator.tick(state[:6], state[6:], WANTED, period)
        state = simulate(PLANT, state, torque[None], period)[0, -1]
    assert (np.abs(state[:6] - WANTED) / [60.0, 0.3, 0.3, 60.0, 0.3, 0.3]).max() < 0.05


def test_held_torques_of_the_continuous_law_diverge():
    """Why `tick` looks ahead: the same law, held for a millisecond."""
    regulator, state = ShapeRegulator(PLANT, GAINS), np.zeros(12)
    for _ in range(60):
        torque = regulator.torque(state[:6], state[6:], WANTED)
        state = simulate(PLANT, state, torque[None], 0.001)[0, -1]
        if not np.isfinite(state).all() or np.abs(state[6:]).max() > 1e5:
            return
    pytest.fail("the motion stayed small")


def test_torques_keep_their_limits():
    largest = 0.01 * np.ones(6)
    regulator = ShapeRegulator(PLANT, GAINS, largest)
    assert np.abs(regulator.tick(np.zeros(6), np.zeros(6), WANTED, 0.005)).max() == 0.01
    assert np.abs(regulator.torque(np.zeros(6), np.zeros(6), WANTED)).max() == 0.01


def test_gains_and_states_that_are_not_allowed_get_one_line():
    regulator, lost = ShapeRegulator(PLANT, GAINS), np.nan * WANTED
    few = RegulatorGains(*[[1.0]] * 4)
    refused(
        (lambda: RegulatorGains([1.0], [1.0, 2.0], [1.0], [1.0]), "integral .* for each strain"),
        (lambda: RegulatorGains([1.0], [-1.0], [1.0], [1.0]), "finite and not below 0"),
        (lambda: ShapeRegulator(PLANT, few), "the model has 6 strains"),
        (lambda: regulator.tick(WANTED, WANTED, WANTED, 0.0), "period 0.0 s"),
        (lambda: regulator.tick(lost, WANTED, WANTED, 0.1), "must be finite"),
    )


# --- the loop -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Outputs of three seconds, of a plant that is the file, and their bag."""
    bag = tmp_path_factory.mktemp("strain") / "bag"
    return sent_by(system_of({"simulator": QUIET | SAME}, duration=3.0), bag), bag


def test_the_regulator_bends_the_robot_to_its_setpoint(run):
    sent, _ = run
    found = sent.values(TRUTH)[-1].state[:6]
    scale = np.array([60.0, 0.3, 0.3] * 2)
    assert (np.abs(found - SETPOINTS[0]) / scale).max() < 0.02
    plans = sent.values("torque/plan")
    assert not plans[-1].commands[-1].any()  # the controller's last word
    torques = np.array([plan.commands[0] for plan in plans[:-1]])
    assert np.abs(np.diff(torques[-19:], axis=0)).max() < 0.02  # calm, not from limit to limit


def test_a_run_comes_back_to_the_bit_and_is_reported(run, tmp_path):
    _, bag = run
    told = replayed(bag, "--controller")
    for counts in (told["estimates"], told["commands"]):
        assert 590 <= counts["identical"] == counts["recorded"] == counts["replayed"]
    assert told["command_unit"] == "N m, N"
    assert told["command_difference"]["max"] == 0.0
    summary = report.build(bag, tmp_path)
    assert summary["strains"]["bending_setpoint_error"] < 0.2  # [rad/m]
    assert summary["strains"]["linear_setpoint_error"] < 0.02
    assert summary["estimate_tip_aed_mm"] < 0.5


def test_a_bag_is_a_motion_to_learn_from(run):
    sent, bag = run
    motion = bag_motion(bag, None)
    assert motion.length == pytest.approx(0.17)
    assert motion.poses.shape[2:] == (TWO.markers + 1, 3)
    assert motion.period == pytest.approx(0.005)
    # what is played from a sample on acts until the next one
    stamps, played = sorted(sent.by_stamp("torque/state")), sent.by_stamp("torque/sent")
    for k in (10, 50, 100):
        np.testing.assert_array_equal(motion.torques[0, k], played[stamps[k]])
    truth = sent.by_stamp(TRUTH)[stamps[100]].state[:6]
    own = PLANT.kinematics.poses(truth, motion.places)
    np.testing.assert_allclose(motion.poses[0, 100], own, atol=1e-9)


def test_a_bag_of_another_robot_is_refused_in_one_line(tmp_path, capsys):
    assert cli.main(["learn", "strain", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(tmp_path) in said


def test_the_filter_on_the_model_finds_how_the_plant_differs():
    parts = ("estimator", "simulator", "reference", "strain_regulator")
    of = {part: {"rate_hz": 50.0} for part in parts}
    of["simulator"] |= SAME | {"stiffness_factor": 1.1}
    sent = sent_by(system_of(of, duration=2.0, estimator="rod", reference="setpoint"))
    last, told = sent.values("estimate/state")[-1], sent.by_stamp("estimate/state")
    # seed 1, 100 frames: within 3 %; the file's value is 10 % off
    assert last.parameters["stiffness_factor"] == pytest.approx(1.1, rel=0.03)
    truth = sent.by_stamp(TRUTH)[max(told)]
    error = last.state[:6] - truth.state[:6]
    assert np.abs(error[[0, 3]]).max() < 0.1
    assert np.abs(error[[1, 2, 4, 5]]).max() < 2e-3
