"""Parameters that change while their node works: between two ticks, recorded, equal in a replay."""

import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from domains import fresh_domain
from kit.controller_blocks import at_rest, block_of, samples_at
from kit.processes import TIMEOUT, Peer
from pydantic import Field
from rclpy.parameter import Parameter

from softcr_estimation.estimator import EstimatorBlock
from softcr_hardware.nodes.force_torque import ForceTorqueSettings
from softcr_hardware.nodes.optitrack import OptitrackSettings
from softcr_hardware.nodes.valves import ValvesSettings
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_papers.dalenberg2024.apcc.block import ApccBlock
from softcr_papers.mehl2024.cc_block import CcEstimatorBlock
from softcr_runtime.blocks.block import BlockBase, Input, Output
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_records import CHANGE, RESET, TICK, TickRecord, records_from_message
from softcr_runtime.blocks.values import Pose
from softcr_runtime.replay.replayed import ReplayedBlock
from softcr_runtime.ros.block_node import block_node_class
from softcr_runtime.ros.parameters import changes_in_words, parameter_descriptor
from softcr_runtime.ros.process import SupervisedExecutor
from softcr_runtime.settings.node_settings import (
    LIVE,
    NodeSettings,
    build_settings,
    declared_settings,
    setting_values,
)
from softcr_runtime.settings.plugin_settings import prepared_plugin
from softcr_runtime.wire.codecs import codec
from softcr_runtime.wire.messages import from_stamp

ROBOT = load_robot("licher2025")
PERIOD_NS = round(1e9 / 70)


# --- blocks: what was changed before the first tick is as if it had been given -------------------


def resting(model):
    """State (nx,) without pressures, and the pose (3, 4) of its tip."""
    nominal = np.array([each.nominal for each in model.parameters])
    state = model.equilibrium(np.zeros(3), nominal)
    return state, model.observe(("tip",), state[None], np.zeros((1, 3)), nominal[None])["tip"][0]


def controller(**told):
    return block_of(**{"controller": "nempc", "population": 64, "horizon": 4, **told})


def commands_of(block) -> list[np.ndarray]:
    """Six plans (N, m) that answer a rod at rest that should be 20 mm aside."""
    (_, pose), answers = resting(block.model), []
    tips = np.tile(np.add(pose[:, 3], (0.02, 0.0, 0.0)), (14, 1))
    for stamp in range(PERIOD_NS, 7 * PERIOD_NS, PERIOD_NS):
        (output,) = block.tick(stamp, at_rest(block, stamp, tips=tips))
        answers.append(output.value.commands)
    return answers


def estimator(**told):
    given = {"intervals": 2, "use_base_wrench": True}
    return EstimatorBlock(ROBOT, EstimatorBlock.settings_of({**given, **told}))


def estimates_of(block) -> list[np.ndarray]:
    """States found from six samples of a tip that moves, turned a little."""
    _, pose = resting(block.model)
    wrench = np.array([0.02, 0.0, -1.5, 0.0, 1e-3, 0.0])
    states = []
    for number in range(1, 7):
        stamp = number * PERIOD_NS
        moved = np.vstack((pose, [0.0, 0.0, 0.0, 1.0]))
        moved[0, 3] += 1e-3 * number
        values = {"pressure/state": np.full(3, 1e3), "mocap/tip/pose": Pose.of(moved)}
        values["force_torque/wrench"] = wrench
        outputs = block.tick(stamp, samples_at(stamp, values))
        states += [each.value.state for each in outputs if "tip" not in each.topic]
    return states


def others_of(block):
    """Another value that is allowed of each live number."""
    others = {}
    for name, setting in declared_settings(type(block.settings)).items():
        if setting.live and name not in EXCHANGED:
            low = -math.inf if setting.low is None else setting.low
            high = math.inf if setting.high is None else setting.high
            tried = (*(each * setting.default for each in (1.5, 0.5, 0.9)), 0.01, 0.5)
            tried = [setting.default + 1] if setting.kind == "integer" else tried
            tried = [not setting.default] if setting.kind == "boolean" else tried
            value = next(each for each in tried if each != setting.default and low <= each <= high)
            others[name] = value
    return others


EXCHANGED = {"sends"}  # where controllers are exchanged


@pytest.mark.parametrize(
    ("made", "lived"),
    [(controller, commands_of), (block_of, commands_of), (estimator, estimates_of)],
)
def test_every_live_number_of_a_block_acts_as_if_it_had_been_given(made, lived):
    block = made()
    others = others_of(block)
    assert len(others) >= 12
    values = setting_values(block.settings)
    assert all(values[each] != value for each, value in others.items())
    unchanged = lived(made())
    wanted = lived(made(**others))
    block.prepared(build_settings(type(block.settings), values | others))()
    found = lived(block)
    assert np.array_equal(found, wanted)
    assert not np.array_equal(found, unchanged)
    assert setting_values(block.settings) == values | others


