"""CVXPY builders, and the `Relaxation` that they return."""

from diffrac_cvx.relaxations.direction_space import lifted, v_space, v_space_normalized
from diffrac_cvx.relaxations.label_space import constrained_alpha, correlation, multiclass, penalized_nu
from diffrac_cvx.relaxations.relaxation import Relaxation, Size, Solution

__all__ = [
    "Relaxation",
    "Size",
    "Solution",
    "constrained_alpha",
    "correlation",
    "lifted",
    "multiclass",
    "penalized_nu",
    "v_space",
    "v_space_normalized",
]
