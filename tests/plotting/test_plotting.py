"""Displays draw the correct numbers on the given axes, and change nothing else."""

import warnings
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx import paths, plotting
from diffrac_cvx.plotting.canvas import PER_DEVIATION, label_ends

PENALTY = dc.Penalty.l1(0.02)
NAMES = ["age", "height", "weight", "dose", "time"]


@pytest.fixture(scope="module")
def planted():
    return dc.datasets.make_planted(80, 5, sparsity=2, imbalance=0.1, noise=0.3, rng=5)


@pytest.fixture(scope="module")
def result(planted):
    return dc.low_rank(planted.X, 0.9, PENALTY)


@pytest.fixture(scope="module")
def other(planted):
    return dc.solve(dc.v_space(planted.X, 0.9, PENALTY), "CLARABEL")


@pytest.fixture(scope="module")
def path(planted):
    return paths.lambda_path(planted.X, np.geomspace(0.01, 1.0, 5), y=planted.y)


@pytest.fixture(scope="module", autouse=True)
def untouched():
    """The matplotlib settings before drawing."""
    return dict(mpl.rcParams)


@pytest.fixture
def ax():
    return plt.figure().subplots()


@pytest.fixture(autouse=True)
def _closed():
    plt.close("all")  # figures of tests in other modules
    yield
    plt.close("all")


def drawn(line):
    return np.column_stack(line.get_data())


tested = dc.structure_test(np.append(np.arange(15.0), np.arange(40.0, 55.0))[:, None])


@pytest.fixture
def displays(planted, result, other, path):
    """Each display as a plotting function of axes (or None), with its number of axes."""
    estimator = SimpleNamespace(decision_function=lambda X: X @ planted.v, coef_=planted.v)
    return {
        "bracket": (plotting.BracketDisplay.from_result(result, other).plot, 1),
        "structure": (plotting.StructureDisplay(tested).plot, 1),
        "spectrum": (plotting.SpectrumDisplay.from_result(result).plot, 1),
        "projection": (plotting.ProjectionDisplay.from_estimator(estimator, planted.X).plot, 1),
        "bars": (plotting.DirectionDisplay.from_estimator(estimator).plot, 1),
        "path": (plotting.PathDisplay(path).plot, 2),
    }


# Where things are drawn


each = pytest.mark.parametrize("name", ["bracket", "structure", "spectrum", "projection", "bars", "path"])


@each
def test_a_display_draws_on_the_axes_given_and_opens_no_figure(displays, name):
    plot, count = displays[name]
    figure, axes = plt.subplots(1, count)
    before = plt.get_fignums()
    found = plot(axes)
    assert plt.get_fignums() == before
    assert found.figure_ is figure
    assert list(getattr(found, "axes_", [found.ax_])) == list(np.ravel(axes))
    assert all(one.has_data() and one.get_xlabel() for one in np.ravel(axes))
    apart = mpl.figure.Figure()
    assert plot(apart).figure_ is apart
    assert plt.get_fignums() == before


@each
def test_without_axes_a_display_opens_one_figure_that_holds_its_texts_apart_and_nothing_else_changes(
    displays, name, untouched
):
    with warnings.catch_warnings():
        for kind in (UserWarning, RuntimeWarning, mpl.MatplotlibDeprecationWarning):
            warnings.simplefilter("error", kind)
        found = displays[name][0](None)
        found.figure_.canvas.draw()
    assert dict(mpl.rcParams) == untouched
    assert plt.get_fignums() == [found.figure_.number]
    assert found.ax_.get_title() == ""
    assert all(1.5 < side < 8.0 for side in found.figure_.get_size_inches())
    texts = [text for axes in found.figure_.axes for text in (axes.xaxis.label, axes.yaxis.label, *axes.texts)]
    drawn = [text for text in texts if text.get_text()]
    boxes = [text.get_window_extent() for text in drawn]
    assert all(inside(text, found.figure_) for text in drawn)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def inside(artist, figure):
    """Return whether an artist lies inside its figure."""
    box, whole = artist.get_window_extent(), figure.bbox
    return whole.x0 <= box.x0 and whole.y0 <= box.y0 and box.x1 <= whole.x1 and box.y1 <= whole.y1


