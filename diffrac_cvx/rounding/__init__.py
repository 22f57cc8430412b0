"""From a factor F of the labels' matrix, Y = F F', to labels.

Y does not say which cluster is +1: the first point is labelled +1.  An eigenvector is taken with its first nonzero
entry positive, and its zeros (up to rounding) count as +1.  If all points are equal, all labels are +1.  No n x n
matrix is formed: the cost is O(n r^2), plus a sort where 2-means is used.
"""

from diffrac_cvx.rounding.many_clusters import kmeans_rows
from diffrac_cvx.rounding.many_labels import LabelMixture, fit_label_mixture, procrustes
from diffrac_cvx.rounding.two_clusters import (
    ROUNDINGS,
    apply_constraints,
    goemans_williamson,
    kmeans_1d,
    kmeans_centered,
    refine,
    sign_centered,
    sign_leading,
    sign_second,
)

__all__ = [
    "ROUNDINGS",
    "LabelMixture",
    "apply_constraints",
    "fit_label_mixture",
    "goemans_williamson",
    "kmeans_1d",
    "kmeans_centered",
    "kmeans_rows",
    "procrustes",
    "refine",
    "sign_centered",
    "sign_leading",
    "sign_second",
]  # fmt: skip
