"""The moving picture of docs/index.md: a real run, played back slowly to `softcr view`.

    python docs/make_moving_picture.py [BAG]

Without a bag it runs `softcr up simulation` first. It needs the extra `view`, a Chromium
(`apt install chromium`) and three minutes, and writes docs/_static/view.gif. Everything in the bag
is published again as it was recorded, at a twentieth of its speed, because a processor draws
the page's 3-D scene only a few times a second.
"""

import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "test")]
os.environ.setdefault("ROS_DOMAIN_ID", "87")
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")

import rclpy  # noqa: E402
from browser import Browser, find_browser  # noqa: E402

from softcr_runtime.bags.reading import Bag  # noqa: E402
from softcr_runtime.wire.topics import TOPICS, qos  # noqa: E402

OUTPUT = ROOT / "docs" / "_static" / "view.gif"
PORT = 8197
SLOWNESS = 20.0
DURATION, SKIPPED, SHOWN = 8.0, 1.0, 5.0  # of the run [s]
FRAMES_PER_SECOND = 10
WINDOW = 1500, 900
WIDTH = 760  # of the picture [px]
_CLOSE_NOTES = """
document.querySelectorAll('.mantine-Notification-closeButton').forEach(each => each.click())
"""  # viser says that a processor draws


def main() -> int:
    """Make the picture; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(sys.argv[1]) if len(sys.argv) > 1 else _run(Path(folder))
        frames = _frames(bag, Path(folder))
    palette = _palette(frames)
    frames = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames]
    frames[0].save(
        OUTPUT, save_all=True, append_images=frames[1:], optimize=True, loop=0,
        duration=1000 // FRAMES_PER_SECOND,
    )  # fmt: skip
    print(f"{OUTPUT}: {len(frames)} frames, {OUTPUT.stat().st_size / 1e6:.2f} MB")
    return 0


def _run(folder: Path) -> Path:
    subprocess.run(
        [
            *(sys.executable, "-m", "softcr_tools.cli", "up", "simulation", "--mode", "lockstep"),
            *(
                "--duration",
                str(DURATION),
                "--controller",
                "rod_mpc",
                "--results",
                str(folder / "run"),
            ),
        ],
        check=True,
        cwd=ROOT,
    )
    return folder / "run" / "latest"


def _frames(bag: Path, folder: Path) -> list[Image.Image]:
    """Pictures of the page while the bag is played."""
    view = subprocess.Popen(
        [sys.executable, "-m", "softcr_tools.cli", "view", "--no-browser", "--port", str(PORT)],
        cwd=ROOT,
    )
    executable = find_browser()
    if executable is None:
        raise SystemExit("no browser: apt install chromium")
    (folder / "profile").mkdir()
    browser = Browser(executable, folder / "profile", *WINDOW)
    begun = threading.Event()
    player = threading.Thread(target=_play, args=(bag, begun), daemon=True)
    try:
        time.sleep(15.0)  # the page's server is up
        browser.open(f"http://127.0.0.1:{PORT}")
        player.start()
        begun.wait()
        start = time.monotonic() + SKIPPED * SLOWNESS
        time.sleep(SKIPPED * SLOWNESS - 5.0)
        browser.run(_CLOSE_NOTES)
        frames = []
        for index in range(round(SHOWN * FRAMES_PER_SECOND)):
            due = start + index * SLOWNESS / FRAMES_PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            browser.screenshot(folder / "frame.png")
            frames.append(_small((folder / "frame.png").read_bytes()))
        return frames
    finally:
        browser.close()
        view.terminate()
        view.wait()


def _small(png: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    height = round(picture.height * WIDTH / picture.width)
    return picture.resize((WIDTH, height), Image.Resampling.LANCZOS)


def _palette(frames: list[Image.Image]) -> Image.Image:
    """One palette for all frames: half of it for strong colours, which few pixels have."""
    pixels = np.concatenate([np.asarray(each).reshape(-1, 3) for each in frames[::10]])
    strong = np.ptp(pixels.astype(int), axis=1) > 60
    colours: list[int] = []
    for group in (pixels[strong], pixels[~strong]):
        image = Image.fromarray(group[None]).quantize(32)
        colours += ((image.getpalette() or []) + [0] * 96)[:96]
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours + colours[-3:] * 192)
    return palette


def _play(bag_path: Path, begun: threading.Event) -> None:
    """Publish every message as it was recorded, slowly."""
    bag = Bag(bag_path)
    rclpy.init()
    node = rclpy.create_node("player")
    known = {f"/{name.lstrip('/')}": topic for name, topic in TOPICS.items()}
    publishers = {
        name: node.create_publisher(known[name].message_class(), name, qos(known[name].name))
        for name in bag.topics
        if name in known
    }
    time.sleep(3.0)  # discovery
    messages = sorted(
        (message.time, message.topic, message.payload) for message in bag.messages(*publishers)
    )
    first, start = messages[0][0], time.monotonic()
    # a run in lock-step goes faster than its own time
    slowness = SLOWNESS * DURATION / (1e-9 * (messages[-1][0] - first))
    begun.set()
    for received, topic, payload in messages:
        time.sleep(max(0.0, start + (received - first) * 1e-9 * slowness - time.monotonic()))
        publishers[topic].publish(bytes(payload))


if __name__ == "__main__":
    sys.exit(main())