def test_on_one_axes_the_first_panel_is_drawn_unless_another_is_asked_for(path, ax):
    assert list(plotting.PathDisplay(path).plot(ax).lines_) == ["coefficients"]
    assert list(plotting.PathDisplay(path).plot(ax, panels="error").lines_) == ["error"]
    for panels, words in (("nonsense", "panels = 'nonsense'"), (["value", "error"], "1 axes for 2 panels")):
        with pytest.raises(dc.ParameterError, match=words):
            plotting.PathDisplay(path).plot(ax, panels=panels)


# Brackets and spectra


@pytest.mark.parametrize(("against", "column"), [("iteration", 0), ("seconds", 1)])
def test_a_bracket_is_the_history_or_one_point_without_history(result, other, against, column):
    history = np.array(result.history)
    display = plotting.BracketDisplay.from_result(result, other, names=["fast", "oracle"])
    found = display.plot(against=against, color="k", lw=3.0)
    np.testing.assert_array_equal(drawn(found.lower_lines_[0]), history[:, [column, 2]])
    np.testing.assert_array_equal(drawn(found.upper_lines_[0]), history[:, [column, 3]])
    np.testing.assert_array_equal(drawn(found.lower_lines_[1]), [[(other.n_iter, other.seconds)[column], other.lower]])
    assert found.upper_lines_[0].get_drawstyle() == "steps-post"
    assert found.ax_.get_xlabel() == against
    assert [text.get_text() for text in found.legend_.get_texts()] == ["fast", "oracle"]
    assert (found.lower_lines_[0].get_color(), found.lower_lines_[0].get_linewidth()) == ("k", 3.0)


def test_gaps_are_drawn_on_a_logarithmic_axis_where_even_0_shows(planted, result):
    closed = dc.low_rank(planted.X, 0.0)
    found = plotting.BracketDisplay.from_result(result, closed).plot(gap=True)
    history = np.array(result.history)
    np.testing.assert_array_equal(found.gap_lines_[0].get_ydata(), history[:, 3] - history[:, 2])
    np.testing.assert_array_equal(found.gap_lines_[1].get_ydata(), [np.finfo(float).eps])
    assert found.ax_.get_yscale() == "log"
    assert found.lower_lines_ == []


def test_a_test_of_structure_is_a_histogram_and_a_density_with_the_gap():
    found = plotting.StructureDisplay(tested).plot()
    bars = [bar.get_width() * bar.get_height() for bar in found.bars_]
    assert sum(bars) == pytest.approx(1.0)
    at, density = found.line_.get_data()
    assert 0.5 < np.trapezoid(density, at) < 1.0
    assert np.sum(np.diff(np.sign(np.diff(density))) < 0) == 2  # two groups
    with pytest.raises(dc.DataError, match="no scores"):
        plotting.StructureDisplay(replace(tested, bandwidth=0.0))


def test_spectra_are_fractions_of_the_eigenvalues_and_a_result_in_labels_alone_has_one(planted, result):
    found = plotting.SpectrumDisplay.from_result(result).plot(most=3)
    for line, matrix in ((found.labels_line_, result.F @ result.F.T), (found.directions_line_, result.V)):
        expected = np.linalg.eigvalsh(matrix)[::-1][:3] / np.trace(matrix)
        np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-12)
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    one_cluster = dc.solve(dc.constrained_alpha(planted.X[:10], 1.0))
    found = plotting.SpectrumDisplay.from_result(one_cluster).plot()
    assert found.directions_line_ is None
    np.testing.assert_allclose(drawn(found.labels_line_), [[1.0, 1.0]])


def test_the_axis_of_a_spectrum_begins_at_its_smallest_eigenvalue():
    assert 0.01 < plotting.SpectrumDisplay([0.7, 0.2, 0.1]).plot().ax_.get_ylim()[0] < 0.1
    assert plotting.SpectrumDisplay([1.0, 1e-30]).plot().ax_.get_ylim()[0] > 0.1


# Directions


