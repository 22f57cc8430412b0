"""Convex relaxations for discriminative clustering with sparse regularisers."""
