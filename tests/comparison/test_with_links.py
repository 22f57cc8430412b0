"""What is known of some points holds wherever it is given: roundings, search, paths, comparisons, certificates."""

from functools import partial

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.rounding import ROUNDINGS, goemans_williamson, obey, refine

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

X, TRUTH, _ = dc.datasets.make_planted(60, 4, noise=0.8, rng=3)
KNOWN = np.where(np.arange(60) < 6, -TRUTH, 0.0)  # wrong on purpose: what is known is not what the data say
LINKS = {
    "pairs": dc.Links(same=[(0, 1), (1, 2), (10, 11)], different=[(2, 3), (20, 21), (21, 22)]),
    "known": dc.Links(labels=KNOWN),
    "both": dc.Links(same=[(7, 8), (8, 0)], different=[(8, 9)], labels=KNOWN),
    "groups": dc.Links(groups=np.arange(60) // 5),
}
each_links = pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)


def require(labels, links, *, either=False):
    """Labels obey links; known labels too, or all of them reversed where either orientation is right."""
    assert set(np.unique(labels)) <= {-1.0, 1.0}
    groups = links.groups_of(len(labels))
    signs = labels * groups.sign
    for g in range(groups.n_groups):
        assert abs(signs[groups.owner == g].sum()) == np.sum(groups.owner == g)
    if groups.known >= 0 and not either:
        assert np.all(signs[groups.owner == groups.known] == 1.0)


@each_links
@pytest.mark.parametrize("name", [*ROUNDINGS, "goemans_williamson"])
def test_a_rounding_obeys_links_whatever_the_factor(name, links):
    rounding = ROUNDINGS.get(name, partial(goemans_williamson, rng=0))
    for F in (dc.low_rank(X, links=links).F, dc.low_rank(X).F, np.random.default_rng(0).standard_normal((60, 3))):
        require(rounding(F, links=links), links)


def test_a_rounding_of_what_obeys_links_is_the_rounding_without_them():
    links = dc.Links(labels=np.where(np.arange(60) < 4, TRUTH, 0.0))
    F = dc.low_rank(X, links=links).F
    for rounding in ROUNDINGS.values():
        y = rounding(F)
        if set(y[:4] * TRUTH[:4]) in ({1.0}, {-1.0}):
            assert abs(rounding(F, links=links) @ y) >= 50.0


@each_links
def test_local_search_obeys_links_and_is_no_worse_than_its_start(links):
    require(dc.baselines.alternating_optimisation(X, rng=0, links=links), links)
    y = obey(TRUTH, links)
    require(refine(X, y, links=links), links)
    before, after = (
        dc.certify_labels(X, labels, 0.0, links=links).objective for labels in (y, refine(X, y, links=links))
    )
    assert after <= before + 1e-9


def test_the_majority_of_linked_points_decides():
    links = dc.Links(same=[(0, 1), (1, 2)], different=[(3, 4)])
    np.testing.assert_array_equal(obey([1, 1, -1, 1, -1], links), [1, 1, 1, 1, -1])
    np.testing.assert_array_equal(obey([0.1, 0.1, -1.0, 1.0, 2.0], links), [-1, -1, -1, -1, 1])
    np.testing.assert_array_equal(
        obey([0.1, 0.1, -1.0, 1, -1], links, np.array([0.4, 0.4, 0.05, 0.1, 0.05])), [1, 1, 1, 1, -1]
    )
    np.testing.assert_array_equal(obey([1.0, -1.0], None), [1, -1])


@each_links
@pytest.mark.parametrize("path", ["nu_path", "lambda_path"])
def test_paths_are_those_of_single_solves_with_links(path, links):
    grid = [0.05, 0.6]
    found = (
        getattr(dc.paths, path)(X, grid, ridge=0.1, links=links, y=TRUTH)
        if path == "lambda_path"
        else dc.paths.nu_path(X, grid, dc.Penalty(ridge=0.1), links=links, y=TRUTH)
    )
    for k, parameter in enumerate(grid):
        given = {"lam": parameter} if path == "lambda_path" else {"nu": parameter}
        one = dc.low_rank(X, ridge=0.1, links=links, **given)
        assert found.lower[k] <= one.upper
        assert one.lower <= found.upper[k]
    assert np.all(found.error >= 0.0)


@pytest.mark.parametrize("links", [LINKS["pairs"], LINKS["both"]], ids=["pairs", "both"])
def test_methods_agree_with_links_and_their_labels_obey_them(links):
    small = X[:30]
    inside = dc.Links(links.same[links.same.max(axis=1) < 30], links.different[links.different.max(axis=1) < 30])
    found = dc.compare(small, TRUTH[:30], ridge=0.1, links=inside, tol=1e-3)
    assert not found.disagreements
    assert {"low_rank", "fista", "v_space/CLARABEL", "lifted/CLARABEL", "penalized_nu/CLARABEL", "alternating"} <= set(
        found.labels
    )
    assert "k-means" not in found.labels
    assert any("takes no links" in note for note in found.notes)
    for labels in found.labels.values():
        require(labels, inside)


def test_labels_that_do_not_obey_are_refused_by_their_certificate():
    links = dc.Links(same=[(0, 1)])
    y = np.where(np.arange(60) == 0, 1.0, -1.0)
    with pytest.raises(dc.DataError, match="do not obey the links, as that of point 1"):
        dc.certify_labels(X, y, 0.0, links=links)
    known = dc.Links(labels=KNOWN)
    either = (dc.certify_labels(X, sign * obey(TRUTH, known), 0.0, links=known).objective for sign in (1.0, -1.0))
    assert len(set(either)) == 1
    lower = dc.low_rank(X, links=known)
    assert dc.certify_labels(X, obey(TRUTH, known), lower, links=known).gap >= 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda links: dc.rounding.kmeans_centered(X, links=links),
        lambda links: dc.rounding.refine(X, TRUTH, links=links),
        lambda links: dc.baselines.alternating_optimisation(X, rng=0, links=links),
        lambda links: dc.paths.nu_path(X, [1.0], links=links),
        lambda links: dc.compare(X, links=links),
        lambda links: dc.certify_labels(X, TRUTH, 0.0, links=links),
        lambda links: dc.certify_y(X, X, links=links),
        lambda links: dc.fista(X, links=links),
        lambda links: dc.v_space(X, links=links),
        lambda links: dc.lifted(X, links=links),
        lambda links: dc.penalized_nu(X, links=links),
        lambda links: dc.v_space_normalized(X, links=links),
    ],
)  # fmt: skip
def test_links_that_do_not_fit_are_an_error_everywhere(call):
    with pytest.raises(dc.DataError, match="names point 60"):
        call(dc.Links(same=[(0, 60)]))
    with pytest.raises(dc.DataError, match="contradict each other at points"):
        call(dc.Links(same=[(0, 1), (1, 2)], different=[(0, 2)]))
