"""What a figure was measured on."""

import importlib.metadata
import os
import platform
from datetime import datetime
from typing import Any

from softcr_models.devices import gpu_name, processor_name

PACKAGES = ("softcr", "numpy", "scipy", "numba", "llvmlite", "cuda-bindings", "pyelastica")


def describe_machine() -> dict[str, Any]:
    """Processor, cores, GPU, load now, versions: everything a figure depends on."""
    import numba

    from softcr_models.rod.stepper import FLOAT32_LANES, FLOAT64_LANES

    return {
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
        "processor": processor_name(),
        "gpu": gpu_name() or None,
        "cores": os.cpu_count(),
        "cores_of_kernels": int(numba.config.NUMBA_NUM_THREADS),
        "load_average_at_start": [round(load, 2) for load in os.getloadavg()],
        "lanes": {"float64": FLOAT64_LANES, "float32": FLOAT32_LANES},
        "system": platform.platform(),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions
