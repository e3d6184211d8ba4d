"""The package as others get it: metadata, dependencies, what a wheel holds, the make targets."""

import ast
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from kit.processes import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from softcr_models.files.config import config_directory
from softcr_runtime.settings import registry
from softcr_studies.frame.catalogue import study_files
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

PACKAGES = sorted(path.name for path in ROOT.glob("softcr*") if (path / "__init__.py").is_file())
INTERFACES = {"builtin_interfaces", "rcl_interfaces", "std_srvs"}
OF_ROS_ONLY = {"launch", "launch_ros"}  # imported by launch files, not on PyPI


ELSEWHERE = ROOT / "softcr_studies" / "speed" / "soromox_process.py"
"""A script that runs in the environment of SoRoMoX, wherever that is."""


def imported():
    """Top-level names that the package's modules import, standard library and own ones left out."""
    names = set()
    for package in PACKAGES:
        for path in sorted({*(ROOT / package).rglob("*.py")} - {ELSEWHERE}):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    names |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - set(PACKAGES)


def output_of(*command, **options):
    """What a command prints, which must succeed."""
    run = subprocess.run(command, capture_output=True, text=True, **options)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def is_ros(name):
    return name.startswith("rclpy") or name.endswith("_msgs") or name in INTERFACES | OF_ROS_ONLY


def package_xml():
    return ElementTree.parse(ROOT / "package.xml").getroot()


def requirements(name, extras=frozenset()):
    """Names of everything a distribution needs here, and what that needs, where it is installed."""
    found = set()
    waiting = [(name, frozenset(extras))]
    while waiting:
        name, extras = waiting.pop()
        try:
            texts = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # of an extra that `make setup` leaves out
            continue
        for text in texts:
            needed = Requirement(text)
            environments = [{"extra": extra} for extra in extras or {""}]
            if needed.marker and not any(needed.marker.evaluate(env) for env in environments):
                continue
            if needed.name not in found:
                found.add(needed.name)
                waiting.append((needed.name, frozenset(needed.extras)))
    return {canonicalize_name(name) for name in found}


def test_version_stands_the_same_in_every_description():
    version = importlib.metadata.version("softcr")
    assert package_xml().findtext("version") == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert config_directory() == ROOT / "config"  # a checkout uses its own


def test_what_is_imported_stands_in_package_xml_or_is_required_by_the_distribution():
    depends = {element.text for element in package_xml().iter("exec_depend")}
    assert {name for name in imported() if is_ros(name)} <= depends
    texts = importlib.metadata.requires("softcr")
    required = {canonicalize_name(Requirement(text).name) for text in texts}
    distributions = importlib.metadata.packages_distributions()
    # pinocchio comes into a folder of its own, llvmlite with numba whose types it carries,
    # and pydantic-core in the one version that fits pydantic, which no other may choose;
    # pysoem, viser, OpenCV and CUDA are extras that need not be installed
    others = {"pinocchio": "pin", "llvmlite": "numba", "pydantic_core": "pydantic"}
    others |= {"cv2": "opencv-python-headless", "cuda": "cuda-bindings"}
    others |= {"pysoem": "pysoem", "viser": "viser"}
    for name in sorted(imported()):
        if not is_ros(name):
            owners = {canonicalize_name(owner) for owner in distributions.get(name, [])}
            owners |= {others.get(name)}
            assert owners & required, f"{name} is imported, but not required in setup.py"


def test_package_xml_and_the_page_of_workspaces_name_every_requirement_of_python():
    keys = {"pillow": "python3-pil", "pin": "pinocchio", "pyyaml": "python3-yaml"}
    depends = {element.text for element in package_xml().iter("exec_depend")}
    notes = re.search(r"by pip.*?too old:\n(.*?)-->", (ROOT / "package.xml").read_text(), re.DOTALL)
    by_pip = {line.split()[0] for line in notes[1].splitlines() if line.strip()}
    required = {Requirement(text) for text in importlib.metadata.requires("softcr")}
    of_python = {each for each in required if not (each.marker or each.name.startswith("ros-"))}
    with_key = {each for each in of_python if f"{each.name}{each.specifier}" not in by_pip}
    assert {keys.get(each.name, f"python3-{each.name}") for each in with_key} <= depends
    assert len(by_pip) + len(with_key) == len(of_python)  # nothing is noted that is not required
    page = (ROOT / "docs" / "howto" / "workspace.md").read_text()
    line = re.search(r"^pip install (apsw .*)$", page, re.MULTILINE)[1]
    assert set(shlex.split(line)) == by_pip


