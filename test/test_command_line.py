"""Commands from settings' own types: options, help, one line for every mistake."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from softcr_models.errors import UserError
from softcr_runtime.settings.command_line import command, new_app, run
from softcr_runtime.settings.node_settings import build_settings, declared_settings


class Gains(BaseModel):
    kp: float = Field(
        3.0, ge=0.0, le=10.0, description="stiffness", json_schema_extra={"unit": "Pa"}
    )
    loud: bool = Field(False, description="tells more")
    weights: tuple[float, ...] = Field((1.0, 2.0), description="of the errors")


class Chosen(BaseModel):
    """Settings among which `controller` brings settings of its own."""

    rate_hz: float = Field(
        70.0, gt=0.0, le=1e3, description="cycles", json_schema_extra={"unit": "Hz"}
    )
    steps: int = Field(4, ge=1, description="of it")
    mode: Literal["wall", "lockstep"] = Field("wall", description="pace")
    fine: bool = Field(True, description="bars")
    controller: str = Field("", description="who moves it")
    gains: Gains | None = Field(None, json_schema_extra={"hidden": True})

    @classmethod
    def more_options(cls, given):
        if given.get("controller") == "nobody":
            raise UserError("controller 'nobody': unknown")
        if given.get("controller") != "pid":
            return {}
        assert given["names"] == ["a"] or not given["names"]
        declared = declared_settings(Gains)
        return {"settings of pid": {f"controller.{name}": each for name, each in declared.items()}}

    @classmethod
    def of_options(cls, values):
        own = {name: value for name, value in values.items() if "." not in name}
        gains = {n.partition(".")[2]: v for n, v in values.items() if "." in n}
        chosen = build_settings(cls, own, "option")
        return chosen.model_copy(update={"gains": build_settings(Gains, gains, "option")})


@pytest.fixture
def told():
    """An app, and what its commands were called with."""
    calls = []
    app = new_app("softcr", "Everything.", version="1.2", version_flags=["--version"])
    group = new_app("study", "Many.")
    app.command(group)

    @group.command
    @command
    def several(
        names: list[str], /, chosen: Chosen, *, output: Path | None = None,
        port: Annotated[int, Field(ge=1, le=9)] = 3,
    ) -> int:  # fmt: skip
        """Run several.

        They are run.

        Args:
            names: of them.
            output: directory of it.
            port: that is free.
        """
        calls.append((names, chosen, output, port))
        return 0

    @app.command
    @command
    def plain(gains: Gains) -> int:
        """Fail."""
        calls.append(gains)
        return 1

    @app.command
    def broken() -> int:
        """Break."""
        raise KeyboardInterrupt

    @app.command
    def faulty() -> int:
        raise ZeroDivisionError

    def called(line):
        return run(app, line.split("|") if "|" in line else line.split())

    return called, calls


def test_words_become_settings_and_the_rest_parameters(told):
    called, calls = told
    assert called("study several a b --rate-hz 35 --mode lockstep --no-fine --output here") == 0
    names, chosen, output, port = calls[0]
    assert (names, output, port) == (["a", "b"], Path("here"), 3)
    assert (chosen.rate_hz, chosen.steps, chosen.mode, chosen.fine) == (35.0, 4, "lockstep", False)


def test_the_exit_code_is_the_command_s_and_130_after_ctrl_c(told):
    called, _ = told
    assert called("plain") == 1
    assert called("broken") == 130
    with pytest.raises(ZeroDivisionError):
        called("faulty")


def test_a_flag_may_be_told_its_value_and_a_list_is_one_word(told):
    called, calls = told
    for words in ("plain --loud", "plain --loud true", "plain --loud=false"):
        called(words)
    assert [gains.loud for gains in calls] == [True, True, False]
    for words in ("plain|--weights|-1, 2", "plain|--weights=[-1,2]"):
        assert called(words) == 1
    assert [gains.weights for gains in calls[3:]] == [(-1.0, 2.0)] * 2


def test_settings_of_what_is_named_are_options_only_beside_its_name(told, capsys):
    called, calls = told
    for _ in range(2):  # the app is not changed by its last call
        assert called("study several a --controller.kp 4 --controller pid") == 0
        assert called("study several a --controller.kp 4") == 2
    assert calls[0][1].gains.kp == 4.0
    assert "option --controller.kp: unknown" in capsys.readouterr().err
    assert called("study several a --controller pid --controller.kp 40") == 2
    assert "option kp = 40.0: must be a number from 0.0 to 10.0 Pa" in capsys.readouterr().err


def test_help_tells_description_range_unit_choices_and_default(told, capsys, monkeypatch):
    called, _ = told
    monkeypatch.setenv("COLUMNS", "150")
    assert called("study several --help --controller=pid") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "cycles; above 0.0 and at most 1000.0 Hz [default: 70.0]" in text
    assert "pace [choices: wall, lockstep] [default: wall]" in text
    assert "--fine --no-fine" in text
    assert "directory of it" in text
    assert "settings of pid" in text
    assert "stiffness; from 0.0 to 10.0 Pa" in text
    assert "gains" not in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plian", "command 'plian': unknown; did you mean plain?"),
        ("zzz", "command 'zzz': unknown; known are study, plain, broken, faulty"),
        ("study", "softcr study: must be followed by one of several"),
        ("study sevral a", "command 'sevral': unknown; did you mean several?"),
        ("plain --kpp 3", "option --kpp: unknown; did you mean --kp?"),
        ("plain --kpp=3", "option --kpp: unknown; did you mean --kp?"),
        ("plain --zzz=3", "option --zzz: unknown; known are --kp, --loud, --weights"),
        ("plain --kp 11", "option kp = 11.0: must be a number from 0.0 to 10.0 Pa"),
        ("plain --kp", "--kp"),
        ("plain --weights 1,x", "option weights = '1,x': must be a list, each a number"),
        ("plain 3", "unexpected: 3"),
        ("study several", "NAMES"),
        ("study several a --mode fast", "option mode = 'fast': must be one of wall, lockstep"),
        ("study several a --port 12", '"12" for --port. It must be less than or equal to 9'),
        ("study several a --controller nobody", "controller 'nobody': unknown"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(told, capsys, line, said):
    called, calls = told
    assert called(line) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("softcr: error: ")
    assert said in error
    assert not calls
