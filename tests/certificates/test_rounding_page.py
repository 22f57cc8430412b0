"""The theorems on rounding and on components, on their pages, have the constants of the code."""

import ast
import inspect
import re
from pathlib import Path
from textwrap import dedent

import pytest

from diffrac_cvx.certificates import proof

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


@pytest.mark.parametrize(("place", "code"), quoted())
def test_what_the_page_quotes_is_what_the_code_computes(place, code):
    tree = ast.parse(dedent(inspect.getsource(PLACES[place])))
    assert ast.dump(ast.parse(code, mode="eval").body) in {ast.dump(node) for node in ast.walk(tree)}
