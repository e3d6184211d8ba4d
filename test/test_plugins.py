"""Classes from outside: how they are named, what is said of wrong ones, what they may answer."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.processes import ROOT
from kit.refusals import one_line

from softcr_models.errors import UserError
from softcr_runtime.blocks.guard import MOST_KINDS, MOST_REFUSALS
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_tools.cli import main
from softcr_tools.running import up
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

SPRING = f"{ROOT}/examples/spring_plant.py:SpringPlant"
VELOCITY = f"{ROOT}/examples/constant_velocity.py:ConstantVelocity"
PID = f"{ROOT}/examples/joint_pid.py:JointPid"
PRESSURE = 30e3

CONTROLLER = """
import numpy as np
from pydantic import BaseModel, Field


class Settings(BaseModel):
    gain: float = Field(1.0, ge=0.0, le=10.0, description="of nothing")
    names: tuple[str, ...] = Field(("a",), description="of things")
    loud: bool = Field(False, description="whether")


class Mine:
    Settings = Settings
    needs_state = False

    def __init__(self, context, settings):
        self.size, self.tick = context.model.inputs.size, 0

    def reset(self):
        self.tick = 0

    def command(self, observation):
        self.tick += 1
        if {when}:
            {what}
        return np.full(self.size, 30e3)
"""


def mine(tmp_path, text):
    """The place of the class Mine of a file with this text."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    return f"{path}:Mine"


def controller(tmp_path, what="pass", when="False"):
    return mine(tmp_path, CONTROLLER.format(what=what, when=when))


def system_of(duration=1, mode="lockstep", **texts):
    given = {"mode": mode, "duration": str(duration), "plant": SPRING, "estimator": VELOCITY}
    return simulation_system(SimulationOptions.of_options(given | texts), Path("nowhere"))


def played(system, duration=None):
    """Topic -> [(stamp, value)], and the executor."""
    published = {}
    executor = VirtualExecutor(
        system, observe=lambda _, o: published.setdefault(o.topic, []).append((o.stamp, o.value))
    )
    executor.run(duration)
    return published, executor


def test_settings_of_a_class_are_options_by_role_and_name(tmp_path, monkeypatch, capsys):
    chosen = []
    monkeypatch.setattr(up, "run_simulation", lambda options, *_: chosen.append(options) or 0)
    named = ["--plant.stiffness=40", "--controller", controller(tmp_path), "--plant", SPRING]
    words = ["up", "simulation", "--seed", "3", "--controller.gain", "2", *named]
    assert main([*words, "--controller.loud", "true", "--controller.names", "x, y"]) == 0
    (options,) = chosen
    assert options.seed == 3
    given = {"gain": 2.0, "loud": True, "names": ["x", "y"]}
    assert options.roles == {"controller": given, "plant": {"stiffness": 40.0}}
    texts = {"controller.gain": "2", "controller.names": "x, y", "controller.loud": "true"}
    system = system_of(controller=controller(tmp_path), **texts, **{"plant.stiffness": "40"})
    assert given.items() <= system.part("controller").parameters.items()
    assert system.part("simulator").parameters["stiffness"] == 40.0
    assert main(["up", "simulation", *named, "--controller.gian", "3"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "option --controller.gian: unknown; did you mean" in error
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["up", "simulation", *named, "-h"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())  # lines may be broken
    for words in (
        r"--controller.gain \w+ of nothing; from 0.0 to 10.0 \[default: 1.0\]",
        r"--plant.tip-noise \w+ standard deviation of measured positions; from 0.0 to 0.05 m",
    ):
        assert re.search(words, text)


def test_the_estimators_block_offers_how_it_waits_and_computes_whoever_estimates():
    expected = {"patience": 1.5, "substeps": 3, "longest_prediction": 2.0}
    system = system_of(controller=PID, **{f"estimator.{n}": str(v) for n, v in expected.items()})
    assert expected.items() <= system.part("estimator").parameters.items()


RED = {"plant": SPRING, "plant.colour": "red"}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"controller": SPRING}, "lacks command; a controller has reset, command, or is a block"),
        ({"estimator": PID}, "lacks update; a estimator has"),
        ({"plant": SPRING, "plant.mass": "99"}, "option plant.mass = 99.0: must be a number above"),
        (RED, "option plant.colour = 'red': unknown; did you mean plant.lag? known are plant."),
        ({"plant": SPRING, "plant.errors": "tip_mass_factor=1.3"}, "plant.errors = 'tip_mass"),
        ({"estimator": VELOCITY}, "needs a state and gets the tip alone"),
    ],
)
def test_a_wrong_name_or_setting_is_one_line(options, line):
    with one_line() as caught:
        simulation_system(SimulationOptions.of_options(options), Path("nowhere"))
    assert line in str(caught.value).replace("an estimator", "a estimator")


