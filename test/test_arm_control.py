"""Controllers of arms of several segments: inputs to spare, tips with an orientation."""

from dataclasses import replace

import numpy as np
import pytest
from kit.desks import Desk
from kit.loops import looped, replayed
from kit.models import LAG, LinearModel, context
from kit.steering import standing, steered
from scipy.spatial.transform import Rotation

from softcr_control import GaussNewtonMpc, Nempc
from softcr_control.costs import CostSettings, Rollout
from softcr_control.goals.block import GoalReference
from softcr_control.reference.references import Reference, SampledReference, as_rotations, from_file
from softcr_control.reference.rows import ReferenceSource
from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.model import Inputs
from softcr_models.prediction import RodPrediction
from softcr_models.rod.obstacles import Plane, Sphere
from softcr_models.rod_model.clearance import Clearance
from softcr_models.rod_model.rows import interval_counts
from softcr_runtime.blocks.values import Goal, ReferenceRows
from softcr_runtime.wire.codecs import codec, expected_of
from softcr_runtime.wire.goal_messages import tip_to_message
from softcr_runtime.wire.messages import MessageError
from softcr_runtime.wire.value_checks import check_value

TWO = load_robot("two_segments")
TURNED = Rotation.from_euler("xyz", [[0.3, -0.2, 0.5], [0.1, 0.4, -0.3]])


# --- inputs to spare ----------------------------------------------------------------------------


class TwinModel(LinearModel):
    """The linear model with two chambers in the place of each: their sum alone moves the tip."""

    inputs = Inputs(
        "pressure", tuple("abcdef"), "Pa", np.zeros(6), np.full(6, 1e5), np.full(6, 2e6), LAG
    )

    def __init__(self) -> None:
        super().__init__()
        self._b = np.hstack((self._b, self._b))


@pytest.mark.parametrize("kind", [Nempc, GaussNewtonMpc])
@pytest.mark.parametrize(("level", "apart"), [(1e-3, (0.0, 0.1)), (0.0, (0.3, 1.0))])
def test_inputs_that_push_against_one_another_are_let_go(kind, level, apart):
    model = TwinModel()
    weights = CostSettings(input_rate=0.05, input_level=level)
    numbers = {"population": 200} if kind is Nempc else {}
    controller = kind(context(model), kind.Settings(costs=weights, **numbers))
    felt = np.array([8e4, 7e4, 6e4, 1e4, 0.0, 0.0])
    active, begin = felt * LAG.pole / LAG.gain, model.equilibrium(felt, None)
    goal = model.tip_positions(begin[None], None)[0]
    states, answers = steered(controller, model, standing(goal), 150, begin, felt, active)
    assert np.linalg.norm(model.tip_positions(states[-1:], None)[0] - goal) < 2e-4
    command = answers[-1].pressures
    difference = np.abs(command[:3] - command[3:]).max() / 1e5
    assert apart[0] <= difference < apart[1]


# --- orientations on their way ------------------------------------------------------------------


def test_orientations_of_tips_survive_their_messages_to_the_bit():
    unknown, expected = np.full((3, CosseratRod(TWO, 2).state_size), np.nan), expected_of(TWO, 2)
    asked = np.vstack((TURNED.as_quat(), np.full(4, np.nan)))
    rows = ReferenceRows(5, 0.01, unknown, np.arange(9.0).reshape(3, 3), tip_orientations=asked)
    for topic, value in (
        ("reference/rod", rows),
        ("reference/output", ReferenceRows(5, 0.01, None, rows.tip_positions, lambda: None, asked)),
    ):
        check_value(topic, value, expected)
        wire = codec(topic, expected)
        told = wire.decode(wire.encode(value, 5))
        np.testing.assert_array_equal(told.tip_orientations, asked)
        np.testing.assert_array_equal(told.tip_positions, rows.tip_positions)
    rotations = as_rotations(asked)
    np.testing.assert_allclose(rotations[:2], TURNED.as_matrix(), atol=1e-12)
    assert np.isnan(rotations[2]).all()
    wire, wrong = codec("reference/rod", expected), replace(rows, tip_orientations=np.ones((3, 4)))
    with pytest.raises(MessageError, match=r"orientation \[1.0, .* must be a quaternion of length"):
        wire.decode(wire.encode(wrong, 5))


