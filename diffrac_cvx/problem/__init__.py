"""Problem (15): its data, penalty, coordinates and objective, and the record of its solution."""