def test_everything_that_is_installed_is_pinned():
    pinned = {
        canonicalize_name(Requirement(line).name)
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    assert requirements("softcr", {"bench", "cluster", "docs", "lint", "test", "view"}) <= pinned


def copied(place):
    """What a build needs of this checkout, with what a build of long ago has left beside it."""
    for name in [*PACKAGES, "config", "examples", "launch", "resource"]:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "package.xml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, place)
    left = place / "build" / "lib" / PACKAGES[0]
    left.mkdir(parents=True)
    (left / "left_by_an_earlier_build.py").write_text("")
    return place


def built(copy, kind):
    """The wheel, or the one of an editable install, that the build backend makes of a copy."""
    build = f"from setuptools.build_meta import build_{kind} as b; print(b('.'))"
    return copy / output_of(sys.executable, "-c", build, cwd=copy).splitlines()[-1]


@pytest.fixture(scope="module", params=["wheel", "editable"])
def prefix(request, tmp_path_factory):
    """The package in a prefix as pip installs it, from a copy so that nothing is left here."""
    copy = copied(tmp_path_factory.mktemp("copy") / "softcr")
    wheel = built(copy, request.param)
    place = tmp_path_factory.mktemp("prefix")
    # without --ignore-installed pip would remove the softcr that is being tested
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--ignore-installed", "--no-deps"]
    output_of(*pip, "--no-index", "--no-warn-script-location", "--prefix", str(place), str(wheel))
    return SimpleNamespace(kind=request.param, place=place, copy=copy)


def in_prefix(prefix):
    """The environment of a process far from the checkout that finds the prefix's modules."""
    site = next(prefix.place.glob("lib/python3*/site-packages"))
    modules = site if prefix.kind == "wheel" else prefix.copy
    return os.environ | {"PYTHONPATH": str(modules)}


def test_an_install_into_a_prefix_holds_everything_that_runs_need(prefix, tmp_path):
    share = prefix.place / "share" / "softcr"
    for name in ("config", "examples", "launch"):
        files = {path.relative_to(ROOT) for path in (ROOT / name).rglob("*") if path.is_file()}
        files = {path for path in files if "__pycache__" not in path.parts}
        assert files, name
        assert all((share / path).is_file() for path in files)
    assert (share / "package.xml").is_file()
    if prefix.kind == "wheel":
        (site,) = prefix.place.glob("lib/python3*/site-packages")
        assert (site / "softcr_models/cuda/rod.cu").is_file()
    assert (prefix.place / "share/ament_index/resource_index/packages/softcr").is_file()
    code = (
        "from softcr_models.files.config import config_directory as d; "
        "from softcr_models.robots.robot import load_robot as r; print(d(), r('licher2025').name)"
    )
    told = output_of(sys.executable, "-c", code, cwd=tmp_path, env=in_prefix(prefix))
    config = share / "config" if prefix.kind == "wheel" else prefix.copy / "config"
    assert told.split() == [str(config), "licher2025"]
    # the only command on the path is softcr
    assert [path.name for path in (prefix.place / "bin").iterdir()] == ["softcr"]


def test_ros2_run_finds_every_node_of_every_system(prefix, tmp_path):
    # as ros2 run does: what may be executed in lib/PACKAGE of the prefix that the index names
    nodes = prefix.place / "lib" / "softcr"
    found = {path.name: path.read_text() for path in nodes.iterdir() if os.access(path, os.X_OK)}
    systems = [
        simulation_system(SimulationOptions.of_options(options), Path("bag"))
        for options in ({}, {"robot": "dalenberg_robot1"}, {"estimator": "cc"})
    ]
    systems.append(hardware_system(HardwareOptions(), Path("bag")))
    parts = {part.name: part for system in systems for part in system.parts}
    assert len(parts) > 8
    for name, part in parts.items():
        module = " ".join(part.command[:2])  # of a block: what runs it, and the block
        assert f" -m {module} " in found[name]
    environment = in_prefix(prefix)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    assert "estimator" in output_of(nodes / "estimator", "--help", cwd=tmp_path, env=environment)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built by pip, with the setuptools that is here."""
    copy = copied(tmp_path_factory.mktemp("copy") / "softcr")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    output_of(*pip, "--wheel-dir", "out", ".", cwd=copy)
    (made,) = (copy / "out").glob("*.whl")
    return made


def test_a_wheel_holds_every_module_and_no_other(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}
    modules = {name for name in names if name.partition("/")[0] in PACKAGES}
    assert modules == {
        str(path.relative_to(ROOT)) for name in PACKAGES for path in (ROOT / name).rglob("*.py")
    }
    # beside them launch files and examples alone
    assert {Path(name).parent.name for name in names - modules} == {"examples", "launch"}


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A new virtual environment with the wheel."""
    return environment_with(wheel, tmp_path_factory.mktemp("environment"))


def environment_with(wheel, place):
    """A new virtual environment; dependencies come from the one of these tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install"]
    subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    # afterwards, so that pip does not take these packages for its own
    (site,) = place.glob("lib/python3*/site-packages")
    lines = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    for path in sorted(Path(lines[0]).glob("*.pth")):
        if not path.name.startswith("__editable__"):
            lines += path.read_text().splitlines()
    (site / "dependencies.pth").write_text("\n".join(dict.fromkeys(lines)) + "\n")
    return place


def run_in(environment, cwd, *command):
    """What a program of an environment prints, far from this checkout."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    program, *arguments = command
    return output_of(environment / "bin" / program, *arguments, cwd=cwd, env=outside, timeout=600)


IN_THE_WHEEL = """
import importlib, json, sys
from softcr_models.files.config import config_directory
from softcr_models.robots.robot import available_robots, load_robot
from softcr_models.surrogate.files import available_networks
from softcr_models.files.yaml_files import available
from softcr_runtime.settings import registry
from softcr_studies.frame.catalogue import study_files
robots = available_robots(None)
print(json.dumps({
    "modules": [importlib.import_module(name).__file__ for name in sys.argv[1:]],
    "config": str(config_directory()),
    "robots": [load_robot(name, None).name for name in robots],
    "controllers": available("controllers"),
    "surrogates": available_networks(),
    "registered": [registry.resolve("controller", n).__module__ for n in ("nempc", "rod_mpc")],
    "studies": [str(path) for path in study_files().values()],
}))
"""


def test_a_wheel_runs_far_from_the_checkout(environment, tmp_path):
    names = (*PACKAGES, "softcr_runtime.bags.reading", "softcr_runtime.replay.bag_replay")
    told = json.loads(run_in(environment, tmp_path, "python", "-c", IN_THE_WHEEL, *names))
    (site,) = environment.glob("lib/python3*/site-packages")

    def shipped(kind, ending):
        return sorted(path.stem for path in (ROOT / "config" / kind).glob(f"*.{ending}"))

    assert all(site in Path(path).parents for path in [*told["modules"], *told["studies"]])
    assert told["config"] == str(environment / "share" / "softcr" / "config")
    assert {"licher2025", "four_chambers", "dalenberg_robot1"} <= set(told["robots"])
    assert told["controllers"] == shipped("controllers", "yaml")
    assert told["surrogates"] == shipped("surrogates", "safetensors")
    resolved = [registry.resolve("controller", name) for name in ("nempc", "rod_mpc")]
    assert told["registered"] == [each.__module__ for each in resolved]
    assert len(told["studies"]) == len(study_files())
    assert "up" in run_in(environment, tmp_path, "softcr", "--help")
    assert "--robot" in run_in(environment, tmp_path, "softcr", "up", "simulation", "--help")
    listed = run_in(environment, tmp_path, "softcr", "study", "list")
    assert all(name in listed for name in study_files())
    (metadata,) = site.glob("softcr-*.dist-info/METADATA")
    told = importlib.metadata.PathDistribution(metadata.parent)
    assert told.metadata["License"] == "Apache-2.0"
    assert {"Author", "Classifier", "Keywords", "License-File"} <= set(told.metadata)
    assert told.metadata["Description-Content-Type"] == "text/markdown"
    assert told.metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()


USER_PROGRAM = ROOT / "test" / "user_program.py"


def test_a_user_s_program_runs_with_the_names_of_softcr():
    names = set(importlib.import_module("softcr").__all__)
    readme = (ROOT / "README.md").read_text()
    assert all(name in USER_PROGRAM.read_text() and f"`{name}`" in readme for name in names)
    found = os.environ | {"PYTHONPATH": str(ROOT)}
    said = output_of(sys.executable, USER_PROGRAM, cwd=ROOT, env=found)
    assert said.startswith(importlib.metadata.version("softcr"))


def test_type_checkers_resolve_the_names_of_an_editable_install(tmp_path):
    wheel = built(copied(tmp_path / "softcr"), "editable")
    environment = environment_with(wheel, tmp_path / "environment")
    shutil.copy(USER_PROGRAM, tmp_path)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable"]
    output_of(*mypy, environment / "bin" / "python", USER_PROGRAM.name, cwd=tmp_path)


@pytest.mark.slow
def test_a_wheel_and_what_it_needs_run_in_an_empty_environment(wheel, tmp_path):
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    run_in(place, tmp_path, "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"),
           str(wheel))  # fmt: skip
    listed = run_in(place, tmp_path, "softcr", "study", "list")
    assert all(name in listed for name in study_files())
    arguments = ("--duration", "3", "--mode", "lockstep", "--controller.population", "64")
    run_in(place, tmp_path, "softcr", "up", "simulation", *arguments)
    summary = json.loads((tmp_path / "results/sim/latest/summary.json").read_text())
    assert summary["tip_aed_mm"] < 5.0


