"""How fast rod, filter, controller and bus are here, beside their baselines."""
