"""What an estimator measures: outputs of its model, further sensors, filtered pressures."""
