"""Data matrices in every storage format: validation, centring, sums over rows, and bounds on their rounding errors."""
