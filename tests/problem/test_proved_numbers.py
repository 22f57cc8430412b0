"""Printed bounds contain the exact ones in every interface."""

import ast
import contextlib
import io
import math
import pickle
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import diffrac_cvx as dc
from diffrac_cvx.app import render
from diffrac_cvx.app.answer import Answer
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.page import views
from diffrac_cvx.comparison import ComparisonTask, MethodResult, comparing, disagreements
from diffrac_cvx.comparison.rendered_table import ReportTable, format_cell
from diffrac_cvx.problem.formatting import (
    FormattedBound,
    format_bracket,
    format_ends,
    format_gap,
    format_lower,
    format_upper,
    formatted_lower,
    formatted_upper,
    sum_rounded_up,
    width_of,
)
from experiments.harness.tables import format_table

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"


@st.composite
def brackets(draw):
    """Brackets in [0, 1], wide and narrow, also of no width."""
    lower = draw(st.floats(0.0, 1.0))
    width = draw(st.just(0.0) | st.floats(-18.0, 0.0).map(lambda power: 10.0**power))
    return lower, max(min(lower + width, 1.0), lower)


def numbers(text, pattern):
    """The numbers at the places <L>, <U> and <G> of a pattern, whose other characters are literal, in a text."""
    found = re.search(re.sub("<[LUG]>", lambda _: f"({NUMBER})", re.escape(pattern)), text)
    assert found, f"{pattern!r} is not in {text!r}"
    return found.groups()


def result_of(lower, upper):
    given = {"value": upper, "lower": lower, "upper": upper, "factor": np.ones((5, 1)), "status": dc.Status.OPTIMAL}
    return dc.Result(**given, n_iter=3, seconds=0.1, solver="one")


def answer_with(lower, objective, tol=0.0):
    """An answer of two clusters with these bounds."""
    ones = np.ones((1, 2))
    return Answer(
        names=("a", "b"), rows=np.arange(5), clusters=np.array([0, 0, 1, 1, 1]), sizes=(2, 3), class_names=(),
        has_constraints=False, objective=objective, lower_bound=lower, label_gap=width_of(lower, objective),
        upper_bound=objective, n_excluded=0, scaled_coefficients=ones, coefficients=ones, intercept=np.ones(1),
        standard_deviations=np.ones(2), selected_features=("a",), feature_groups=None,
        structure=None, is_cut_at_gap=False, diagnostics=(),
        notes=(), suspects={}, adjusted_rand_score=None, clustering_error=None, contingency_matrix=None,
        rounded_objective=None, rounded_agreement=None, solver="one", status=dc.Status.OPTIMAL, seconds=0.1, code="",
        cluster_means=np.zeros((2, 2)), means=np.zeros(2), separations=np.zeros(2),
        parameters={"nu": 1.0, "lambda": 0.0, "ridge": 0.3, "tol": tol},
    )  # fmt: skip


# Faces: each prints of a bracket its lower end <L>, its upper end or a cost <U>, or its width <G>, at these places


def of_progress_on_the_terminal(*of):
    given, errors = SimpleNamespace(json=False, quiet=False, time_limit=None), io.StringIO()
    with contextlib.redirect_stderr(errors):
        Console(given, 0.0).solver_callback("one")(dc.Progress(1, 0.1, *of))
    return errors.getvalue(), "between <L> and <U>"


def of_best_labels(lower, upper):
    found = {"one": MethodResult("(15)", bounds=dc.Bracket(lower, 1.0), objective=upper)}
    said = " ".join(disagreements.describe_best_labels(found))
    return said, "objective <U> in (9); certified lower bound <L> (one)"


def of_split(lower, upper):
    """The cost of a split, and the bound on all others, or, if it is close, how much lower another may be."""
    text = render.bound_sentence(answer_with(lower, upper))
    return text, "<U> (0", "more than <G>." if upper - lower <= 1e-4 else "less than <L>."


