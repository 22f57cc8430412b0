"""Rounding: from a factor F of the label matrix Y = F F' to labels.

Y determines the labels only up to sign, so the first point is labelled +1.  Eigenvectors have a positive first nonzero
entry, and entries that are zero up to rounding count as +1.  If all points are equal, all labels are +1.  No n x n
matrix is formed: the cost is O(n r^2), plus a sort for 2-means.
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
    "ROUNDINGS", "LabelMixture", "apply_constraints", "fit_label_mixture", "goemans_williamson", "kmeans_1d",
    "kmeans_centered", "kmeans_rows", "procrustes", "refine", "sign_centered", "sign_leading", "sign_second",
]  # fmt: skip