def test_histograms_count_every_point_of_each_label_on_its_side(planted):
    X, y = planted.X, planted.y
    w = np.linalg.lstsq(X, y - y.mean())[0]
    found = plotting.ProjectionDisplay(X @ w, y).plot(bins=12)
    edges = np.unique(found.bars_[0][0].get_xy()[:, 0])
    assert 12 <= len(edges) - 1 <= 13
    assert edges[0] <= (X @ w).min() < (X @ w).max() <= edges[-1]
    assert np.abs(edges - found.threshold).min() < 1e-12 * np.ptp(edges)
    for label, (bars,) in zip([-1.0, 1.0], found.bars_, strict=True):
        counts = np.histogram((X @ w)[y == label], edges)[0]
        tops = bars.get_xy()[1 : 2 * len(edges) - 1 : 2, 1]
        np.testing.assert_array_equal(tops, counts)
    assert found.threshold_line_.get_xdata()[0] == found.threshold
    above, split = X @ w > found.threshold, dc.rounding.kmeans_1d(X @ w)
    assert len(set(split[above])) == len(set(split[~above])) == 1
    assert plotting.ProjectionDisplay([2.0, 2.0, 2.0], [1, 1, 1]).plot().threshold_line_.get_xdata()[0] == 2.0


def test_an_estimator_is_split_by_the_sign_of_its_decision_and_names_its_own_features(planted):
    two = SimpleNamespace(decision_function=lambda X: np.column_stack([-X[:, 0], X[:, 1] - 0.1]))
    two.coef_, two.feature_names_in_ = np.eye(5)[:2], np.array(NAMES)
    direction = plotting.DirectionDisplay.from_estimator(two, output=1)
    np.testing.assert_array_equal(direction.coefficients, np.eye(5)[1])
    assert direction.feature_names == NAMES
    found = plotting.ProjectionDisplay.from_estimator(two, planted.X, output=1)
    np.testing.assert_array_equal(found.projection, planted.X[:, 1] - 0.1)
    np.testing.assert_array_equal(found.labels, found.projection > 0)
    assert found.threshold == 0.0
    judged = plotting.ProjectionDisplay.from_estimator(two, planted.X, planted.y)
    np.testing.assert_array_equal(judged.classes, [-1.0, 1.0])


@pytest.mark.parametrize("classes", [2, 8, 64])
def test_any_number_of_labels_is_drawn_and_the_legend_stays_inside(classes):
    labels = np.repeat(np.arange(classes), 3)
    found = plotting.ProjectionDisplay(labels + np.tile([0.0, 0.1, 0.2], classes), labels).plot()
    assert len(found.bars_) == classes
    assert len({tuple(bars[0].get_edgecolor()) for bars in found.bars_}) == min(classes, 8)
    found.figure_.draw_without_rendering()
    assert inside(found.legend_, found.figure_)
    texts = [text.get_text() for text in found.legend_.get_texts()]
    assert texts[:2] == ["label 0, 3 points", "label 1, 3 points"]
    assert texts[-1] == "threshold"
    assert (f"... and {classes - 7} more" in texts) == (classes > 8)
    assert len(texts) == min(classes, 8) + 1


def test_bars_are_the_coefficients_largest_first_with_the_support_marked():
    v = np.array([0.1, -3.0, 0.0, 2.0, -0.5])
    found = plotting.DirectionDisplay(v, NAMES).plot(most=4)
    np.testing.assert_array_equal([bar.get_width() for bar in found.bars_], [-3.0, 2.0, -0.5, 0.1])
    assert [text.get_text() for text in found.ax_.get_yticklabels()] == ["height", "dose", "time", "age"]
    assert found.ax_.yaxis_inverted()
    assert found.ax_.get_ylabel() == "4 largest of 5 features"
    colors = [bar.get_facecolor() for bar in found.plot().bars_]
    assert [color == colors[4] for color in colors] == [False, False, False, False, True]


def test_support_and_coefficients_do_not_depend_on_the_units(planted, result):
    units = np.array([1e3, 1.0, 1e-3, 1.0, 1.0])
    changed = dc.low_rank(planted.X * units, 0.9, dc.Penalty(c=0.02**0.5 * units))
    first, second = (
        plotting.DirectionDisplay.from_result(found, X, rtol=0.1)
        for found, X in ((result, planted.X), (changed, planted.X * units))
    )
    np.testing.assert_array_equal(first.support, second.support)
    assert 0 < first.support.sum() < 5
    np.testing.assert_allclose(
        first.coefficients, paths.leading_direction(planted.X, result) * planted.X.std(axis=0), rtol=1e-12
    )
    np.testing.assert_allclose(np.abs(first.coefficients), np.abs(second.coefficients), atol=1e-2)
    assert first.plot().ax_.get_xlabel() == PER_DEVIATION


