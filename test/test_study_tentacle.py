"""Study `recordings/tentacle` on the shipped rests, and the robot that was found in them."""

import numpy as np
import pytest
from kit.studies import rows_of

from softcr_models import UserError, load_robot
from softcr_models.identification.prior_fit import prior_fit
from softcr_models.identification.unknowns import unknowns_of
from softcr_studies.recordings.tentacle import FAMILIES, METHODS, predictions, rests_of, shipped


def test_the_rod_foresees_what_polynomials_do_not():
    """The highest tensions from the lower ones."""
    robot, recording, groups = shipped()
    high = recording.inputs.max(axis=1) > 5.0
    found, lines = predictions(robot, recording.rows(~high), recording.inputs[high], groups)
    measured = np.stack([recording.outputs[each.name] for each in groups], axis=1)[high]
    off = {name: np.linalg.norm(found[name] - measured, axis=2).mean(axis=0) for name in METHODS}
    assert off["rod"][3] < 0.02
    assert off["rod"][:3].mean() < 6e-3
    assert off["rod"][3] < 0.5 * min(off[name][3] for name in METHODS if name != "rod")
    assert np.isfinite(lines).all()


@pytest.mark.later
def test_the_shipped_robot_is_what_the_shipped_rests_tell():
    robot, recording, groups = shipped()
    found = prior_fit(robot, recording, groups, unknowns_of(robot, FAMILIES, groups)).recorded.robot
    ours = load_robot("tentacle")
    assert ours.curvature_stiffness == pytest.approx(found.curvature_stiffness, abs=1e-3)
    for one, other in zip(ours.segments, found.segments, strict=True):
        assert one.bending_compliance == pytest.approx(other.bending_compliance, rel=0.01)


@pytest.mark.later
def test_a_file_is_predicted_from_all_that_is_shipped(tmp_path):
    _, recording, groups = shipped()
    markers = np.stack([recording.outputs[each.name] for each in groups], axis=1)
    path = tmp_path / "rests.npz"
    np.savez(path, tension=recording.inputs, markers=markers * [1.0, -1.0, -1.0])
    rows, directory = rows_of("recordings/tentacle", tmp_path / "run", data=str(path), folds=2)
    assert {key[0] for key in rows} == {"levels left out", "file"}
    fitted = [row.mean for key, row in rows.items() if key[:2] == ("file", "rod")]
    assert (directory / "rests.png").is_file()
    assert len(fitted) == 4
    assert max(fitted) < 12.0
    np.savez(path, tension=recording.inputs, markers=markers[:, :3])
    with pytest.raises(UserError, match=r"markers \(14, 3, 3\): allowed are"):
        rests_of(path, groups)
