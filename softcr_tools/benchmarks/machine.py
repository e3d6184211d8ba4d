"""What a figure was measured on."""

import importlib.metadata
import os
import platform
from datetime import datetime
from pathlib import Path
from typing import Any

from softcr_models.devices import gpu_name
from softcr_models.rod.stepper import FLOAT32_LANES, FLOAT64_LANES
from softcr_tools.benchmarks.timing import cores_available

PACKAGES = ("softcr", "numpy", "scipy", "numba", "llvmlite", "numba-cuda", "pyelastica")


def describe_machine() -> dict[str, Any]:
    """Processor, cores, GPU, load now, versions: everything a figure depends on."""
    return {
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
        "processor": _processor(),
        "gpu": gpu_name() or None,
        "cores": os.cpu_count(),
        "cores_of_kernels": cores_available(),
        "load_average_at_start": [round(load, 2) for load in os.getloadavg()],
        "lanes": {"float64": FLOAT64_LANES, "float32": FLOAT32_LANES},
        "system": platform.platform(),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions
