"""What rods of several segments and tendons say of themselves as models."""

import numpy as np
import pytest

from softcr_models import CosseratRod, UserError, available_robots, load_robot
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.robots.segments import Connector
from softcr_models.rod.description import rod_inputs, rod_layout, rod_parameters

ROBOTS = available_robots()


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("intervals", [1, 5])
def test_every_shipped_rod_describes_itself(name, intervals):
    robot = load_robot(name)
    rod = CosseratRod(robot, intervals, tip_force=True)
    layout, inputs = rod_layout(rod), rod_inputs(robot)
    assert layout.size == rod.state_size
    assert inputs.names == robot.actuator_names
    for parameter in rod_parameters(rod):
        assert parameter.low < parameter.high
        assert parameter.low <= parameter.nominal <= parameter.high
        assert (parameter.transform == "log") == (parameter.low > 0.0)


def test_the_layout_of_two_segments_counts_both_wrenches_of_the_boundary():
    rod = CosseratRod(load_robot("two_segments"), 4)
    layout = rod_layout(rod)
    nodes, rows = 8, 10 + 1  # one wrench more: below the base
    sizes = {group.name: len(group.indices) for group in layout}
    assert sizes == {
        "velocity": 3 * nodes, "angular_velocity": 3 * nodes, "force": 2 * rows, "force_z": rows,
        "torque": 3 * rows,
    }  # fmt: skip
    tip_speeds = layout.scale[layout["velocity"]].reshape(nodes, 3)[:, 0]
    assert np.all(np.diff(tip_speeds) > 0.0)
    assert tip_speeds[-1] == pytest.approx(rod.robot.length / 0.1)


def test_a_segments_least_wrench_is_that_of_what_hangs_below_it():
    """Of an arm whose chambers hardly push, by hand: every wrench is then that of a weight."""
    robot = load_robot("two_segments")
    weak = robot.pressure_limits.model_copy(update={"maximum": 500.0})
    robot = robot.replace(pressure_limits=weak)
    rod = CosseratRod(robot, 2)
    layout = rod_layout(rod)
    rows = np.diff(rod.grid.first_row)
    first, second = robot.gravity * 1070.0 * robot.segment_areas * [0.10, 0.08]
    weights = second + first + robot.gravity * (0.030 + 0.050), second + robot.gravity * 0.050
    for group, levers in (("force_z", (1.0, 1.0)), ("torque", (0.3 * 0.18, 0.3 * 0.08))):
        scale = layout.scale[layout[group]].reshape(rows.sum() + 1, -1)
        for row, (weight, lever) in enumerate(zip(weights, levers, strict=True)):
            own = scale[rows[0] * row : rows[0] + rows[1] * row]
            assert own == pytest.approx(weight * lever)
        assert scale[-1] == pytest.approx(weights[0] * levers[0])  # below the base


def test_inputs_are_pressures_tensions_or_both():
    arm = load_robot("tendon_arm")
    tensions = rod_inputs(arm)
    assert (tensions.quantity, tensions.unit, tensions.lag) == ("tension", "N", None)
    assert tensions.high.tolist() == [0.5] * 4
    assert rod_inputs(load_robot("two_segments")).quantity == "pressure"
    pneumatic = load_robot("licher2025")
    parts = {"actuators": (*pneumatic.actuators, arm.actuators[0]), "sensors": ()}
    parts["sensors"] = (*pneumatic.sensors, arm.sensors[0])
    both = pneumatic.replace(**parts, tension_limits=arm.tension_limits)
    with pytest.raises(UserError, match="tension_lag: must be pressure_lag"):
        rod_inputs(both)
    mixed = rod_inputs(both.replace(tension_lag=pneumatic.pressure_lag))
    assert mixed.names == ("chamber_1", "chamber_2", "chamber_3", "t1")
    assert mixed.high.tolist() == [1e5, 1e5, 1e5, 0.5]
    assert mixed.lag == pneumatic.pressure_lag


def with_poses(robot, *poses):
    others = [sensor for sensor in robot.sensors if sensor.type != "pose"]
    return robot.replace(sensors=(*others, *({"type": "pose", "noise": 0.0} | p for p in poses)))


def test_poses_along_the_body_are_outputs():
    robot = load_robot("two_segments")
    turned = Connector(length=0.012, mass=0.03, rotation=(0.3, -0.2, 0.5))
    first, second = robot.segments
    robot = robot.replace(segments=(first.model_copy(update={"connector": turned}), second))
    robot = with_poses(
        robot,
        {"name": "before", "segment": "proximal"},
        {"name": "behind", "segment": "distal", "at": 0.0},
        {"name": "half", "segment": "distal", "at": 0.5},
        {"name": "end"},
        {"name": "beside", "offset": (0.01, 0.02, 0.0)},
    )
    model = RodPrediction(CosseratRod(robot, 4))
    random = np.random.default_rng(5)
    states = 0.3 * model.state.scale * random.normal(size=(2, model.state.size))
    names = ["before", "behind", "half", "end", "beside", TIP]
    seen = model.observe(names, states, None, model.nominal_parameters[None])
    nodes = np.array([model.rod.node_poses(state)[:, :3] for state in states])
    assert seen["before"] == pytest.approx(nodes[:, 4])
    assert seen["half"] == pytest.approx(nodes[:, 6])
    assert seen["end"] == pytest.approx(nodes[:, 8])
    assert seen["end"] == pytest.approx(seen[TIP])  # there is no cap
    rotation, place = seen["before"][:, :, :3], seen["before"][:, :, 3]
    assert seen["behind"][:, :, :3] == pytest.approx(rotation @ turned.rotation_matrix)
    assert seen["behind"][:, :, 3] == pytest.approx(place + rotation @ turned.offset)
    beside = seen["end"][:, :, 3] + seen["end"][:, :, :3] @ [0.01, 0.02, 0.0]
    assert seen["beside"][:, :, 3] == pytest.approx(beside)
    assert model.outputs["before"].kind == "pose"
