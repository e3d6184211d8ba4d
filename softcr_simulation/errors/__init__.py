"""What is wrong with a plant, as a controller does not know it: errors, their presets, drift."""