def test_no_file_cites_what_is_not_in_the_repository():
    workshop = "|".join(("specs", "findings", "reviews", "seeds"))
    private = re.compile(
        rf"\b({workshop})/[a-z0-9_]+\.md|[.][.]/shared\b|\b[Ii]ssue #?[0-9]|\bseed 00[0-9]\b"
        r"|[(]00[0-4][,)]|\b00[0-4]'s\b|\b[0-9a-f]{40}\b"
        r"|(?<![\w./#-])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,12}(?![\w.])"
    )
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.yaml", "*.toml", "*.cfg", "*.xml", "Makefile"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    cited = [
        f"{name}:{number}: {line.strip()}"
        for name in listed.stdout.split()
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        if private.search(line)
    ]
    assert not cited


def make(*arguments):
    # as typed by a person, also where make itself runs these tests
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return output_of("make", "--dry-run", *arguments, cwd=ROOT, env=outside)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_sim_hands_on_whatever_it_is_given():
    names = set(SimulationOptions.model_fields) - {"roles"}
    given = {name.upper(): f"value-of-{name}" for name in names} | {"RESULTS": "a place"}
    given |= {"CONTROLLER.INPUT_TIMEOUT": "0.2"}
    words = [f"{name}={value}" for name, value in given.items()]
    command = make("-j2", "sim", *words, "ARGS=--controller.kp 3", "PYTHON=python9", "COLOUR=red")
    (line,) = [line for line in command.splitlines() if "up simulation" in line]
    options = shlex.split(line)[3:]
    expected = {f"--{name.lower().replace('_', '-')}={value}" for name, value in given.items()}
    assert set(options) == expected | {"--colour=red", "--controller.kp", "3"}
    assert options[-2:] == ["--controller.kp", "3"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_continuous_integration_runs_the_tests_and_builds_the_documentation():
    assert os.access(ROOT / ".ci/run", os.X_OK)
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert {"make test", "make docs"} <= set(lines)
    assert "pytest" in make("test")
    assert "sphinx -b html -W" in make("docs")
