"""The pictures of docs/tutorial.md: figures that its own commands draw, in a smaller size.

    python docs/make_tutorial_pictures.py [FOLDER]

Without a folder it first runs all commands of the tutorial in a temporary one, which takes about
five minutes, and compares their output with the page's. A folder is one in which they have run.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test")]
RUNS = ("run", "circle", "eight", "own_robot", "horizon")  # in the tutorial's order
PICTURES = {
    "run": "{run}/figures/tip_tracking.png",
    "report": "{run}/figures/shape.png",
    "eight": "{eight}/figures/tip_path.png",
    "identified": "results/identification/latest/motion.png",
    "replay": "replayed_with_ukf/comparison.png",
}
WIDTH = 760  # [px]


def main() -> None:
    """Write docs/_static/tutorial_*.png."""
    if len(sys.argv) > 1:
        return draw(Path(sys.argv[1]))
    from test_docs import walk

    with tempfile.TemporaryDirectory() as folder:
        walk(ROOT / "docs" / "tutorial.md", Path(folder), {"run", "slow"})
        draw(Path(folder))


def draw(folder: Path) -> None:
    """From the results of the tutorial's commands."""
    found = sorted(path for path in folder.glob("results/sim/2*") if not path.is_symlink())
    runs = dict(zip(RUNS, found, strict=True))
    for name, place in PICTURES.items():
        picture = Image.open(folder / place.format(**runs)).convert("RGB")
        height = round(picture.height * WIDTH / picture.width)
        small = picture.resize((WIDTH, height), Image.Resampling.LANCZOS)
        path = ROOT / "docs" / "_static" / f"tutorial_{name}.png"
        small.quantize(64).save(path, optimize=True)
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
