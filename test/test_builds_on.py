"""Robot files that build on another one."""

import pytest

from softcr_models import UserError, load_robot

CHAINED = load_robot("licher2025_chain")


def test_a_file_has_what_it_leaves_out_from_the_one_it_builds_on():
    base = load_robot("licher2025")
    own = {"name", "description", "pressure_chain", "estimated_payload"}
    assert CHAINED.replace(**{name: getattr(base, name) for name in own}) == base
    assert all(getattr(CHAINED, name) != getattr(base, name) for name in own)


def test_a_file_beside_it_is_meant_from_its_folder(tmp_path, monkeypatch):
    (tmp_path / "base.yaml").write_text("builds_on: licher2025\nname: base\ntip_mass: 0.05\n")
    (tmp_path / "top.yaml").write_text("builds_on: base.yaml\nname: top\ngravity: 0.0\n")
    monkeypatch.chdir("/")
    robot = load_robot(tmp_path / "top.yaml")
    assert (robot.name, robot.tip_mass, robot.gravity) == ("top", 0.05, 0.0)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("[1]", r"builds_on: \[1\] is not allowed: must be the name of a robot"),
        ("nobody", "robot 'nobody': unknown; known are"),
        ("own.yaml", "more than 4 files build on each other, or one on itself"),
        ("licher2025\ntip_masses: 1", "own.yaml: tip_masses: unknown field"),
    ],
)
def test_what_cannot_be_built_on_is_one_line(tmp_path, said, line):
    (tmp_path / "own.yaml").write_text(f"builds_on: {said}\n")
    with pytest.raises(UserError, match=line):
        load_robot(tmp_path / "own.yaml")
