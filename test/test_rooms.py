"""The arrows between the rooms, computed from the imports: a room imports only rooms below it."""

from graphlib import TopologicalSorter

import pytest
from import_graph import edges, modules

LEVELS = (  # from the ground up; rooms of one level import none of each other
    {"softcr_models"},
    {"softcr_runtime"},
    {"softcr_control", "softcr_estimation", "softcr_simulation"},
    {"softcr_hardware"},
    {"softcr_studies"},
    {"softcr_papers"},
    {"softcr_tools"},
    {"softcr"},
)
OF_STUDIES = ("softcr_studies", "softcr_papers")  # imported by nothing else
ENTRY_TO_STUDIES = "softcr_tools.cli"  # the command that starts a study, when it is asked to
# what several papers stand on
SHARED = ("softcr_papers.constant_curvature.", "softcr_papers.driven_beam")
WITHOUT_ROS = ("softcr_models", "softcr_simulation")


def room(name):
    return name.partition(".")[0]


def imports_where(is_wrong):
    """What imports what, in words, of the imports of which (importer, imported) this is true."""
    found = [(name, other) for name, imported in edges().items() for other in sorted(imported)]
    return [f"{name} imports {other}" for name, other in found if is_wrong(name, other)]


def test_every_room_has_a_level():
    assert {room(name) for name in modules()} <= set().union(*LEVELS)


@pytest.mark.parametrize("importer", sorted({room(name) for name in modules()}))
def test_a_room_imports_only_rooms_below_it(importer):
    height = next(k for k, level in enumerate(LEVELS) if importer in level)
    above = {*map(room, modules())} - set().union(*LEVELS[:height], {importer})
    assert not imports_where(lambda name, other: room(name) == importer and room(other) in above)


def test_nothing_but_the_command_line_imports_a_study():
    def is_wrong(name, other):
        may = room(name) in OF_STUDIES or name == ENTRY_TO_STUDIES
        return room(other) in OF_STUDIES and not may

    assert not imports_where(is_wrong)


def test_nothing_outside_the_folder_of_a_paper_imports_it():
    def is_wrong(name, other):
        may = other.startswith(SHARED) and room(name) == "softcr_papers"
        of_a_paper = room(other) == "softcr_papers" and "." in other
        return of_a_paper and name.split(".")[:2] != other.split(".")[:2] and not may

    assert not imports_where(is_wrong)


def test_rooms_of_mathematics_import_no_ros():
    ros = ("rclpy", "launch", "builtin_interfaces", "rosidl_runtime_py")

    def is_wrong(name, other):
        return room(name) in WITHOUT_ROS and (room(other) in ros or room(other).endswith("_msgs"))

    assert not imports_where(is_wrong)


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter(edges()).prepare()  # its error names a circle
