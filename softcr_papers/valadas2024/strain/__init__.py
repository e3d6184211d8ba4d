"""Planar soft robots of constant-strain segments: kinematics, Lagrangian dynamics, a `Model`.

Valadas, Stölzle, Liu, Della Santina, Learning Low-Dimensional Strain Models of Soft Robots by
Looking at the Evolution of Their Shape (2024), Sections II and III. Importing compiles nothing:
kernels are compiled, or loaded, when the first of them is called.

The one place that knows what the strains of a segment mean is `compiled._point`, which tells where
a point of the backbone is, its Jacobian J and the rate of J; inertia, Coriolis forces, gravity,
the columns of a regression and the fit to a shape are made of these alone.
"""
