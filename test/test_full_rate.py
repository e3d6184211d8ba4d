"""Recordings at their full rate, from files as their authors keep them."""

import numpy as np
import pytest
import yaml
from kit.refusals import one_line

from softcr_studies.recordings import full_rate
from softcr_studies.recordings.full_rate import RECORDINGS, main, write

TRUNK, ASU = RECORDINGS
PLACES = [f"{axis}{disc}" for disc in (1, 2, 3) for axis in "xyz"]
ANGLES = [f"phi{k + 1}" for k in range(6)]


@pytest.fixture
def authors(tmp_path):
    """A folder with short recordings of both; returns it with positions, angles and rows."""
    rng = np.random.default_rng(1)
    place = tmp_path / "copies" / "stack" / TRUNK.folder
    place.mkdir(parents=True)
    positions = 0.1 + 1e-4 * rng.standard_normal((60, 9)).cumsum(axis=0)
    angles = rng.uniform(-40.0, 40.0, (60, 6))
    header = ",".join(["ID", *PLACES, "more", *ANGLES])
    table = np.column_stack((np.arange(60), positions, np.ones(60), angles))
    for file in TRUNK.files.values():
        np.savetxt(place / file, table, delimiter=",", header=header, comments="")
    rows = rng.uniform(0.0, 1.0, (40, 38))
    rows[:, 0] = 7.0 + np.arange(40) / 60
    for file in ASU.files.values():
        path = tmp_path / "copies" / "asu" / ASU.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(path, rows, delimiter=",")
    return tmp_path / "copies", positions, angles, rows


def test_trials_keep_every_sample_in_the_layout_that_is_shipped(authors, tmp_path, monkeypatch):
    source, positions, angles, rows = authors
    monkeypatch.setattr(full_rate, "_FITTED", 50)
    paths = write(source, tmp_path / "out")
    names = ["asl_trunk.npz", "asl_trunk_map.yaml", "asu_motions.npz", "asu_motions_map.yaml"]
    assert [path.name for path in paths] == names
    trunk, asu = (np.load(paths[k]) for k in (0, 2))
    assert trunk["rate"] == 100.0
    np.testing.assert_array_equal(trunk["a_0g_y"], positions[:50].astype(np.float32))
    np.testing.assert_array_equal(trunk["a_300g_end_q"], angles[50:].astype(np.float32))
    # psi of channels 4 to 6 and 10 to 12; plates from the base plate, z down
    np.testing.assert_allclose(asu["mar7_1_p"][:, 3], 6894.76 * rows[:, 10], rtol=1e-5)
    height = np.median(rows[:, 19])
    np.testing.assert_allclose(asu["apr4_7_y"][:, 5], height - rows[:, 33], atol=1e-6)
    rates = [yaml.safe_load(paths[k].read_text())["time"] for k in (1, 3)]
    assert rates == [{"rate": 100}, {"rate": 60}]


def test_an_outlier_is_what_is_around_it_and_a_step_stays(authors, tmp_path):
    _, positions, angles, _ = authors
    positions[30:, 2] += 0.05
    lied = positions.copy()
    lied[20, 4] += 0.01
    file, header = tmp_path / "one.csv", ",".join([*PLACES, *ANGLES])
    np.savetxt(file, np.hstack((lied, angles)), delimiter=",", header=header, comments="")
    found = full_rate.trunk_trial("one", file)["one_y"]
    assert found[20, 4] == np.median(lied[16:25, 4])
    rest = np.ones(found.shape, bool)
    rest[20, 4] = False
    np.testing.assert_allclose(found[rest], positions[rest], atol=1e-12)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text("x1,y1\n1,2\n"), "columns z1, x2"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "cannot be read"),
        (lambda path: path.write_text(path.read_text().replace("1.0", "far")), "cannot be read"),
        (lambda path: path.unlink(), "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(authors, tmp_path, spoil, said):
    source = authors[0]
    spoil(source / "stack" / TRUNK.folder / TRUNK.files["c_0g"])
    with one_line(says=said):
        write(source, tmp_path / "out")


def test_a_folder_without_recordings_is_one_line(tmp_path, capsys):
    assert main([str(tmp_path), str(tmp_path / "out")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "has no recording of the authors" in said
    assert main([]) == main(["", "out"]) == 2


def test_a_time_that_jumps_is_one_line_and_allocates_nothing(authors, tmp_path):
    source, _, _, rows = authors
    rows[-1, 0] = 1e12
    np.savetxt(source / "asu" / ASU.folder / ASU.files["mar7_1"], rows, delimiter=",")
    with one_line(says="its time jumps"):
        write(source, tmp_path / "out")
