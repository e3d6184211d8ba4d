"""Wheels for a machine that has a GPU, PyTorch and no package registry: what it lacks, made small.

`python -m softcr_studies.speed.gpu_wheels FOLDER` downloads them for Python 3.12 on Linux x86-64.
Numpy, SciPy, numba, PyTorch, safetensors, threadpoolctl, pandas, rich, PyYAML and pytest are
expected there. The package itself
runs from its tree.
"""

import base64
import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

PYTHON = "3.12"
PLATFORMS = tuple(
    f"manylinux{version}_x86_64" for version in ("_2_28", "_2_27", "_2_17", "2014", "1")
)
PACKAGES = (
    # robot files and settings
    "annotated-types", "pydantic", "pydantic-core", "typing-extensions", "typing-inspection",
    # pinocchio, and what its libraries need; libgomp lies in pykdtree's wheel
    "cmeel", "cmeel-assimp", "cmeel-boost", "cmeel-console-bridge", "cmeel-octomap", "cmeel-qhull",
    "cmeel-tinyxml2", "cmeel-urdfdom", "cmeel-zlib", "coal", "eigenpy", "libcoal", "libpinocchio",
    "pin", "pykdtree",
    # bags, which the executor of virtual time can write
    "apsw", "backports-zstd", "lz4", "mcap", "rosbags", "ruamel-yaml", "zstandard",
)  # fmt: skip
MOST = 36 * 2**20
"""Bytes of all wheels: beside the package's own tree they shall stay below 64 MiB."""

_NOT_NEEDED = ("/include/", "/share/", "/bin/", ".data/scripts/", "/lib/cmake/", "/tests/")
_ENDINGS = (".a", ".pyi", ".pdb")


def download(folder: Path, constraints: Path) -> None:
    """Downloads all wheels into an empty folder, at the versions that `constraints` names.

    Raises:
        subprocess.CalledProcessError: pip found one of them not.
    """
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
         "--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON, *platforms,
         "-c", str(constraints), "-d", str(folder), *PACKAGES],
        check=True,
    )  # fmt: skip


def make_small(folder: Path) -> None:
    """Writes every wheel of a folder again, without what only compilers and shells use.

    Shared libraries stay if an extension module of one of the wheels leads to them.
    """
    wheels = {path: _files_of(path) for path in sorted(folder.glob("*.whl"))}
    needed = needed_libraries({name: data for files in wheels.values()
                               for name, data in files.items() if _is_library(name)})  # fmt: skip
    for path, files in wheels.items():
        kept = {name: data for name, data in files.items()
                if not _is_library(name) or name in needed}  # fmt: skip
        _write_wheel(path, kept)


def needed_libraries(binaries: Mapping[str, bytes]) -> set[str]:
    """Names of extension modules, and of the libraries that they name, and those in turn.

    A binary names a library by a text that ends with a zero byte; a library that has several file
    names is kept under the one that others ask for.

    Args:
        binaries: path in its wheel -> content.
    """
    waiting = [name for name in binaries if _is_extension(name)]
    found = set(waiting)
    while waiting:
        content = binaries[waiting.pop()]
        for name in binaries.keys() - found:
            if b"\0" + Path(name).name.encode() + b"\0" in content:
                found.add(name)
                waiting.append(name)
    return found


def _files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if not (name.endswith(("/", *_ENDINGS)) or any(each in name for each in _NOT_NEEDED))
        }


def _is_library(name: str) -> bool:
    return name.endswith(".so") or ".so." in Path(name).name


def _is_extension(name: str) -> bool:
    """Whether Python imports it; and libraries in a wheel's own folder, which are few."""
    return "cmeel.prefix/lib/lib" not in name


def _write_wheel(path: Path, files: Mapping[str, bytes]) -> None:
    """In the place of the wheel, with a RECORD of what is in it, packed by LZMA."""
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow((name, "", "") if name == record else (name, f"sha256={digest}", len(data)))
    draft = path.with_suffix(".draft")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in files.items():
            archive.writestr(name, lines.getvalue() if name == record else data)
    draft.replace(path)


def main(words: list[str]) -> int:
    """Downloads into the folder that is named, and says how large all of it is; returns 0."""
    (folder,) = map(Path, words)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.whl"):
        path.unlink()
    download(folder, Path(__file__).parents[2] / "constraints.txt")
    make_small(folder)
    sizes = [path.stat().st_size for path in folder.glob("*.whl")]
    print(f"{folder}: {len(sizes)} wheels, {sum(sizes) / 2**20:.1f} MiB", flush=True)
    if sum(sizes) > MOST:
        print(f"softcr: error: {folder}: wheels must stay below {MOST / 2**20:g} MiB")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
