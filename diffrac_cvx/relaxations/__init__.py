"""CVXPY builders, one per relaxation."""

from diffrac_cvx.relaxations.correlation import correlation
from diffrac_cvx.relaxations.directions import v_space, v_space_normalized
from diffrac_cvx.relaxations.labels import constrained_alpha, penalized_nu
from diffrac_cvx.relaxations.lifted import lifted
from diffrac_cvx.relaxations.multiclass import multiclass
from diffrac_cvx.relaxations.relaxation import Relaxation

__all__ = [
    "Relaxation",
    "constrained_alpha",
    "correlation",
    "lifted",
    "multiclass",
    "penalized_nu",
    "v_space",
    "v_space_normalized",
]