def test_a_live_change_keeps_what_was_learned():
    block, other = estimator(), estimator()
    estimates_of(block)
    estimates_of(other)
    before = setting_values(block.settings)
    block.prepared(build_settings(type(block.settings), before | {"position_noise": 1e-3}))()
    stamp = 7 * PERIOD_NS
    samples = samples_at(stamp, {"pressure/state": np.full(3, 1e3)})
    # without a pose the noise of poses plays no part: the estimate goes on from where it was
    states = [each.tick(stamp, samples)[0].value.state for each in (block, other)]
    assert np.array_equal(*states)


def test_weights_that_leave_nothing_to_minimise_are_refused_and_change_nothing():
    block = block_of()
    before = block.settings
    none = {name: 0.0 for name in others_of(block) if name.startswith("costs.")}
    with pytest.raises(UserError, match="at least one"):
        block.prepared(build_settings(type(before), setting_values(before) | none))
    assert block.settings is before


def test_a_plugin_without_the_method_and_a_live_setting_that_no_record_can_hold_say_so():
    class Own(NodeSettings):
        gain: float = Field(1.0, json_schema_extra=LIVE)

    class Texts(NodeSettings):
        word: str = Field("a", json_schema_extra=LIVE)

    with pytest.raises(UserError, match="no method 'prepared'"):
        prepared_plugin(object(), Own(), Own(gain=2.0))
    prepared_plugin(object(), Own(), Own())()
    with pytest.raises(TypeError, match="number or a boolean"):
        declared_settings(Texts)


def test_what_is_live_says_so_and_ages_of_safety_only_of_vented_valves():
    valves = declared_settings(ValvesSettings)
    vented = "in any state, while the valves are vented"
    assert changes_in_words(valves["safety.operator_vent"]) == vented
    assert changes_in_words(valves["command_rate_hz"]) == "while unconfigured"
    of_apcc = {"gain", "adaptation", "null_space_gain", "patience", "largest_error"}
    for settings, names in (
        (ForceTorqueSettings, {"rate_hz", "rest_tolerance"}),
        (OptitrackSettings, {"rate_hz", "latency_warning"}),
        (CcEstimatorBlock.Settings, {"longest_prediction"}),
        (ApccBlock.Settings, of_apcc),
    ):
        declared = declared_settings(settings)
        assert {name for name, each in declared.items() if each.live} == names
        assert {changes_in_words(declared[name]) for name in names} == {"in any state"}


# --- a node -------------------------------------------------------------------------------------


class GainSettings(NodeSettings):
    """Of the block below."""

    gain: float = Field(1.0, ge=0.0, le=10.0, description="of pressures", json_schema_extra=LIVE)
    mirrored: bool = Field(False, description="whether", json_schema_extra=LIVE)
    offset: float = Field(0.0, description="of pressures")


class Gain(BlockBase):
    """Commands the sum of all pressures so far, each times the gain of its tick."""

    name = "gain"
    Settings = GainSettings
    inputs = (Input("pressure/state", "lead"),)
    outputs = ("pressure/command",)

    def reset(self):
        self.total = np.zeros(3)

    def tick(self, now, samples):
        sign = -1.0 if self.settings.mirrored else 1.0
        self.total = self.total + sign * self.settings.gain * samples["pressure/state"].value
        return [Output("pressure/command", now, self.total)]


class Bench(Peer):
    """One node at work, and what it publishes."""

    def __init__(self):
        domain = int(fresh_domain())
        super().__init__("other", lockstep=True, domain_id=domain)
        self.inside = rclpy.Context()
        rclpy.init(context=self.inside, domain_id=domain)
        overrides = [Parameter("mode", value="lockstep")]
        self.tested = block_node_class(Gain)(context=self.inside, parameter_overrides=overrides)
        self.of_tested = SupervisedExecutor(self.tested)
        self.spinning = threading.Thread(target=self.of_tested.spin)
        self.spinning.start()
        self.commands: dict[int, np.ndarray] = {}
        self.records: list[TickRecord] = []
        self._codec = codec("pressure/state", Gain(ROBOT, GainSettings()).expected)
        self._pressures = self.publisher("pressure/state")
        self.hear("pressure/command", self._on_command)
        self.hear("ticks", lambda m: self.records.extend(records_from_message(m)[1]))

    def _on_command(self, message) -> None:
        self.commands[from_stamp(message, "")] = np.array(message.effort)

    def do(self, action):
        """In the thread of the node's executor, as a service is answered."""
        done = self.of_tested.create_task(action)
        self.until(done.done)
        return done.result()

    def set(self, name, value):
        return self.do(lambda: self.tested.set_parameters([Parameter(name, value=value)])[0])

    def send(self, stamp: int, pressures) -> None:
        self._pressures.publish(self._codec.encode(np.asarray(pressures, float), stamp))

    def close(self) -> None:
        self.of_tested.create_task(self.tested.finish)
        self.of_tested.stop()
        self.spinning.join(TIMEOUT)
        self.tested.destroy_node()
        self.inside.try_shutdown()
        super().close()


