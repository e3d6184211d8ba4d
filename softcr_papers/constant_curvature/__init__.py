"""Constant-curvature models: kinematics and dynamics of one section and of arms of several.

Della Santina, Bicchi and Rus (2020); Mehl et al.; Dalenberg. Importing compiles nothing: kernels
are compiled, or loaded, when the first of them is called.
"""