def of_labels(lower, upper):
    made = dc.LabelCertificate(objective=upper, lower=lower, directions=np.empty(0))
    return str(made), "objective=<U>, bracket=[<L>, <U>], gap=<G>)"


def of_comparison(lower, upper):
    task = ComparisonTask(X=np.eye(5), nu=1.0, penalty=dc.Penalty(), alpha=0.0)
    row = comparing.row_of("one", MethodResult("(15)", result_of(lower, upper)), task, None, lower)
    columns = {name: name for name in ("value", "lower", "upper", "gap")}
    return " ".join(ReportTable.from_records([row], columns).lines()[1]), "<U> <L> <U> <G>"


FACES = {
    "text": lambda *of: (f"{format_bracket(*of)} {format_gap(*of)}", "[<L>, <U>] <G>"),
    "bracket": lambda *of: (str(dc.Bracket(*of)), "[<L>, <U>]"),
    "result": lambda *of: (repr(result_of(*of)), "value=<U>, bracket=[<L>, <U>], gap=<G>,"),
    "labels": of_labels,
    "split in words": of_split,
    "method on the page": lambda *of: (" ".join(views.format_value(result_of(*of))), "<U> [<L>, <U>]"),
    "progress": of_progress_on_the_terminal, "comparison": of_comparison, "best labels": of_best_labels,
    "selected features": lambda *of: (render.selection_sentence(answer_with(*of), ("a",)), "by more than <G>. All"),
}  # fmt: skip


a_few = settings(max_examples=60, deadline=None, derandomize=True)
many = settings(max_examples=300, deadline=None, derandomize=True)


@pytest.mark.parametrize("face", FACES)
@a_few
@given(exact=brackets())
def test_a_printed_bracket_holds_the_exact_one(face, exact):
    (lower, upper), (text, *patterns) = map(Fraction, exact), FACES[face](*exact)
    for pattern in patterns:
        for place, number in zip(re.findall("<([LUG])>", pattern), numbers(text, pattern), strict=True):
            above = {
                "L": lower - Fraction(number),
                "U": Fraction(number) - upper,
                "G": Fraction(number) - upper + lower,
            }
            assert above[place] >= 0, (pattern, number)


@a_few
@given(exact=brackets())
def test_brackets_that_lie_apart_do_so_as_printed(exact):
    lower, upper = exact
    name = {"one": MethodResult("(9)", objective=lower), "two": MethodResult("(15)", bounds=dc.Bracket(upper, 1.0))}
    for sentence in disagreements.find_disagreements(name):
        score, bound = numbers(sentence, "objective <U> in (9), below the lower bound <L> of two")
        assert Fraction(lower) <= Fraction(score) < Fraction(bound) <= Fraction(upper)
    first, second = MethodResult("(15)", result_of(upper, 1.0)), MethodResult("(15)", result_of(0.0, lower))
    for sentence in disagreements.contradictions_between("one", first, "two", second):
        bound, most, apart = numbers(sentence, "is at least <L>, but two that it is at most <U>: a difference of <G>")
        assert Fraction(lower) <= Fraction(most) < Fraction(bound) <= Fraction(upper)
        assert Fraction(apart) <= Fraction(upper) - Fraction(lower)


@many
@given(
    number=st.floats(allow_nan=False, allow_infinity=False), width=st.floats(0.0, allow_nan=False) | st.just(math.inf)
)
def test_every_double_is_rounded_to_its_side_and_not_far(number, width):
    exact = Fraction(number)
    below, above = (Fraction(form(number, width)) for form in (format_lower, format_upper))
    assert below <= exact <= above
    assert above - below <= max(Fraction(1, 10**4), abs(exact) / 10**5)
    if 0.0 < width < math.inf:
        assert above - below <= max(Fraction(width) / 10, abs(exact) / 10**11)


