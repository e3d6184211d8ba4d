"""Networks that predict the motion of markers: what strain models are compared with.

NODE, LNN and CON of Valadas et al. (2024), Section IV-D. Each maps poses of N markers, their rates
and the torques to the second derivatives of the poses, and none of them knows of strains.
"""
