"""Low-rank factors of V, V = UU'."""
