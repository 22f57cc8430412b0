"""Penalties on pairs of coordinates, one module each: absolute values, group norms, sign constraints."""
