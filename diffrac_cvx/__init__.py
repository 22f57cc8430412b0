"""Convex relaxations for discriminative clustering with sparse regularisers."""

from diffrac_cvx import baselines, datasets, metrics, rounding
from diffrac_cvx.certificates import LabelCertificate, certify_labels, certify_v, certify_y
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError, ResourceError
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.relaxations import (
    Relaxation,
    constrained_alpha,
    correlation,
    lifted,
    multiclass,
    penalized_nu,
    v_space,
    v_space_normalized,
)
from diffrac_cvx.result import Bracket, Progress, Result, Status
from diffrac_cvx.solvers import fista, low_rank, solve

__version__ = "0.1.0"

__all__ = [
    "Bracket",
    "DataError",
    "DegenerateDataWarning",
    "LabelCertificate",
    "ParameterError",
    "Penalty",
    "Progress",
    "Relaxation",
    "ResourceError",
    "Result",
    "Status",
    "baselines",
    "certify_labels",
    "certify_v",
    "certify_y",
    "constrained_alpha",
    "correlation",
    "datasets",
    "fista",
    "lifted",
    "low_rank",
    "metrics",
    "multiclass",
    "penalized_nu",
    "rounding",
    "solve",
    "v_space",
    "v_space_normalized",
]
