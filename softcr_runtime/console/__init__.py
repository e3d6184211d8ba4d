"""What persons read of a run: lines on the terminal, figures, the folder of results."""
