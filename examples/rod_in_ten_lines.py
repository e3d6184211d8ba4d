"""The exact rod in ten lines: bend it, let it go, look where its tip swings to.

python examples/rod_in_ten_lines.py
"""

import numpy as np

from softcr_models import CosseratRod, load_robot

robot = load_robot("licher2025").replace(bending_compliance=45.0)  # [rad/(N m m)]
rod = CosseratRod(robot, intervals=10)
bent = rod.equilibrium(np.array([40e3, 10e3, 0.0]))  # gauge pressures [Pa]
states = rod.simulate(bent, np.zeros((70, 3)), 1 / 70)  # one second after all chambers are vented
tips = np.array([rod.tip_pose(state)[:3, 3] for state in states])  # (70, 3) [m]
print(f"the tip starts at {1e3 * rod.tip_pose(bent)[:3, 3]} mm and ends at {1e3 * tips[-1]} mm")
print(f"the sensor below the base reads {rod.base_wrench(bent, np.array([40e3, 10e3, 0.0]))}")
A, B = rod.linearize(states[-1], np.zeros(3))  # exact derivatives
print(f"the slowest mode decays with {-np.linalg.eigvals(A).real.max():.2f} 1/s")
