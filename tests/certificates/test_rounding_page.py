"""The theorem on rounding, on its page, has the constants of the code."""

import ast
import inspect
import re
from pathlib import Path
from textwrap import dedent

import pytest

from diffrac_cvx.certificates import proof
from diffrac_cvx.problem.direction_problem import DirectionProblem

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "reliability.py"
PLACES = {
    "DirectionProblem.moment_error": DirectionProblem.moment_error,
    "multiplier_in_box": proof.multiplier_in_box,
    "Pencil.lost": proof.Pencil.lost,
    "Pencil.roundings": proof.Pencil.roundings.func,
    "proved_ratio": proof.proved_ratio,
}


def quoted():
    """Return the expressions that the page quotes, by the function that they are of."""
    text = PAGE.read_text(encoding="utf-8")
    listed = text.partition("In the code, where every number")[2].partition("t is raised by")[0]
    items = re.split(r"\n# - ", listed)[1:]
    return [(place, code) for place, *codes in (re.findall(r"``(.+?)``", item) for item in items) for code in codes]


def test_the_page_quotes_every_place_where_rounding_is_counted():
    assert {place for place, _ in quoted()} == set(PLACES)
    assert len(quoted()) == 7


@pytest.mark.parametrize(("place", "code"), quoted())
def test_what_the_page_quotes_is_what_the_code_computes(place, code):
    tree = ast.parse(dedent(inspect.getsource(PLACES[place])))
    assert ast.dump(ast.parse(code, mode="eval").body) in {ast.dump(node) for node in ast.walk(tree)}


def test_the_formulas_have_the_constants_of_the_quotations():
    text = PAGE.read_text(encoding="utf-8")
    for constant in (
        r"\gamma_{s+8}",
        r"\sqrt{\max u}",
        r"\max(u)\, \delta^2",
        r"\gamma_{2d+8}",
        r"\gamma_{2D+8}",
        r"\gamma_4",
    ):
        assert constant in text.partition("*Theorem.*")[2].partition("*Proof.*")[0]