METHODS = "    def reset(self): ...\n    def command(self, o): ...\n"
INNER = "class Mine:\n    class Settings(B):\n        "


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import numpy\n1 / 0\n", "ZeroDivisionError: division by zero (mine.py, line 2)"),
        ("import nobody_has_this\n", "needs the module nobody_has_this"),
        ("class Mine:\n    Settings = dict\n", "Settings: must be a pydantic model"),
        ("class Mine:\n    Settings = B # (B)\n", "Settings: is BaseModel itself, must be a class"),
        (f"{INNER}a: int\n", "Settings.a: needs a default"),
        (f"{INNER}seed: int = 1\n", "Settings.seed: is the block's own option; choose another"),
        (f"{INNER}a: int | None = None\n", "ROS parameter"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, text, line):
    text = f"from pydantic import BaseModel as B\n{text}" if "(B)" in text else text
    named = mine(tmp_path, text + (METHODS if "class Mine" in text else ""))
    with one_line(says=line):
        SimulationOptions.of_options({"controller": named})


def test_a_class_that_cannot_be_made_is_one_line(tmp_path):
    text = "class Mine:\n    needs_state = False\n    def __init__(self, context, settings):\n"
    text += "        context.nothing\n" + METHODS
    system = system_of(controller=mine(tmp_path, text))
    with pytest.raises(UserError, match=r"Mine cannot be made: AttributeError: .*mine.py, line 4"):
        VirtualExecutor(system)


BAD_ANSWERS = {
    "raise ValueError('no idea')": "Mine.tick: ValueError: no idea (mine.py, line ",
    "return np.full(self.size, np.nan)": "command [nan nan nan] must be 3 finite numbers [Pa]",
    "return np.zeros(2)": "command [0. 0.] must be 3 finite numbers [Pa]",
    "return None": "command None must be 3 finite numbers [Pa]",
    "return 'full'": "command 'full' must be 3 finite numbers [Pa]",
}


@pytest.mark.parametrize("mode", ["lockstep", "wall"])
@pytest.mark.parametrize("what", BAD_ANSWERS)
def test_few_bad_answers_are_held_and_the_run_goes_on(tmp_path, what, mode):
    system = system_of(1, mode, controller=controller(tmp_path, what, "20 <= self.tick < 23"))
    published, executor = played(system, 1.0)
    (complaint,) = executor.complaints
    assert BAD_ANSWERS[what] in complaint
    plans = [packet.commands for _, packet in published["pressure/plan"][:-1]]
    commands = np.concatenate(plans)
    assert len(commands) == len(plans)
    np.testing.assert_array_equal(commands[5:], np.full((len(commands) - 5, 3), PRESSURE))
    assert len(commands) >= 69  # one for each tick: nothing recorded is lost


def mistaken(tmp_path, what, when):
    """Complaints of a run, and the controller's refusals."""
    executor = VirtualExecutor(system_of(1, controller=controller(tmp_path, what, when)))
    guard = next(each.guard for each in executor._parts if each.part.name == "controller")
    executor.run()
    return executor.complaints, guard.refusals


def test_mistakes_that_differ_in_numbers_alone_are_told_once(tmp_path):
    what = "return np.array([-1.5e-3, np.nan if self.tick % 2 else 2.0]) * self.tick"
    complaints, refusals = mistaken(tmp_path, what, "20 <= self.tick < 23")
    ((line, count),) = refusals.items()
    assert complaints == [f"controller: {line}"]
    assert count == 3


def test_mistakes_without_end_are_told_up_to_an_end(tmp_path):
    what = "Mine.n = getattr(Mine, 'n', 0) + 1; raise ValueError('no ' + Mine.n * 'e')"
    complaints, refusals = mistaken(tmp_path, what, "True")
    assert len(complaints) == MOST_KINDS + 1
    assert complaints[-1] == "controller: Mine: mistakes of other kinds"
    assert sum(refusals.values()) > len(refusals) == MOST_KINDS + 1


