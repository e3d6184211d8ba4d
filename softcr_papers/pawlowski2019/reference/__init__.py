"""Reference solvers of the Cosserat rod, written after other equations than `softcr_models.rod`.

They follow B. Pawlowski, Modeling, Simulation, and Control of Soft Robots, MSc thesis, Colorado
State University, 2019, on the same robot files: statics by shooting on a Lie group and by Chebyshev
collocation. docs/papers/pawlowski2019.md says where the thesis is corrected.
"""
