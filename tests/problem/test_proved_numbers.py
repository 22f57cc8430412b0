"""Printed bounds contain the exact ones in every interface."""

import ast
import contextlib
import io
import math
import pickle
import re
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.app import render
from diffrac_cvx.app.answer import Answer
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.page import views
from diffrac_cvx.comparison import comparing, disagreements
from diffrac_cvx.comparison.methods import ComparisonTask, MethodResult
from diffrac_cvx.comparison.table import ReportTable, format_cell
from diffrac_cvx.estimators.affine import bounds_message
from diffrac_cvx.problem.direction_problem import PrimalPoint
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
from diffrac_cvx.solvers.driver import certify_until_stopped
from diffrac_cvx.solvers.stopping import Iterate, Stopping
from experiments.benchmark.findings import check_brackets
from experiments.benchmark.table import gap_text
from experiments.harness.tables import format_table, read_table

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"
X = np.array([[-2.0, 0.5], [-1.0, -0.3], [1.5, 0.2], [1.0, 0.4], [0.5, -0.8]])
Y = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
NOTHING = np.empty(0)


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


def result_of(lower, upper, status=dc.Status.OPTIMAL):
    ends = {"value": upper, "lower": lower, "upper": upper}
    return dc.Result(**ends, factor=np.ones((5, 1)), status=status, n_iter=3, seconds=0.1, solver="one")


def answer_with(lower, objective, tol=0.0):
    """An answer of two clusters with these bounds."""
    ones = np.ones((1, 2))
    return Answer(
        names=("a", "b"), rows=np.arange(5), labels=np.array([0, 0, 1, 1, 1]), sizes=(2, 3), class_names=(),
        has_constraints=False, objective=objective, lower_bound=lower, label_gap=width_of(lower, objective),
        upper_bound=objective, n_excluded=0, scaled_coefficients=ones, coefficients=ones, intercept=np.ones(1),
        standard_deviations=np.ones(2), selected_features=("a",), feature_groups=None, structure=None, diagnostics=(),
        notes=(), adjusted_rand_score=None, clustering_error=None, contingency_matrix=None, rounded_objective=None,
        rounded_agreement=None, parameters={"nu": 1.0, "lambda": 0.0, "ridge": 0.3, "tol": tol}, solver="one",
        status=dc.Status.OPTIMAL, seconds=0.1, code="",
    )  # fmt: skip


# Faces: each prints of a bracket its lower end <L>, its upper end or a cost <U>, or its width <G>, at these places


def of_split(text, lower, upper, certain, narrow):
    """The cost of a split, and what none costs less than; where that is certain, up to how much."""
    return text, "<U> (0", narrow if certain(upper - lower) else "less than <L>."


def of_progress_on_the_terminal(*of):
    given, errors = SimpleNamespace(json=False, quiet=False, time_limit=None), io.StringIO()
    with contextlib.redirect_stderr(errors):
        Console(given, 0.0).solver_callback("one")(dc.Progress(1, 0.1, *of))
    return errors.getvalue(), "between <L> and <U>"


def of_row_of_comparison(lower, upper):
    limits = {"tol": 1e-4, "time_limit": None, "memory_limit": None, "seed": 0}
    task = ComparisonTask(X=X, nu=1.0, penalty=dc.Penalty(), alpha=0.0, **limits)
    row = comparing.row_of("one", MethodResult("(9)", labels=Y, objective=upper), task, None, lower)
    return format_cell(row["label_gap"]), "<G>"


def of_best_labels(lower, upper):
    found = {"one": MethodResult("(15)", bounds=dc.Bracket(lower, 1.0), objective=upper)}
    said = " ".join(disagreements.describe_best_labels(found))
    return said, "objective <U> in (9); certified lower bound <L> (one)"


def of_lost_cluster(lower, upper):
    def iterates():
        point = PrimalPoint(np.zeros((2, 1)), upper, NOTHING)
        yield Iterate(point.U, 1, point=point, bounds=dc.Bracket(lower, upper))
        raise dc.ClusterConnectionError("lost")

    problem = direction_problem(X - X.mean(axis=0), 1.0, dc.Penalty(lam=0.1))
    try:
        certify_until_stopped(problem, iterates(), None, Stopping(1e-300, 10), "one", dc.Status.STALLED)
    except dc.ClusterConnectionError as lost:
        return str(lost), "lies in [<L>, <U>]"
    return ("",)  # a bracket of no width ends the search before


def of_warning_of_estimator(lower, upper):
    with pytest.warns(UserWarning, match="gap is") as warned:
        dc.DiffracClustering()._store_bounds((result_of(lower, upper, dc.Status.MAX_ITER),))
    return str(warned[0].message), "gap is <G>, tol"


def certificate_of(lower, upper, k=None):
    of = {"objective": upper, "lower": lower}
    return dc.LabelCertificate(**of, directions=NOTHING)


def of_method_on_the_page(lower, upper):
    return " ".join(views.format_value(result_of(lower, upper))), "<U> [<L>, <U>]"


def of_selection(lower, upper):
    return render.selection_sentence(answer_with(lower, upper), ("a",)), "by more than <G>. All"


def of_comparison(lower, upper):
    record = comparing.certified_cells(result_of(lower, upper))
    return " ".join(ReportTable.from_records([record]).lines()[1]), "<U> <L> <U> <G>"


