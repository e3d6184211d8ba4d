"""A bag as named signals: the numbers of its topics, each with unit, frame and names."""

import numpy as np
import pytest
from kit.bags import (
    CHAMBERS,
    LOOP,
    PERIOD,
    TYPES,
    closed_loop,
    header,
    joint_state,
    pose_stamped,
    ticks,
    write_bag,
)

from softcr_estimation import ModelEstimatorSettings
from softcr_estimation.filters.joint_vector import Sensors
from softcr_models import UserError
from softcr_models.models import make_model
from softcr_models.robots.robot import available_robots, load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import ROLES, TOPICS, read_signals, unit_of


def test_a_signal_is_named_by_topic_and_field_and_knows_its_unit_and_frame(tmp_path):
    read = read_signals(Bag(write_bag(tmp_path / "bag", closed_loop(1.0))))
    count = round(1.0 / PERIOD)
    pressures = read.signal("pressure/state", "pressure")
    assert (pressures.unit, pressures.columns) == ("Pa", tuple(CHAMBERS))
    np.testing.assert_array_equal(pressures.values, np.tile([2.1e4, 5e4, 4e4], (count, 1)))
    np.testing.assert_array_equal(pressures.stamps, ticks(1.0))
    tip = read.signal("simulation/truth/tip/pose", "position")
    assert (tip.unit, tip.frame, tip.values.shape) == ("m", "base", (count, 3))
    assert read.signal("estimate/rod", "positions").values.shape == (count, 7, 3)
    compliance = read.signal("estimate/rod", "parameter.bending_compliance")
    assert compliance.unit == "rad/(N m m)"
    assert compliance.values[0] == pytest.approx(48 * 1.02)
    assert read.signal("estimate/rod", "std.bending_compliance").values[0] == 0.25
    assert read.true_parameter("bending_compliance") == 48.0
    assert read.said("estimator", "cycles") == LOOP["cycles"]
    # the same role is found on every robot
    for role, sources in ROLES.items():
        assert {topic for topic, _ in sources} <= set(TOPICS), role
    assert read.role("reference tip").topic == "reference/rod"
    assert read.role("commands").topic == "pressure/sent"
    assert len(read.tip) == len(read.role("true tip"))
    # what was not recorded is empty and can be computed with
    nothing = read.signal("estimate/state", "q")
    assert len(nothing) == len(nothing.minus(read.tip)) == len(nothing.between(0, 10)) == 0
    assert nothing.values[:, 2::3].size == 0
    assert len(read.tip.minus(nothing).norm()) == 0


def test_chambers_keep_one_order_and_a_second_message_of_a_stamp_does_not_count(tmp_path):
    first, last = ticks(1.0)[[0, -1]]
    turned = joint_state(last, [1.0, 2.0, 3.0])
    turned.name = CHAMBERS[::-1]
    again = joint_state(last, [7.0, 7.0, 7.0])
    messages = [(first, joint_state(first, [4.0, 5.0, 6.0])), (last, turned), (last, again)]
    bag = write_bag(tmp_path / "bag", [("pressure/state", *each) for each in messages])
    read = read_signals(Bag(bag), ["pressure/state"]).signal("pressure/state", "pressure")
    np.testing.assert_array_equal(read.values, [[4.0, 5.0, 6.0], [3.0, 2.0, 1.0]])


def test_node_poses_alone_are_a_shape(tmp_path):
    stamp = ticks(1.0)[0]
    points = np.linspace([0.0, 0.0, 0.0], [0.01, 0.0, 0.2], 5)
    path = TYPES["nav_msgs/msg/Path"](
        header=header(stamp), poses=[pose_stamped(stamp, point) for point in points]
    )
    read = read_signals(Bag(write_bag(tmp_path / "bag", [("estimate/shape", stamp, path)])))
    np.testing.assert_allclose(read.role("estimated shape").values, points[None])


def test_a_group_of_a_state_that_no_module_knows_is_read_as_the_message_tells_it(tmp_path):
    stamp = ticks(1.0)[0]
    field = TYPES["sensor_msgs/msg/PointField"]
    fields = [
        field(name="state.strain", offset=0, datatype=8, count=3),
        field(name="parameter.stiffness", offset=24, datatype=8, count=1),
        field(name="std.stiffness", offset=32, datatype=8, count=1),
    ]
    numbers = np.array([1.0, 2.0, 3.0, 40.0, 0.5])
    message = TYPES["sensor_msgs/msg/PointCloud2"](
        header=header(stamp), height=1, width=1, fields=fields, is_bigendian=False,
        point_step=40, row_step=40, data=numbers.view(np.uint8), is_dense=True,
    )  # fmt: skip
    read = read_signals(Bag(write_bag(tmp_path / "bag", [("estimate/state", stamp, message)])))
    assert read.signal("estimate/state", "state").values.tolist() == [[1.0, 2.0, 3.0]]
    assert read.signal("estimate/state", "parameter.stiffness").values.tolist() == [40.0]
    assert unit_of("parameter.stiffness") == ""


MODELS = {"rod": ("rod", "constant_curvature"), "arm": ("arm",), "strain": ("strain",)}
MODELS_OF_ROBOTS = [
    (name, model)
    for name in available_robots(None)
    for model in MODELS[load_robot(name, None).type]
]


@pytest.mark.parametrize(("robot", "model"), MODELS_OF_ROBOTS)
def test_everything_that_a_filter_finds_has_the_unit_of_its_model(robot, model):
    try:
        made = make_model(model, load_robot(robot, None))
    except UserError:  # the model is for other robots of this type
        return
    parameters = [*made.parameters, *Sensors.of(made.inputs, ModelEstimatorSettings()).offsets]
    for parameter in parameters:
        for name in (parameter.name, f"parameter.{parameter.name}", f"std.{parameter.name}"):
            assert unit_of(name) == parameter.unit, name
