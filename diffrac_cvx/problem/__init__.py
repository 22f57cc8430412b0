"""Problem (15): data, penalty, coordinates, objective and the result record."""