@pytest.mark.parametrize("mode", ["lockstep", "wall"])
def test_after_five_bad_answers_in_a_row_the_chambers_are_vented(tmp_path, mode):
    what = "raise ValueError('no idea')"
    system = system_of(1, mode, controller=controller(tmp_path, what, "20 <= self.tick < 40"))
    published, executor = played(system, 1.0)
    assert len(executor.complaints) == 1
    plans = [packet.commands for _, packet in published["pressure/plan"]]
    vents = [number for number, plan in enumerate(plans) if len(plan) > 1]
    # venting resets the controller, which begins again from its first tick
    life = 19 + MOST_REFUSALS
    assert vents == [life - 1, 2 * life - 1, len(plans) - 1]
    assert (np.concatenate(plans[life : 2 * life - 1]) == PRESSURE).all()
    assert len(published["mocap/tip/pose"]) >= 70


@pytest.mark.parametrize("mode", ["lockstep", "wall"])
def test_bad_answers_without_end_are_one_packet_that_leads_to_no_pressure(tmp_path, mode):
    what = "Mine.broken = True; raise ValueError('no idea')"
    when = "self.tick >= 20 or getattr(Mine, 'broken', False)"
    system = system_of(1, mode, controller=controller(tmp_path, what, when))
    published, executor = played(system, 1.0)
    assert len(executor.complaints) == 1
    plans = published["pressure/plan"]
    # in lock-step, where the plant waits for every answer, what is left of the ramp is sent again
    assert len(plans) == (19 + MOST_REFUSALS if mode == "wall" else 70)
    stamp, packet = plans[18 + MOST_REFUSALS]
    # straight down within half a second, all chambers alike
    ramp = PRESSURE * (1.0 - np.arange(1, 36) / 35)
    np.testing.assert_allclose(packet.commands, np.tile(ramp[:, None], 3), atol=1e-9)
    sent = np.array([value for t, value in published["pressure/sent"] if t > stamp])
    assert (np.diff(sent, axis=0) <= 0.0).all()
    assert not sent[-1].any()
    assert len(np.unique(sent[:, 0])) >= 35


ESTIMATOR = """
import numpy as np
from types import SimpleNamespace


class Mine:
    gives_state = {gives}

    def __init__(self, context, settings):
        self.size = context.model.state.size

    def reset(self): ...

    def update(self, inputs, measurements, stamp):
        estimate = SimpleNamespace(tip_position=np.zeros(3), tip_position_covariance=np.eye(3),
                                   state=np.zeros(self.size), parameters={{}}, parameters_std={{}})
        {what}
        return estimate
"""


@pytest.mark.parametrize(
    ("gives", "what", "line"),
    [
        (False, "estimate.tip_position = np.array([np.nan, 0, 0])", "tip_position = [nan"),
        (False, "estimate.tip_position = np.zeros(2)", "must be 3 finite numbers [m]"),
        (False, "estimate.tip_position_covariance = np.eye(2)", "covariance has shape (2, 2)"),
        (False, "estimate = 3", "AttributeError"),
        (True, "estimate.state = np.zeros(5)", "state of shape (5,) must be 72 finite numbers"),
        (True, "estimate.state = None", "an estimator without a state says gives_state = False"),
    ],
)
def test_an_estimate_that_is_none_is_one_line_and_nothing_is_published(tmp_path, gives, what, line):
    named = mine(tmp_path, ESTIMATOR.format(gives=gives, what=what))
    published, executor = played(system_of(controller=PID, estimator=named))
    (complaint,) = executor.complaints
    assert line in complaint
    assert "estimate/tip/pose" not in published
    assert len(published["pressure/state"]) == 71  # the plant goes on, vented
    assert not np.any([value for _, value in published["pressure/sent"]])


@pytest.mark.parametrize(
    ("topic", "value", "line"),
    [
        ("pressure/state", "np.zeros(2)", "pressure/state has shape (2,), must be (3,)"),
        ("pressure/state", "np.full(3, np.inf)", "pressure/state = [inf, inf, inf] must be finite"),
        ("pressure/state", "None", "pressure/state is NoneType, must be an array of shape (3,)"),
        ("mocap/tip/pose", "np.full((4, 4), np.nan)", "mocap/tip/pose position = [nan, nan, nan]"),
        ("mocap/tip/pose", "np.zeros(3)", "mocap/tip/pose is a ndarray, must be a Pose"),
        ("mocap/elbow", "np.eye(4)", "output 'mocap/elbow' is not one of /clock, mocap/tip/pose"),
    ],
)
def test_what_a_plant_cannot_have_measured_is_one_line(tmp_path, topic, value, line):
    text = (
        "import importlib.util, numpy as np\n"
        f"spec = importlib.util.spec_from_file_location('spring', {SPRING.rpartition(':')[0]!r})\n"
        "spring = importlib.util.module_from_spec(spec); spec.loader.exec_module(spring)\n"
        "class Mine(spring.SpringPlant):\n"
        "    def measure(self, stamp):\n"
        f"        wrong = {{{topic!r}: {value}}} if stamp > 2e8 else {{}}\n"
        "        return super().measure(stamp) | wrong\n"
    )
    published, executor = played(system_of(controller=PID, plant=mine(tmp_path, text)))
    assert [each for each in executor.complaints if line in each], executor.complaints
    assert 10 <= len(published["pressure/state"]) < 20


