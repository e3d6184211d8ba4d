"""Hysteresis by play operators (Prandtl-Ishlinskii): what was, stays, until it is pushed."""

from softcr_models.room_kernels import compiled


@compiled
def through_plays(pressure, plays, radii, weights):
    """The pressure that acts [Pa]; the plays (J,) are moved.

    A play follows at a distance of at most its radius. The acting pressure lies between the true
    one and the plays: with one play of weight 1 it is that play, with many of weights w_j it is a
    smooth loop, p - sum_j w_j (p - play_j).
    """
    acting = pressure
    for j in range(plays.shape[0]):
        plays[j] = min(max(plays[j], pressure - radii[j]), pressure + radii[j])
        acting -= weights[j] * (pressure - plays[j])
    return acting
