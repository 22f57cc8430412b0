"""The theorems on rounding and on components, on their pages, have the constants of the code."""

import ast
import inspect
import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from diffrac_cvx.certificates import proof, screening

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PAGE, COMPONENTS = GUIDES / "reliability.py", GUIDES / "components.py"
PLACES = {
    "relative_error": proof.relative_error,
    "eliminated_matrix": proof.eliminated_matrix,
    "lifted_cholesky": proof.lifted_cholesky,
    "eliminate": proof.eliminate,
    "gram_error_roots": proof.gram_error_roots,
}


def quoted():
    """Return the expressions that the page quotes, by the function that they are of."""
    text = PAGE.read_text(encoding="utf-8")
    listed = text.partition("In the code, where every number")[2].partition("t is raised by")[0]
    items = re.split(r"\n# - ", listed)[1:]
    return [(place, code) for place, *codes in (re.findall(r"``(.+?)``", item) for item in items) for code in codes]


def test_the_page_quotes_every_place_where_rounding_is_counted():
    assert {place for place, _ in quoted()} == set(PLACES)
    assert len(quoted()) == 6


@pytest.mark.parametrize(("place", "code"), quoted())
def test_what_the_page_quotes_is_what_the_code_computes(place, code):
    tree = ast.parse(dedent(inspect.getsource(PLACES[place])))
    assert ast.dump(ast.parse(code, mode="eval").body) in {ast.dump(node) for node in ast.walk(tree)}


def test_the_formulas_have_the_constants_of_the_quotations():
    text = PAGE.read_text(encoding="utf-8")
    for constant in (
        r"\gamma_{k+16}",
        r"\gamma_{k+32}",
        r"\gamma_4",
        r"\gamma_{2r+8}",
        r"\gamma_{r+8}",
        r"(2 + \kappa) \kappa",
    ):
        assert constant in text.partition("*Theorem.*")[2].partition("*Proof.*")[0]


def test_what_the_components_page_adds_for_unpenalized_coordinates_bounds_every_perturbation():
    """The inequality, tried on random matrices; the code's is the same."""
    source = inspect.getsource(screening.gap_safe_distance)
    assert "sizes * (error / (values[0] * least)) + (largest_sizes - sizes) / least" in source
    assert r"\frac{e}{\sigma (\sigma - e)}" in COMPONENTS.read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    tight = 0.0
    for _ in range(500):
        size = int(rng.integers(1, 4))
        root = rng.standard_normal((size, size))
        S, off = root @ root.T + 0.5 * np.eye(size), rng.standard_normal((size, size))
        least = np.linalg.eigvalsh(S)[0]
        off = (off + off.T) * rng.uniform(0.0, 0.9) * least / max(np.abs(off + off.T).sum(), 1e-12)
        e, s, h = (
            np.abs(off).sum(),
            rng.standard_normal((2, size)),
            rng.uniform(0.0, 0.3) * rng.standard_normal((2, size)),
        )
        change = (s[0] + h[0]) @ np.linalg.solve(S + off, s[1] + h[1]) - s[0] @ np.linalg.solve(S, s[1])
        norms, moved = np.linalg.norm(s, axis=1), np.linalg.norm(h, axis=1)
        bound = norms.prod() * e / (least * (least - e)) + ((norms + moved).prod() - norms.prod()) / (least - e)
        assert abs(change) <= bound * (1 + 1e-9)
        tight = max(tight, abs(change) / bound)
    assert tight > 0.5
