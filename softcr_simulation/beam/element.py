"""One element of a geometrically exact beam: constant strain between two nodes.

The nodes' poses are H_a and H_b; psi = log(H_a^-1 H_b) is six numbers, and strain is psi over the
element's length (Sonneville, Cardona and Bruels, Computer Methods in Applied Mechanics and
Engineering 268 (2014) 451). With body twists V, linear first,

    psi' = T(-psi)^-1 V_b - T(psi)^-1 V_a,    T(x)^-1 = I - ad(x) / 2 + ad(x)^2 / 12 - ...

The series of T^-1 is that of SO(3) over dual numbers, so its blocks are A and A's derivative Q:
T(x)^-1 = [[A, Q], [0, A]].
"""

import math

from softcr_models.rod.inner import inner


@inner
def relative_log(psi, pose_a, pose_b):
    """psi (6,) = log(H_a^-1 H_b), linear first, of poses (3, 4) closer than half a turn."""
    r00 = r11 = r22 = vx = vy = vz = 0.0
    dx = dy = dz = 0.0
    for k in range(3):
        r00 += pose_a[k, 0] * pose_b[k, 0]
        r11 += pose_a[k, 1] * pose_b[k, 1]
        r22 += pose_a[k, 2] * pose_b[k, 2]
        vx += pose_a[k, 2] * pose_b[k, 1] - pose_a[k, 1] * pose_b[k, 2]
        vy += pose_a[k, 0] * pose_b[k, 2] - pose_a[k, 2] * pose_b[k, 0]
        vz += pose_a[k, 1] * pose_b[k, 0] - pose_a[k, 0] * pose_b[k, 1]
        apart = pose_b[k, 3] - pose_a[k, 3]
        dx += pose_a[k, 0] * apart
        dy += pose_a[k, 1] * apart
        dz += pose_a[k, 2] * apart
    sine = 0.5 * math.sqrt(vx * vx + vy * vy + vz * vz)
    cosine = 0.5 * (r00 + r11 + r22 - 1.0)
    scale = 0.5
    if sine > 1e-9:
        scale = 0.5 * math.atan2(sine, cosine) / sine
    x, y, z = scale * vx, scale * vy, scale * vz
    # rho = (I - theta^ / 2 + c theta^^2) d
    c = _second(x * x + y * y + z * z)
    cx, cy, cz = y * dz - z * dy, z * dx - x * dz, x * dy - y * dx
    psi[0] = dx - 0.5 * cx + c * (y * cz - z * cy)
    psi[1] = dy - 0.5 * cy + c * (z * cx - x * cz)
    psi[2] = dz - 0.5 * cz + c * (x * cy - y * cx)
    psi[3], psi[4], psi[5] = x, y, z


@inner
def _second(square):
    """Coefficient of ad^2 in the series, (1 - (a / 2) cot(a / 2)) / a^2 of a^2 below 1."""
    return 1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30240.0 + square / 1209600.0))


@inner
def _second_slope(square):
    """Its derivative by a^2."""
    return 1.0 / 720.0 + square * (1.0 / 15120.0 + square / 403200.0)


@inner
def strain_maps(map_a, map_b, psi):
    """(6, 6) each: psi' = map_a V_a + map_b V_b."""
    x, y, z = psi[3], psi[4], psi[5]
    u, v, w = psi[0], psi[1], psi[2]
    square = x * x + y * y + z * z
    along = u * x + v * y + w * z
    c, slope = _second(square), 2.0 * along * _second_slope(square)
    turn = (x, y, z)
    move = (u, v, w)
    for i in range(3):
        for k in range(3):
            # theta^^2 = theta theta^T - theta^2, and its derivative along rho
            even = c * turn[i] * turn[k]
            change = c * (turn[i] * move[k] + move[i] * turn[k]) + slope * turn[i] * turn[k]
            if i == k:
                even += 1.0 - c * square
                change -= 2.0 * c * along + slope * square
            map_b[i, k] = even
            map_b[i, k + 3] = change
    odd = ((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0))
    shift = ((0.0, -w, v), (w, 0.0, -u), (-v, u, 0.0))
    for i in range(3):
        for k in range(3):
            even, change = map_b[i, k], map_b[i, k + 3]
            map_a[i, k] = -even + 0.5 * odd[i][k]
            map_a[i, k + 3] = -change + 0.5 * shift[i][k]
            map_b[i, k] = even + 0.5 * odd[i][k]
            map_b[i, k + 3] = change + 0.5 * shift[i][k]
            map_a[i + 3, k + 3] = map_a[i, k]
            map_b[i + 3, k + 3] = map_b[i, k]
            map_a[i + 3, k] = 0.0
            map_b[i + 3, k] = 0.0


@inner
def moved(out, pose, step):
    """out (3, 4) = pose exp(step), of a twist step (6,), linear first."""
    x, y, z = step[3], step[4], step[5]
    square = x * x + y * y + z * z
    if square < 1e-6:
        a = 1.0 - square / 6.0 * (1.0 - square / 20.0)
        b = 0.5 - square / 24.0 * (1.0 - square / 30.0)
        c = 1.0 / 6.0 - square / 120.0 * (1.0 - square / 42.0)
    else:
        angle = math.sqrt(square)
        a = math.sin(angle) / angle
        b = (1.0 - math.cos(angle)) / square
        c = (1.0 - a) / square
    # exp(theta^) = I + a theta^ + b theta^^2, V = I + b theta^ + c theta^^2
    turn = (
        (1.0 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y),
        (b * x * y + a * z, 1.0 - b * (x * x + z * z), b * y * z - a * x),
        (b * x * z - a * y, b * y * z + a * x, 1.0 - b * (x * x + y * y)),
    )
    u, v, w = step[0], step[1], step[2]
    cx, cy, cz = y * w - z * v, z * u - x * w, x * v - y * u
    d = (
        u + b * cx + c * (y * cz - z * cy),
        v + b * cy + c * (z * cx - x * cz),
        w + b * cz + c * (x * cy - y * cx),
    )
    for i in range(3):
        p, q, r = pose[i, 0], pose[i, 1], pose[i, 2]
        out[i, 3] = pose[i, 3] + p * d[0] + q * d[1] + r * d[2]
        for k in range(3):
            out[i, k] = p * turn[0][k] + q * turn[1][k] + r * turn[2][k]
