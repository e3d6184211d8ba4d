"""The executor of recorded runs: blocks do again what a bag says that they did."""
