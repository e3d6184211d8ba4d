"""What commissioning a bench measures and how it is judged: mathematics, without devices."""