# Paths


def test_path_lines_are_the_path(path):
    panels = ["coefficients", "value", "eigenvalue_ratio", "imbalance", "error", "seconds"]
    found = plotting.PathDisplay(path, NAMES).plot(panels=panels)
    assert found.ax_.get_ylabel() == PER_DEVIATION
    for line, v in zip(found.lines_["coefficients"], (path.directions * path.deviations).T, strict=True):
        np.testing.assert_array_equal(drawn(line), np.column_stack([path.parameter, v]))
    for name in panels[1:]:
        (line,) = found.lines_[name]
        np.testing.assert_array_equal(drawn(line), np.column_stack([path.parameter, getattr(path, name)]))
    corners = found.fill_.get_paths()[0].vertices
    for x, low, high in zip(path.parameter, path.lower, path.upper, strict=True):
        assert {low, high} <= set(corners[corners[:, 0] == x, 1])
    assert all(axes.xaxis_inverted() and axes.get_xscale() == "log" for axes in found.axes_)
    assert len(found.axes_) == len(found.figure_.axes) == 6


def test_the_largest_coefficients_are_named_at_their_ends_in_their_colors_but_none_that_stays_at_0(path):
    sparse = replace(path, directions=path.directions * [1.0, 1.0, 0.0, 0.001, 0.0])
    assert {text.get_text() for text in plotting.PathDisplay(sparse, NAMES).plot().texts_} == {"age", "height"}
    found = plotting.PathDisplay(path, NAMES).plot(labeled=2)
    largest = np.argsort(-np.abs(path.directions).max(axis=0))[:2]
    assert [text.get_text() for text in found.texts_] == [NAMES[j] for j in largest]
    for text, j in zip(found.texts_, largest, strict=True):
        assert text.get_color() == found.lines_["coefficients"][j].get_color()
        assert text.xy[1] == (path.directions * path.deviations)[0, j]  # lambda decreases to the right


def test_a_path_with_groups_draws_the_norms_of_their_coefficients(planted, path):
    grouped = paths.lambda_path(planted.X, [0.1, 0.3], dc.Penalty(lam=1.0, groups=[0, 0, 1, 1, 2]))
    found = plotting.PathDisplay(grouped, NAMES).plot()
    assert list(found.lines_) == ["groups", "value"]
    np.testing.assert_array_equal([line.get_ydata() for line in found.lines_["groups"]], grouped.group_norms.T)
    with pytest.raises(dc.ParameterError, match="no groups"):
        plotting.PathDisplay(path).plot(panels="groups")


def test_a_path_over_nu_has_0_on_its_axis_and_no_error_without_labels(planted):
    nus = [0.0, 0.02, 1.0]
    axes = plotting.PathDisplay(paths.nu_path(planted.X, nus, PENALTY, y=planted.y)).plot(panels="error").ax_
    assert axes.get_xscale() == "symlog"
    assert not axes.xaxis_inverted()
    with pytest.raises(dc.ParameterError, match="Pass y"):
        plotting.PathDisplay(paths.nu_path(planted.X, [1.0])).plot(panels="error")


def test_names_at_the_ends_of_lines_do_not_overlap_on_logarithmic_axes_either(ax):
    ax.loglog([1.0, 10.0], [1.0, 100.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = label_ends(ax, [10.0, 10.5, 11.0], ["a", "b", "c"], ["k", "k", "k"], size=7.0)
    ax.figure.canvas.draw()
    heights = [text.get_window_extent().y0 for text in texts]
    assert heights == sorted(heights)
    assert not any(a.get_window_extent().overlaps(b.get_window_extent()) for a, b in pairwise(texts))
    assert label_ends(ax, [], [], []) == []
    (alone,) = label_ends(ax, [50.0], ["d"], ["k"])
    assert alone.xyann == (5.0, 0.0)
