"""Claims on the propositions, lemmas and conjectures of the theory."""

import pandas as pd

from experiments.harness.claims import Claim, Finding, split_parts
from experiments.theory import claims_balanced, claims_labels, claims_sparse

TITLE = "The propositions, lemmas and conjectures of section 5"
ABOUT = (
    "Uniqueness is decided by one small semidefinite program for each instance, whose optimal value is 0 or positive; "
    "purely mathematical statements are verified by tests instead; bands and bars are intervals, in (b) and (f) only "
    "where a proportion changes"
)


def claims(table: pd.DataFrame) -> list[Claim | Finding]:
    """Return every claim on sections 2 to 5 that the table decides."""
    part = split_parts(table)
    return [
        claims_labels.imbalance_weight(part["imbalance weight"]),
        claims_sparse.direction_alone(part["sparse direction"]),
        claims_balanced.proposition_a(part["sample size"]),
        claims_balanced.proposition_b(part["sample size"]),
        claims_balanced.kurtosis(part["recovery"]),
        claims_balanced.spiked(part["sample size"], part["recovery"]),
        claims_balanced.small_variance(part["sample size"]),
        claims_balanced.eigenvalues(part["spectrum"]),
        claims_balanced.second_entry(part["spectrum"]),
        claims_balanced.hessian(part["hessian"]),
        claims_balanced.one_dimension(part["one dimension"]),
        claims_labels.rank_two(part["lemma"]),
        claims_labels.rank_two_unique(part["rank two"], part["balanced"]),
        claims_sparse.proposition_a(part["one sparse"]),
        claims_sparse.proposition_b(part["one sparse"]),
        claims_labels.diagonal(part["family"]),
        claims_labels.support(part["many labels"], part["balanced"]),
        claims_labels.procrustes_few(part["procrustes"]),
        claims_labels.perturbed(part["perturbed"]),
        claims_balanced.decision(part["recovery"]),
        claims_balanced.laws(part["recovery"]),
        claims_balanced.threshold(part["balanced"]),
        claims_sparse.few_points(part["one sparse"]),
    ]
