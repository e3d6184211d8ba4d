"""Training and judging the DD-PINN, the surrogate of a robot's rod."""
