"""What lies between the reading of a pressure and the wrench on a rod, as a part of its model."""