@many
@given(lower=st.floats(-1e150, 1e150), upper=st.floats(-1e150, 1e150))
def test_a_width_and_a_sum_are_the_least_doubles_not_below_the_exact_ones(lower, upper):
    for found, exact in (
        (width_of(lower, upper), Fraction(upper) - Fraction(lower)),
        (sum_rounded_up(lower, upper), Fraction(lower) + Fraction(upper)),
    ):
        assert Fraction(math.nextafter(found, -math.inf)) < exact <= Fraction(found)


@pytest.mark.parametrize(
    ("number", "below", "above"),
    [
        (0.0, "0", "0"), (-0.0, "0", "0"), (1.0, "1", "1"), (0.5, "0.5", "0.5"), (0.450660645, "0.4506", "0.4507"),
        (-0.3, "-0.3000", "-0.2999"), (0.99999, "0.9999", "1.0000"), (1.234e-7, "1.2e-07", "1.3e-07"),
        (12345.678, "12345.6", "12345.7"), (5e-324, "4.9e-324", "5.0e-324"), (math.inf, "inf", "inf"),
        (-math.inf, "-inf", "-inf"), (math.nan, "nan", "nan"),
    ],
)  # fmt: skip
def test_a_number_on_its_own_has_four_decimals_or_two_digits(number, below, above):
    assert (format_lower(number), format_upper(number)) == (below, above)


def test_a_narrow_bracket_has_the_digits_that_tell_its_ends_apart():
    assert format_bracket(0.1234567, 0.1234591) == "[0.1234567, 0.1234592]"
    assert format_ends(0.0, 2.0**-44) == ("0", "5.7e-14")
    assert format_bracket(1 / 3, 1 / 3) == "[0.333333333333, 0.333333333334]"
    assert format_bracket(-math.inf, math.inf) == "[-inf, inf]"


def test_a_proved_number_is_a_float_that_keeps_its_text():
    number = formatted_lower(0.3)
    assert (number, number.text, repr(number), f"{number:.1f}") == (0.3, "0.2999", "0.3", "0.3")
    copy = pickle.loads(pickle.dumps(number))
    assert (type(copy), copy, copy.text) == (FormattedBound, 0.3, "0.2999")
    assert format_cell(formatted_upper(math.nan)) == ""
    assert format_cell(0.3) == "0.3000"


@a_few
@given(exact=brackets())
def test_a_table_of_an_experiment_holds_the_exact_bracket_and_changes_no_more(exact):
    lower, upper = exact
    ends = {"lower 0.01": lower, "own_upper": upper, "low_rank gap": width_of(lower, upper)}
    row = {**ends, "value": upper, "seconds": 1 / 3}
    text = format_table(pd.DataFrame([row, {"seconds": 2.0}]))
    read = pd.read_csv(io.StringIO(text))
    assert read["lower 0.01"][0] <= lower
    assert upper <= min(read["own_upper"][0], read["value"][0])
    assert read["low_rank gap"][0] >= width_of(lower, upper)
    assert read["seconds"][0] == 0.333333333
    assert format_table(read) == text


def rounded_by_hand(path):
    """The places where a file formats a proved number by digits of its own."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FormattedValue) or node.format_spec is None:
            continue
        digits = re.search(r"[gefn%]'$", ast.unparse(node.format_spec))
        said = ast.unparse(node.value)
        named = re.findall(r"(?<![A-Za-z])(lower|upper|gaps?|objective|cost|optimum|bounds?)(?![A-Za-z])", said)
        if digits and named and not said.startswith("abs("):  # a difference of two bounds is no bound
            yield f"{path}:{node.lineno}: {said}"


def test_no_other_module_formats_a_proved_number():
    root = Path(dc.__file__).parents[1]
    files = [file for folder in ("diffrac_cvx", "experiments") for file in (root / folder).rglob("*.py")]
    assert len(files) > 100
    places = [place for file in files for place in rounded_by_hand(file)]
    assert [place for place in places if "formatting.py" not in place and "bound.excess" not in place] == []