LINE = """
import numpy as np
from pydantic import BaseModel, Field
from softcr_control.reference.references import Reference


class Settings(BaseModel):
    speed: float = Field(0.02, description="along x", json_schema_extra={{"unit": "m/s"}})


class Mine:
    Settings = Settings

    def __init__(self, context, settings):
        self.period, self.speed = context.period, settings.speed

    def window(self, time, rows):
        assert time >= 0.0
        times = time + self.period * np.arange(rows)
        tips = np.stack([self.speed * times, 0 * times, 0 * times + 0.12], axis=1)
        return {answer}
"""


def line_reference(tmp_path, answer="Reference(time, self.period, None, tips)"):
    return mine(tmp_path, LINE.format(answer=answer))


def test_a_reference_of_one_s_own_is_told_row_by_row_and_stands_still_at_its_end(tmp_path):
    named = line_reference(tmp_path)
    system = system_of(2, controller=PID, reference=named, **{"reference.speed": "0.05"})
    still = system.part("reference").with_parameters({"duration": 1.0})
    parts = tuple(still if each.name == "reference" else each for each in system.parts)
    published, executor = played(replace(system, parts=parts))
    assert not executor.complaints
    rows = published["reference/rod"]
    first = rows[0][0]
    for stamp, value in rows:
        seconds = 1e-9 * (stamp - first)
        wanted = seconds + np.arange(16) / 70 if seconds < 1.0 else np.full(16, 1.0)
        np.testing.assert_allclose(value.tip_positions[:, 0], 0.05 * wanted, atol=1e-12)
        assert np.isnan(value.states).all()


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("None", "window is NoneType, must be a Reference"),
        ("Reference(time, self.period, None, tips[:, :2])", "must be 16 x 3 finite numbers [m]"),
        ("Reference(time, self.period, np.zeros((rows, 4)), tips)", "must be (16, 72) or None"),
        ("Reference(time, self.period, None, tips, inputs=tips[:1])", "must have 16 rows or None"),
    ],
)
@pytest.mark.parametrize("mode", ["lockstep", "wall"])
def test_a_reference_that_is_none_is_one_line(tmp_path, answer, line, mode):
    named = line_reference(tmp_path, answer)
    published, executor = played(system_of(1, mode, controller=PID, reference=named), 1.0)
    assert [each for each in executor.complaints if line in each], executor.complaints
    assert "reference/rod" not in published


def test_inputs_that_a_reference_of_one_s_own_knows_are_told_far_ahead(tmp_path):
    named = line_reference(tmp_path, "Reference(time, self.period, None, tips, inputs=3e4 + tips)")
    published, executor = played(system_of(1, "wall", controller=PID, reference=named), 1.0)
    assert not executor.complaints
    packets = published["pressure/reference"]
    assert 8 <= len(packets) <= 10  # of 70 ticks
    first = published["reference/rod"][0][0]
    for stamp, packet in packets:
        since = 1e-9 * (np.array(packet.due) - first)
        assert packet.due[0] == stamp
        np.testing.assert_allclose(packet.commands[:, 0], 3e4 + 0.02 * since, rtol=1e-9)


def files_of_the_page(folder):
    """Role -> place of the class in each complete file of the how-tos about one's own classes."""
    found = {}
    for role in ("controller", "estimator", "plant", "reference"):
        page = (ROOT / "docs" / "howto" / f"{role}.md").read_text()
        code = re.search(rf"```python\n(# my_{role}\.py\n.*?)```", page, re.DOTALL)[1]
        (folder / f"my_{role}.py").write_text(code)
        found[role] = f"{folder / f'my_{role}.py'}:Mine"
    return found


def test_every_complete_file_of_the_page_runs_together(tmp_path):
    chosen = files_of_the_page(tmp_path)
    published, executor = played(system_of(**chosen, **{"controller.gain": "1e5"}))
    assert not executor.complaints
    assert len(published["pressure/plan"]) == 72
    commands = np.array([value for _, value in published["pressure/sent"]])
    assert np.ptp(commands[20:-1], axis=0).max() > 100.0
