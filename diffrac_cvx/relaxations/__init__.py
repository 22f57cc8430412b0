"""CVXPY builders, one module per relaxation, and the `Relaxation` that they return."""

from diffrac_cvx.relaxations.classes import multiclass
from diffrac_cvx.relaxations.direction_alone import v_space
from diffrac_cvx.relaxations.direction_normalized import v_space_normalized
from diffrac_cvx.relaxations.imbalance_fixed import constrained_alpha
from diffrac_cvx.relaxations.imbalance_penalized import penalized_nu
from diffrac_cvx.relaxations.labels_and_direction import lifted
from diffrac_cvx.relaxations.relaxation import Relaxation, Size, Solution, matrix_of, parameter, value_of
from diffrac_cvx.relaxations.trivial_correlation import correlation

__all__ = [
    "Relaxation",
    "Size",
    "Solution",
    "constrained_alpha",
    "correlation",
    "lifted",
    "matrix_of",
    "multiclass",
    "parameter",
    "penalized_nu",
    "v_space",
    "v_space_normalized",
    "value_of",
]