def test_the_stream_of_a_rod_may_ask_for_an_orientation():
    wire = codec("reference/tip", expected_of(TWO))
    tip = np.r_[0.01, 0.02, 0.2, TURNED.as_quat()[0]]
    np.testing.assert_array_equal(wire.decode(wire.encode(tip, 5)), tip)
    np.testing.assert_array_equal(wire.decode(wire.encode(tip[:3], 5)), tip[:3])
    arm = codec("reference/tip", expected_of(load_robot("dalenberg_robot1", ("arm",))))
    with pytest.raises(MessageError, match="cannot be followed"):
        arm.decode(tip_to_message(tip, 5, "world"))


def test_a_state_that_is_known_tells_its_own_orientation():
    rod = CosseratRod(TWO, 2)
    states = np.vstack((rod.rest_state(), np.full(rod.state_size, np.nan)))
    tips = np.full((2, 3), 0.1)
    source = ReferenceSource(SampledReference(0.01, states, tips, TURNED.as_matrix()), rod)
    asked = source.at(0.0, 2, 7).tip_orientations
    assert np.isnan(asked[0]).all()
    np.testing.assert_allclose(np.abs(asked[1] @ TURNED.as_quat()[1]), 1.0)


def test_a_file_of_tips_may_have_orientations(tmp_path):
    path = tmp_path / "tips.csv"
    quaternions = TURNED.as_quat()
    rows = [[k, 0.0, 0.0, 0.2, *quaternions[k]] for k in range(2)]
    head = "time,tip_x,tip_y,tip_z,tip_qx,tip_qy,tip_qz,tip_qw\n"
    path.write_text(head + "\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    model = RodPrediction(CosseratRod(TWO, 2))
    turned = from_file(model, path, 0.5).tip_orientations
    assert turned.shape == (3, 3, 3)
    half = (TURNED[0].inv() * Rotation.from_matrix(turned[1])).magnitude()
    whole = (TURNED[0].inv() * TURNED[1]).magnitude()
    assert half == pytest.approx(0.5 * whole)
    path.write_text(head + "0,0,0,0.2,0,0,0,0.5", encoding="utf-8")
    with pytest.raises(UserError, match=r"orientation \[0.0, 0.0, 0.0, 0.5\] of row 0 must have"):
        from_file(model, path, 0.5)


# --- goals --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference():
    told = {"robot": "two_segments", "intervals": 2, "mode": "lockstep", "horizon": 2}
    return GoalReference(TWO, GoalReference.settings_of(told))


@pytest.fixture
def desk(reference):
    """A block that is asked for poses."""
    reference.reset()
    return Desk(reference).tick()


def pose_at(pressures):
    rod = CosseratRod(TWO, 2)
    pose = rod.tip_pose(rod.equilibrium(1e3 * np.array(pressures, float)))
    return pose[:3, 3], Rotation.from_matrix(pose[:3, :3])


def test_a_pose_of_an_arm_is_gone_to_and_turned_to_at_its_speed(desk):
    """The oracle is a pose of the rod's own statics, which another place's orientation is not."""
    place, turn = pose_at([30, 5, 15, 5, 30, 10])
    desk.tick(pose=Goal(place[None], "base", turn.as_quat()[None]))
    assert "going to" in desk.block.act("go")
    rows = desk.tick(400).rows[-400:]
    last, state = rows[-1], desk.states[-1]
    np.testing.assert_allclose(last.tip_positions, np.tile(place, (len(last.tip_positions), 1)))
    reached = Rotation.from_quat(last.tip_orientations)
    np.testing.assert_allclose((reached * turn.inv()).magnitude(), 0.0, atol=1e-7)
    assert (state.state, state.message) == ("idle", "arrived")
    known = [each for each in rows if each.tip_orientations is not None]
    turns = Rotation.from_quat([each.tip_orientations[0] for each in known])
    steps = (turns[:-1].inv() * turns[1:]).magnitude()
    assert 0.9 * 0.5 / 70 < steps.max() <= 0.5 / 70 * (1 + 1e-6)
    ahead = Rotation.from_quat(rows[20].tip_orientations)
    later = Rotation.from_quat([each.tip_orientations[0] for each in rows[20:]])
    np.testing.assert_allclose((ahead * later[: len(ahead)].inv()).magnitude(), 0.0, atol=1e-7)


def test_an_axis_that_the_tip_cannot_have_there_is_refused(desk):
    place, turn = pose_at([30, 5, 15, 5, 30, 10])
    away = turn * Rotation.from_euler("x", 0.8)
    desk.tick(pose=Goal(place[None], "base", away.as_quat()[None]))
    with pytest.raises(UserError, match="orientation asked for at"):
        desk.block.act("go")
    desk.tick(pose=Goal(np.array([place, place]), "base", np.tile(turn.as_quat(), (2, 1))))
    with pytest.raises(UserError, match="only the last point of a path may ask"):
        desk.block.act("go")


def test_a_stream_with_an_orientation_is_turned_after_and_forgotten_without_one(desk):
    place, turn = pose_at([20, 10, 15, 5, 20, 10])
    wanted = np.r_[place, turn.as_quat()]
    desk.tick(stream=wanted)
    desk.block.act("follow")
    reached = Rotation.from_quat(desk.tick(300, stream=wanted).rows[-1].tip_orientations[0])
    assert (reached * turn.inv()).magnitude() < 1e-6
    assert desk.tick(stream=place).rows[-1].tip_orientations is None


# --- obstacles ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bent():
    rod = CosseratRod(TWO, 3)
    inputs = 1e3 * np.array([50.0, 5.0, 15.0, 5.0, 50.0, 10.0])
    states = np.stack((rod.rest_state(), rod.equilibrium(inputs)))
    nodes = np.array([rod.node_poses(each)[1:, :3, 3] for each in states])
    counts = np.diff(rod.grid.first_row) - 1
    thick = np.repeat([0.5 * each.outer_diameter for each in TWO.segments], counts)
    return rod, states, nodes, thick


def test_what_is_missing_to_a_clearance_is_that_of_the_nodes(bent):
    rod, states, nodes, thick = bent
    ball, wall = Sphere((0.05, 0.01, 0.15), 0.035), Plane((-2.0, 0.0, 0.0), (0.021, 0.0, 0.0))
    clearance = Clearance(rod, (wall, ball), 0.004)
    depths = clearance.depths(states, rod.nominal_parameters)
    assert depths.shape == (2, clearance.points, 2)
    away = np.linalg.norm(nodes - [0.05, 0.01, 0.15], axis=2) - 0.035
    gaps = np.stack((0.021 - nodes[:, :, 0], away), axis=2) - thick[:, None]
    expected = np.maximum(0.004 - gaps, 0.0)
    assert (expected > 0.0).any(axis=(0, 1)).all()
    np.testing.assert_allclose(depths[:, 1::2], expected, atol=1e-4)
    middles = 0.5 * (expected[:, 1:] + expected[:, :-1])
    np.testing.assert_allclose(depths[:, 2::2], middles, atol=2e-3)
    broken = np.full_like(states, np.nan)
    assert np.isnan(clearance.depths(broken, rod.nominal_parameters)).all()


def test_keeping_away_costs_the_square_of_what_is_missing(bent, tmp_path):
    rod, states, nodes, thick = bent
    model = RodPrediction(rod, single_precision=False)
    obstacles = tmp_path / "wall.yaml"
    low = float((nodes[1, :, 2] - thick).max()) - 0.002  # the last node alone reaches in
    obstacles.write_text(
        f"obstacles: [{{type: plane, normal: [0, 0, -1], point: [0, 0, {low}]}}]", encoding="utf-8"
    )
    weights = CostSettings(
        tip_position=0.0, input_rate=0.0, input_level=0.0, obstacles=str(obstacles), clearance=0.0,
        keep_away=3.0,
    )  # fmt: skip
    (term,) = weights.made(model)
    missing = term.clearance.depths(states[1:], rod.nominal_parameters)
    held = np.zeros((1, 2, model.inputs.size))
    rollout = Rollout(
        states[1], np.repeat(held[:, :1], 2, axis=1), held[:, :1], held[0, 0],
        Reference(0.0, 1e-6, None, np.zeros((1, 3))), model, rod.nominal_parameters, 1e-6,
    )  # fmt: skip
    assert term(rollout) == pytest.approx(3.0 * (missing**2).sum(), rel=1e-3)
    assert missing.sum() > 0.0


def test_only_rods_have_a_body_to_keep_away():
    with pytest.raises(UserError, match=r"costs\.obstacles: 'ball' is not allowed: only the body"):
        CostSettings(obstacles="ball").made(LinearModel())
    with pytest.raises(UserError, match="no_such"):
        CostSettings(obstacles="no_such").made(RodPrediction(CosseratRod(TWO, 2)))


# --- the loop -----------------------------------------------------------------------------------

DIFFERENT = {"intervals": 6, "errors": "bending_factor=0.95,tip_mass_factor=1.1"}


def test_a_pose_of_an_arm_is_held_on_a_plant_that_differs(tmp_path):
    """A pose of the nominal statics; the plant has twice the intervals, is 5 % stiffer and has a
    tenth more payload. The run comes back from its bag to the bit."""
    rod = CosseratRod(TWO, 3)
    pose = rod.tip_pose(rod.equilibrium(1e3 * np.array([50.0, 5.0, 15.0, 5.0, 50.0, 10.0])))
    turned = Rotation.from_matrix(pose[:3, :3]).as_quat()
    path, bag = tmp_path / "pose.npz", tmp_path / "bag"
    np.savez(path, time=[0.0], tip_positions=[pose[:3, 3]], tip_orientations=[turned])
    of = {"plant": DIFFERENT, "reference": {"file": str(path), "trajectory_intervals": 3}}
    sent = looped("rod_mpc", "file", of, bag, robot="two_segments", duration=2.0)
    poses = [each.matrix for each in sent.values("simulation/truth/tip/pose")]
    last = np.array(poses[-30:])
    assert np.linalg.norm(last[:, :3, 3] - pose[:3, 3], axis=1).mean() < 5e-4
    assert np.degrees(np.arccos(np.clip(last[:, :3, 2] @ pose[:3, 2], -1.0, 1.0))).mean() < 1.0
    assert np.degrees(np.arccos(poses[0][:3, 2] @ pose[:3, 2])) > 5.0
    counts = replayed(bag, "--controller")["commands"]
    assert counts["identical"] == counts["compared"] > 100


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("rod_mpc", {}), pytest.param("nempc", {"population": 128}, marks=pytest.mark.later)],
)
def test_a_circle_through_a_ball_goes_round_it(tmp_path, kind, numbers):
    """The wanted tip leads 10 mm into the ball, which the plant does not feel. The skin stays as
    far away as noise and the plant's differences let it, and the tip comes back to its circle."""
    obstacles = tmp_path / "ball.yaml"
    obstacles.write_text(
        "obstacles: [{type: sphere, centre: [0.065, 0.0, 0.2], radius: 0.03}]", encoding="utf-8"
    )
    of = {
        "plant": DIFFERENT,
        "reference": {"radius": 0.03, "height": 0.2, "trajectory_intervals": 3},
        "controller": {"costs.obstacles": str(obstacles), "costs.clearance": 0.005} | numbers,
    }
    sent = looped(kind, "tip_circle", of, robot="two_segments", duration=3.2)
    rods = sent.values("simulation/truth/rod")
    tips = [each.position for each in sent.values("simulation/truth/tip/pose")]
    wanted = [each.tip_positions[0] for each in sent.values("reference/rod")]
    places = np.array([each.poses()[1:, :3, 3] for each in rods])
    rows = np.array(interval_counts(CosseratRod(TWO, 6))) + 1
    thick = np.repeat([0.5 * each.outer_diameter for each in TWO.segments], rows)
    ball = np.array([0.065, 0.0, 0.2])
    gaps = np.linalg.norm(places - ball, axis=2) - 0.03 - thick
    assert np.linalg.norm(np.array(wanted) - ball, axis=1).min() - 0.03 - 0.015 < -0.0099
    assert 0.0042 < gaps.min() < 0.006
    errors = np.linalg.norm(np.array(tips[: len(wanted)]) - wanted, axis=1)
    assert errors.max() > 0.01
    assert errors[-10:].mean() < 5e-4
