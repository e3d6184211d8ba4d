"""How much nodes log: words of the option, what ROS is told, what is shown."""

import pytest

from softcr_models.errors import UserError
from softcr_runtime.ros.log_levels import LogLevels
from softcr_tools.running.run_options import SimulationOptions


def test_one_level_for_all_and_others_for_some():
    levels = LogLevels.parsed("WARN, estimator:=debug,reference:=Fatal")
    assert levels == LogLevels("warn", {"estimator": "debug", "reference": "fatal"})
    assert levels.arguments("lab/robot1") == (
        "--log-level", "warn",
        "--log-level", "lab.robot1.estimator:=debug",
        "--log-level", "lab.robot1.reference:=fatal",
    )  # fmt: skip
    assert levels.arguments()[2:4] == ("--log-level", "estimator:=debug")
    assert levels.shows("estimator", "DEBUG")
    assert not levels.shows("recorder", "INFO")
    assert levels.shows("recorder", "ERROR")
    assert not levels.shows("reference", "ERROR")
    assert not levels.shows("recorder", "")
    assert LogLevels.parsed("") == LogLevels()


@pytest.mark.parametrize("word", ["loud", "estimator:=loud", ":=info", "estimator=info", "info;"])
def test_other_words_are_one_line(word):
    with pytest.raises(UserError) as caught:
        SimulationOptions.of_options({"log_level": word})
    assert str(caught.value) == (
        f"option log_level = {word!r}: must be one of debug, info, warn, error, fatal, or "
        "NODE:=LEVEL for a node"
    )


def test_a_node_that_is_not_there_is_named_with_the_nearest():
    levels = LogLevels.parsed("estimater:=debug")
    with pytest.raises(UserError, match=r"called estimater; did you mean estimator\?"):
        levels.check_names(["recorder", "estimator"])
    levels.check_names(["estimater"])