@pytest.fixture(scope="module")
def bench():
    bench = Bench()
    yield bench
    bench.close()


@pytest.mark.parametrize("settings", [ValvesSettings, OptitrackSettings, ForceTorqueSettings])
def test_what_names_code_files_and_devices_is_fixed_at_the_start(settings):
    declared = declared_settings(settings)
    fixed = {name for name, each in declared.items() if each.fixed}
    texts = {name for name, each in declared.items() if each.kind == "string" and not each.choices}
    flags = {"safety.require_operator", "safety.require_mocap", "without_valves"}
    assert fixed == texts | flags & set(declared)
    assert all(parameter_descriptor(declared[name]).read_only for name in fixed)
    assert {changes_in_words(declared[name]) for name in fixed} == {"never"}


def test_what_is_fixed_is_refused_in_every_state_and_unchanged_values_of_the_rest_accepted(bench):
    node = bench.tested
    for change in (None, node.trigger_configure, node.trigger_activate):
        if change:
            bench.do(change)
        for name, setting in declared_settings(node.Settings).items():
            result = bench.set(name, node.get_parameter(name).value)
            assert result.successful != setting.fixed, (node._state, name, result.reason)
    refused = bench.set("offset", 1.0)
    assert refused.reason == (
        "parameter offset cannot change while the node is active: first softcr lifecycle set gain "
        "deactivate, then softcr lifecycle set gain cleanup"
    )
    assert not bench.set("gain", 11.0).successful
    assert node.settings.gain == 1.0


def test_live_changes_are_recorded_and_a_replay_has_the_same_bits(bench):
    node = bench.tested
    both = [Parameter("gain", value=2.0), Parameter("mirrored", value=False)]
    pressures = {stamp: 1e3 * np.arange(1.0, 4.0) / stamp for stamp in range(1, 41)}
    for stamp, value in pressures.items():
        if stamp == 11:
            assert bench.set("gain", 0.1 + 0.2).successful
        if stamp == 21:
            assert bench.set("mirrored", True).successful
        if stamp == 31:
            assert bench.do(lambda: node.set_parameters_atomically(both)).successful
        bench.send(stamp, value)
        bench.until(lambda stamp=stamp: stamp in bench.commands)
    # each from the next tick on
    gains = [1.0] * 10 + [0.1 + 0.2] * 10 + [-(0.1 + 0.2)] * 10 + [2.0] * 10
    total = np.zeros(3)
    for gain, (stamp, value) in zip(gains, pressures.items(), strict=True):
        total = total + gain * value
        assert np.array_equal(bench.commands[stamp], total), stamp
    before = bench.do(lambda: node.diagnostic_values()["before_changes"])
    assert before == {"gain": 1.0}
    bench.do(node.trigger_deactivate)
    bench.until(lambda: sum(each.event == TICK for each in bench.records) == 40)
    changes = [dict(each.changed) for each in bench.records if each.event == CHANGE]
    assert changes == [{"gain": 0.1 + 0.2}, {"mirrored": 1.0}, {"gain": 2.0, "mirrored": 0.0}]
    assert not any(each.changed for each in bench.records if each.event != CHANGE)

    recorded = SimpleNamespace(at=lambda topic, t: Sample(topic, t, pressures[t], 0.0))
    begun = build_settings(GainSettings, setting_values(node.settings) | before)
    again = ReplayedBlock("gain", Gain(ROBOT, begun), bench.records, recorded)
    replayed = {}
    while again.stamp is not None:
        replayed.update({each.output.stamp: each.output.value for each in again.advance()})
    assert again.changes == 3
    assert all(np.array_equal(replayed[stamp], bench.commands[stamp]) for stamp in pressures)
    # who asks for another gain gets it for the whole replay
    fixed = GainSettings(gain=5.0)
    other = ReplayedBlock("gain", Gain(ROBOT, fixed), bench.records, recorded, fixed=("gain",))
    while other.stamp is not None:
        other.advance()
    assert other.block.settings.gain == 5.0
    # changed while inactive: before the next beginning, which is in the record, too
    bench.records.clear()
    assert bench.set("gain", 3.0).successful
    bench.do(node.trigger_activate)
    bench.send(41, np.ones(3))
    bench.until(lambda: 41 in bench.commands)
    bench.do(node.trigger_deactivate)
    bench.until(lambda: any(each.event == TICK for each in bench.records))
    assert np.array_equal(bench.commands[41], np.full(3, 3.0))
    assert [each.event for each in bench.records][:3] == [CHANGE, RESET, TICK]
    assert bench.set("offset", 1.0).reason.endswith("first softcr lifecycle set gain cleanup")
    bench.do(node.trigger_cleanup)
    assert bench.set("offset", 1.0).successful
