"""Rotations and rigid motions: SO(3), SE(3), their exponentials, logarithms and tangent maps.

Twists and wrenches are LINEAR FIRST, x = [q; w] and [n; m], as everywhere in the house. `so3` and
`se3` are batched numpy; `kernel` has the same maps for single vectors, to be inlined into compiled
loops. The rod's own `rod.twists` keeps short series, which its lanes need and which are exact to
1e-10 for turns below 1 rad; elsewhere this folder is the one place.
"""
