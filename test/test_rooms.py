"""The arrows between the rooms, computed from the imports: a room imports only rooms below it."""

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


def circles(graph):
    """Groups of nodes that reach each other (Tarjan's strongly connected components)."""
    index, lowest, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in graph:
                continue
            if other not in index:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


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
    assert not circles(edges())


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "x"}}
    assert circles(graph) == [["d", "e"], ["a", "b", "c"]]
