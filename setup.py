"""The one place of the package's metadata, for pip and for colcon (ament_python)."""

import runpy
import tempfile
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build import build

PACKAGE = "softcr"

# Wheels of ROS 2 Jazzy: pip brings ROS to a machine without it; colcon leaves them alone.
ROS_WHEELS = ["ros-jazzy-rclpy", "ros-jazzy-common-interfaces", "ros-jazzy-rmw-fastrtps-cpp"]

# Papers, whose folders the core finds as it finds a stranger's package; all have names for
# controllers and the like, some commands.
PAPERS = ("dalenberg2024", "licher2025", "mehl2024", "pawlowski2019", "valadas2024")
NAMED = PAPERS
COMMANDED = ("licher2025", "pawlowski2019", "valadas2024")

# `ros2 run softcr NAME` and the module that it runs, with what follows it.
NODES = {
    name: module
    for package in ("softcr_tools/ros", "softcr_papers")
    for name, module in runpy.run_path(f"{package}/executables.py")["NODES"].items()
}


_NODE = """\
#!/bin/sh
# Runs a node of softcr with the Python of this prefix where it has one, or that of PATH.
python=$(dirname "$0")/../../bin/python3
[ -x "$python" ] || python=python3
exec "$python" -m {module} "$@"
"""


def node_executables() -> list[str]:
    """The executable of every node, written below build/: `ros2 run` looks in lib/softcr."""
    folder = Path("build/nodes")
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in NODES.items():
        path = folder / name
        path.write_text(_NODE.format(module=module))
        path.chmod(0o755)
    return [str(folder / name) for name in NODES]


class CleanBuild(build):
    """A build that does not begin with what an earlier one left in build/lib.

    A module that was renamed or removed since then would come into the wheel again. A folder that
    the command line names, as colcon does, is used as it is.
    """

    def finalize_options(self) -> None:
        """See setuptools."""
        if self.build_base == "build":
            self._folder = tempfile.TemporaryDirectory(prefix="softcr-build-")
            self.build_base = self._folder.name
        super().finalize_options()


class WithData(Distribution):
    """A distribution whose data files are installed with an editable install, too.

    `setuptools` asks a distribution for `has_data` there, and the base class has no such method.
    """

    def has_data(self) -> bool:
        """Whether `install_data` has work."""
        return self.has_data_files()


def shared_files(*roots: str) -> list[tuple[str, list[str]]]:
    """Every file below the roots, for the same place below share/softcr."""
    folders: dict[str, list[str]] = {}
    for root in roots:
        for path in sorted(Path(root).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                folders.setdefault(f"share/{PACKAGE}/{path.parent}", []).append(str(path))
    return sorted(folders.items())


setup(
    name=PACKAGE,
    version="0.1.0",
    description="Estimation and predictive control of soft continuum robots",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="softcr maintainers",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=[
        "soft robotics",
        "continuum robots",
        "Cosserat rod",
        "model predictive control",
        "ROS",
    ],
    classifiers=[
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    distclass=WithData,
    cmdclass={"build": CleanBuild},
    packages=find_packages(include=["softcr", "softcr_*"]),
    package_data={
        "": ["py.typed"],
        "softcr_control": ["predictive/*.cu"],
        "softcr_models": ["cuda/*.cu"],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"lib/{PACKAGE}", node_executables()),
        *shared_files("config", "examples", "launch"),
    ],
    install_requires=[
        "apsw",
        "cyclopts>=4.25",
        "lz4",
        "matplotlib",
        "mcap",
        "natnet",
        "numba>=0.60",
        "numpy",
        "packaging",
        "pillow",
        "pin",
        "pydantic>=2.5",
        "pynetft>=2.1",
        "pyyaml",
        "rich",
        "rosbags>=0.11",
        "safetensors",
        "scipy",
        "threadpoolctl",
        "typing_extensions",
        "zstandard",
        *ROS_WHEELS,
    ],
    extras_require={
        "bench": ["pyelastica"],
        "cluster": ["distributed"],  # studies on more machines than one
        # the rod on a GPU, beside a torch that is built with CUDA; nvdisasm is for its tests alone
        "cuda": ["cuda-bindings", "nvidia-cuda-nvdisasm", "nvidia-cuda-nvrtc", "torch"],
        "docs": ["furo", "myst-parser", "sphinx"],
        "ethercat": ["pysoem"],  # of SOEM: GPL-3.0 or commercial, so only on request
        "images": ["opencv-python-headless"],  # shapes from images of marks
        "lint": ["mypy", "ruff"],
        "policy": ["gymnasium", "stable-baselines3", "torch"],  # policies that are learned
        "surrogate": ["optuna", "torch"],
        "test": ["distributed", "hypothesis", "pandas", "psutil", "pytest", "pytest-xdist"],
        "view": ["viser", "websockets"],
    },
    entry_points={
        "console_scripts": ["softcr = softcr_tools.cli:main"],
        "softcr.commands": [
            f"{each} = softcr_papers.{each}.commands:COMMANDS" for each in COMMANDED
        ],
        "softcr.kernels": [
            "constant_curvature = softcr_papers.constant_curvature.warm_up:PARTS",
        ],
        "softcr.kinds": [
            "arm = softcr_papers.dalenberg2024.kind:ARM",
            "strain = softcr_papers.valadas2024.kind:STRAIN",
        ],
        "softcr.models": [
            "arm = softcr_papers.dalenberg2024.arm_model:ArmModel",
            "constant_curvature = softcr_papers.mehl2024.section_model:ConstantCurvatureSection",
            "strain = softcr_papers.valadas2024.strain.strain_model:LagrangianModel",
            "reference = softcr_papers.pawlowski2019.reference.reference_model:ReferenceModel",
        ],
        "softcr.nodes": ["papers = softcr_papers.executables:NODES"],
        "softcr.names": [f"{paper} = softcr_papers.{paper}.names:NAMES" for paper in NAMED],
        "softcr.reports": ["arc = softcr_papers.mehl2024.arc_report:ArcReport"],
        "softcr.studies": [f"{paper} = softcr_papers.{paper}.studies" for paper in PAPERS],
    },
    zip_safe=False,
)
