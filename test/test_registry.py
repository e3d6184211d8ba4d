"""What has a name: shipped classes can all be used, and say what they are."""

import pytest
from kit.refusals import one_line

from softcr_models.errors import UserError
from softcr_models.plugins import absolute_place, load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import declared_settings
from softcr_tools.ros.executables import NODES

KINDS = ("controller", "estimator", "plant", "reference")
NAMED = [(kind, name) for kind in KINDS for name in registry.names(kind)]


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_every_known_name_is_a_class_that_somebody_runs(kind, name):
    part = registry.part(kind, name, {})
    block = load_class(part.runs, "block", BlockBase)
    assert part.is_block
    assert registry.entry(kind, name).summary
    if not issubclass(registry.resolve(kind, name), BlockBase):
        assert part.parameters[kind] == name
        assert declared_settings(block.settings_model({kind: name}))


def test_a_place_and_the_name_of_the_same_class_resolve_alike():
    place = registry.entry("controller", "rod_mpc").place
    by_place = registry.resolve("controller", place)
    assert by_place is registry.resolve("controller", "rod_mpc")
    part = registry.part("controller", place, {"seed": 3})
    assert part.parameters == {"controller": place, "seed": 3}
    assert part.name == "controller"  # only known names have nodes of their own
    names = {node for kind in KINDS for node in registry.nodes(kind)}
    assert names
    assert names <= set(NODES)  # which can be started by them


def test_a_block_of_one_s_own_is_run_as_it_is(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from softcr_runtime.blocks.block import BlockBase\n"
        "class Mine(BlockBase):\n    name = 'mine'\n    def tick(self, now, samples): return ()\n"
        "class Lazy(BlockBase):\n    name = 'lazy'\n"
    )
    part = registry.part("controller", f"{path}:Mine", {"seed": 3})
    assert (part.name, part.runs, part.parameters) == ("mine", f"{path}:Mine", {"seed": 3})
    with pytest.raises(UserError, match="lacks tick"):
        registry.resolve("controller", f"{path}:Lazy")


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_name_lists_the_known_ones(kind):
    known = ", ".join(registry.choices(kind))
    with one_line(says=f"{kind} 'xyz': unknown; known are {known}"):
        registry.resolve(kind, "xyz")


def test_a_file_is_read_once_and_names_that_are_none_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text("class Mine:\n    pass\nnumber = 3\n")
    assert load_class(f"{path}:Mine", "thing") is load_class(f"{path}:Mine", "thing")
    with pytest.raises(UserError, match=r"no class number there; it has Mine$"):
        load_class(f"{path}:number", "thing")
    with pytest.raises(UserError, match="is not a BlockBase"):
        load_class(f"{path}:Mine", "thing", BlockBase)
    with pytest.raises(UserError, match=r"must be package\.module:Class"):
        load_class(f"{path}:", "thing")
    monkeypatch.chdir(tmp_path)
    assert absolute_place("mine.py:Mine") == f"{path}:Mine"
    for place in ("nempc", "package.module:Class", "", f"{path}:Mine"):  # are no relative files
        assert absolute_place(place) == place
