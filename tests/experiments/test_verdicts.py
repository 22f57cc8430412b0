"""Verdicts: their intervals, their page, and rules that give each of their answers."""

import re

import numpy as np
import pandas as pd
import pytest

from experiments.harness import reproduction
from experiments.harness.boundary import crossing, find_boundary, fit_power
from experiments.harness.findings import Finding, Rule, format_found, one_row
from experiments.harness.intervals import interval_of, mean_of, median_of, proportion_of

# Intervals


def test_an_empty_sample_has_no_interval_and_undetermined_draws_have_an_infinite_one():
    draws = np.where(np.arange(100) % 2, np.nan, 1.0)
    assert interval_of(1.0, draws, 9)[1:] == (-np.inf, np.inf)
    assert interval_of(1.0, draws, 9, least=0.4)[1:] == (1.0, 1.0)
    for found in (mean_of([]), median_of([]), proportion_of([])):
        assert np.isnan(found.value)
        assert str(found) == "none"
        assert not found.within(-1e9, 1e9)


# Boundaries


@pytest.mark.parametrize(
    ("rate", "expected"),
    [([0, 0.25, 0.75, 1], (25.0, 0)), ([0.5, 1, 1, 1], (10.0, -1)), ([0, 0, 0.2, 0.4], (40.0, 1))],
)
def test_the_crossing_is_inside_the_grid_or_on_the_side_where_it_must_lie(rate, expected):
    assert crossing(np.array([10.0, 20.0, 30.0, 40.0]), np.array(rate, dtype=float)) == expected


def made_boundary(power, factor=1.0, dimensions=(8, 12, 16, 24, 32), replications=20, spread=0.15):
    """A table of successes whose thresholds are factor d^power, times a lognormal variable per replication."""
    rng, rows = np.random.default_rng(1), []
    for d in dimensions:
        for replication, scale in enumerate(np.exp(spread * rng.standard_normal(replications))):
            for n in np.unique(np.geomspace(2, 4000, 60).astype(int)):
                rows.append((d, n, replication, int(n >= factor * d**power * scale)))
    return pd.DataFrame(rows, columns=["d", "n", "replication", "success"])


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_a_power_law_is_found_with_its_interval(power):
    fit = fit_power(find_boundary(made_boundary(power), "success"))
    assert fit.dimensions == 5
    assert fit.exponent.meets(power, power)
    assert fit.exponent.high - fit.exponent.low < 0.4


def test_nothing_is_fitted_through_three_boundaries_and_those_outside_the_grid_do_not_count():
    assert np.isnan(fit_power(find_boundary(made_boundary(1.0, dimensions=(8, 12, 16)), "success")).exponent.value)
    found = find_boundary(made_boundary(2.0, factor=8.0), "success")
    assert found.outside[-1] == 1
    assert found.n50[-1] == 4000
    assert fit_power(found).dimensions == (found.outside == 0).sum() < 5


# The statements and the page


@pytest.fixture(scope="module")
def sections():
    """All sections of the page; they take long to compute."""
    return reproduction.read_sections()


def test_every_claim_has_a_number_and_every_experiment_its_pictures(sections):
    for section in sections:
        assert section.found, section.stem
        for found in section.found:
            text = format_found(found)
            assert re.search(r"\d", text), text
            assert not re.search(r"\bnan\b|\binf\b", text), text
        for suffix in (".pdf", ".png"):
            assert (reproduction.FIGURES / f"{section.stem}{suffix}").exists()


def test_every_statement_has_one_verdict_or_a_test_and_the_pages_are_those_of_the_tables(sections):
    names = [name for section in sections for name in section.verdicts]
    assert len(set(names)) == len(names)
    assert reproduction.open_statements(sections) == []
    assert reproduction.PAGE.read_text() == reproduction.format_page(sections)
    assert reproduction.BEYOND_PAGE.read_text() == reproduction.format_beyond(sections)
    text = reproduction.README.read_text()
    assert reproduction.renew_readme(text, reproduction.collect_verdicts(sections)) == text


def test_a_missing_table_is_said_and_its_statements_are_open(tmp_path):
    sections = reproduction.read_sections(tmp_path)
    page = reproduction.format_page(sections) + reproduction.format_beyond(sections)
    assert page.count("Not measured yet") == len(reproduction.EXPERIMENTS)
    assert any(statement.name == "fig1-rank-affine" for statement in reproduction.open_statements(sections))
    assert "**open**" in page


def test_a_finding_has_its_table_and_the_verdict_with_its_rule():
    rule = Rule("nu-range", "agrees if all", lambda t: False, lambda t: t["share"].iloc[0] > 0.5)
    text = format_found(Finding("Share", one_row(share=0.75), [rule]))
    assert "|0.75|" in text
    assert "(2.3): **partly agrees**. *Rule:* agrees if all." in text
