"""What RViz, Foxglove and PlotJuggler are shown beside the topics that nodes exchange."""
