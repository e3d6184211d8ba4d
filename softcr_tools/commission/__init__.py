"""`softcr commission`: an operator and a bench, led from the first look to the written files."""
