"""The zero state: where sensors sit and how long sections are, measured on the straight arm.

Dalenberg, Sec. VI-B: S_s, S_a and pi are set from motion capture with the arm straight and its
tendons slack; as tendons creep, that is repeated now and then. The sections of the model end at the
sensors, which sit where the tendons are fixed.
"""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError

LARGEST_LEAN = 0.1
"""An arm counts as straight while each sensor is aside by at most this part of its height [-]."""


@dataclass(frozen=True, eq=False)
class ZeroState:
    """What is measured once.

    Attributes:
        places: (n_s,) material abscissae of the sensors, S_s and S_a [m].
        rest_lengths: (n_s,) of the sections between them, pi [m].
    """

    places: np.ndarray
    rest_lengths: np.ndarray


def zero_state(poses: np.ndarray, base: np.ndarray) -> ZeroState:
    """The zero state from sensor poses of a straight arm.

    Args:
        poses: (k, n_s, 4, 4) some frames of motion capture, averaged [m].
        base: (4, 4) pose of the arm's base in the same frame; its z axis points along the arm.

    Raises:
        UserError: sensors are not one behind the other, or the arm is not straight.
    """
    positions = np.mean(np.asarray(poses)[..., :3, 3], axis=0)
    local = (positions - base[:3, 3]) @ base[:3, :3]
    places = local[:, 2]
    rest_lengths = np.diff(places, prepend=0.0)
    if not (rest_lengths > 0.0).all():
        raise UserError(
            f"zero state: sensors {np.round(places, 4).tolist()} m along the base's z axis; "
            "each must be farther out than the one before"
        )
    aside = np.linalg.norm(local[:, :2], axis=1)
    if (aside > LARGEST_LEAN * places).any():
        worst = int(np.argmax(aside / places))
        raise UserError(
            f"zero state: sensor {worst + 1} is {aside[worst]:.3f} m aside of the base's z axis; "
            f"straight is at most {LARGEST_LEAN * places[worst]:.3f} m there"
        )
    return ZeroState(places, rest_lengths)