FACES = {
    "text": lambda *of: (f"{format_bracket(*of)} {format_gap(*of)}", "[<L>, <U>] <G>"),
    "bracket": lambda *of: (str(dc.Bracket(*of)), "[<L>, <U>]"),
    "result": lambda *of: (repr(result_of(*of)), "value=<U>, bracket=[<L>, <U>], gap=<G>,"),
    "labels": lambda *of: (str(certificate_of(*of)), "objective=<U>, bracket=[<L>, <U>], gap=<G>)"),
    "clusters": lambda *of: (repr(certificate_of(*of, 3)), "LabelCertificate(objective=<U>, bracket=[<L>, <U>]"),
    "split in words": lambda *of: of_split(
        render.bound_sentence(answer_with(*of)), *of, lambda width: width <= 1e-4, "more than <G>."
    ),
    "verbose estimator": lambda *of: (bounds_message(*of), "[<L>, <U>]"),
    "method on the page": of_method_on_the_page,
    "progress": of_progress_on_the_terminal, "comparison": of_comparison,
    "row of a comparison": of_row_of_comparison, "best labels": of_best_labels, "lost cluster": of_lost_cluster,
    "warning of an estimator": of_warning_of_estimator, "selected features": of_selection,
}  # fmt: skip


def apart_in_benchmark(lower, upper):
    """The upper end of one method and the lower end of another as the check of the benchmark prints them, if apart."""
    rows = {
        "instance": "a", "method": ["one", "two"], "own_lower": [upper, 0.0], "own_upper": [1.0, lower],
        "judged_lower": np.nan, "judged_upper": np.nan, "time_to_1e-2": np.nan,
    }  # fmt: skip
    text = check_brackets(pd.DataFrame(rows)).text
    return numbers(text, "one own_lower is <L>, two own_upper is <U>")[::-1] if "CONFLICT" in text else None


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
    ends = apart_in_benchmark(lower, upper)
    assert (ends is not None) == (upper > lower + 1e-8)
    assert ends is None or Fraction(ends[0]) < Fraction(ends[1])
    name = {"one": MethodResult("(9)", objective=lower), "two": MethodResult("(15)", bounds=dc.Bracket(upper, 1.0))}
    for sentence in disagreements.contradictions_of_labels("one", name["one"], "two", name["two"]):
        score, bound = numbers(sentence, "objective <U> in (9), below the lower bound <L> of two")
        assert Fraction(lower) <= Fraction(score) < Fraction(bound) <= Fraction(upper)
    first, second = (
        disagreements.own_bounds(*one) for one in (("one", result_of(upper, 1.0)), ("two", result_of(0.0, lower)))
    )
    for sentence in disagreements.describe_disjoint(first, second, ""):
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
        (0.0, "0", "0"),
        (-0.0, "0", "0"),
        (1.0, "1", "1"),
        (0.5, "0.5", "0.5"),
        (0.450660645, "0.4506", "0.4507"),
        (-0.3, "-0.3000", "-0.2999"),
        (0.99999, "0.9999", "1.0000"),
        (1.234e-7, "1.2e-07", "1.3e-07"),
        (12345.678, "12345.6", "12345.7"),
        (5e-324, "4.9e-324", "5.0e-324"),
        (math.inf, "inf", "inf"),
        (-math.inf, "-inf", "-inf"),
        (math.nan, "nan", "nan"),
    ],
)
def test_a_number_on_its_own_has_four_decimals_or_two_digits(number, below, above):
    assert (format_lower(number), format_upper(number)) == (below, above)


def test_a_narrow_bracket_has_the_digits_that_tell_its_ends_apart():
    assert format_bracket(0.1234567, 0.1234591) == "[0.1234567, 0.1234592]"
    assert format_ends(0.0, 2.0**-44) == ("0", "5.7e-14")
    assert format_bracket(1 / 3, 1 / 3) == "[0.333333333333, 0.333333333334]"
    assert format_bracket(-math.inf, math.inf) == "[-inf, inf]"


def test_the_cost_of_a_split_is_never_printed_below_what_no_split_costs_less_than():
    six = np.array([[-0.1], [-0.2], [-3.0], [0.1], [0.4], [2.9]])
    result = dc.low_rank(six)
    split = dc.certify_labels(six, np.sign(six[:, 0]), result)
    text = render.bound_sentence(answer_with(result.lower, split.objective, tol=-1.0))
    (cost,) = numbers(text, "split: <U> (0")
    assert Fraction(cost) >= Fraction(split.objective) >= Fraction(result.lower)
    assert numbers(render.bound_sentence(answer_with(0.4, 0.450660645)), "Cost of this split: <U>") == ("0.4507",)
    assert numbers(render.bound_sentence(answer_with(0.450660644, 0.6)), "costs less than <L>.") == ("0.4506",)


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


@pytest.mark.parametrize("file", ["benchmark", "validation", "two_class", "convergence"])
def test_a_stored_table_is_written_as_it_was_read(file):
    stored = Path(dc.__file__).parents[1] / "figures" / f"{file}.csv"
    assert format_table(read_table(stored)) == stored.read_text()


def test_a_table_without_rows_is_written():
    assert format_table(pd.DataFrame(columns=["lower", "which"])) == "lower,which\n"


def test_the_gap_of_a_benchmark_is_rounded_up():
    row = {"own_lower": 0.1, "own_upper": 0.2, "relative_gap": 1.21e-4, "seconds": 1.0}
    assert gap_text(pd.Series(row)) == "1.3e-04 in 1"
    assert gap_text(pd.Series({**row, "relative_gap": np.nan})).startswith("0.5* in")


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


def test_printing_needs_nothing_but_the_standard_library():
    tree = ast.parse((Path(dc.__file__).parent / "problem" / "formatting.py").read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= set(sys.stdlib_module_names)
