"""Certificates: bounds on the optimum from any point of any solver, valid in spite of rounding errors."""

from diffrac_cvx.certificates.certificate import Certificate
from diffrac_cvx.certificates.certify import (
    LabelCertificate,
    certify_clusters,
    certify_labels,
    certify_v,
    certify_y,
    find_components,
)
from diffrac_cvx.certificates.checker import check_certificate

__all__ = [
    "Certificate",
    "LabelCertificate",
    "certify_clusters",
    "certify_labels",
    "certify_v",
    "certify_y",
    "check_certificate",
    "find_components",
]
