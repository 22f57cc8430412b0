"""From a factor F of the labels' matrix, Y = F F', to labels.

Y does not say which cluster is +1: labels come back with the first point at +1.  An eigenvector is taken with its first
nonzero entry positive, and its zeros (up to rounding) count as +1.  Where there is nothing to split, all labels are +1.
Nothing n x n is formed: the cost is O(n r^2) on top of a sort where 2-means is used.
"""

from diffrac_cvx.rounding.alternation import refine
from diffrac_cvx.rounding.many_labels import LabelMatrix, procrustes
from diffrac_cvx.rounding.two_clusters import (
    ROUNDINGS,
    goemans_williamson,
    kmeans_centered,
    sign_centered,
    sign_leading,
    sign_second,
    two_means,
)

__all__ = [
    "ROUNDINGS",
    "LabelMatrix",
    "goemans_williamson",
    "kmeans_centered",
    "procrustes",
    "refine",
    "sign_centered",
    "sign_leading",
    "sign_second",
    "two_means",
]
