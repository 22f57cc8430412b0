"""Every rule on numbers that the paper prints agrees on a faithful copy of them, and laws are told apart."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rule_tables import multi_label, runtime
from rules import AGREES, DIFFERS, PARTLY, VACUOUS, frame, within

from experiments.harness.command import load
from experiments.harness.tables import read_table
from experiments.multi_label.findings import LABELS
from experiments.phase_transition import findings as phase
from experiments.phase_transition.cells import PANELS
from experiments.phase_transition.uniqueness import wendel
from experiments.runtime import findings as times
from experiments.sparse_noise import findings as noise
from experiments.sparse_noise.cells import WEIGHTS
from experiments.sparse_regime.models import dimension_bound
from experiments.theory.unique_solution import statistical_dimension
from experiments.two_class import findings as two_class
from experiments.two_class.cells import READINGS

pytestmark = pytest.mark.usefixtures("few_draws")
FIGURES = Path(__file__).parents[2] / "figures"


# Table 1


@pytest.mark.parametrize("name", two_class.PAPER)
def test_the_papers_four_figures_of_a_set_agree_unless_one_cluster_reaches_them(name):
    measured = read_table(FIGURES / "two_class.csv").query("method == 'facts'").set_index("data_set")
    columns = {}
    for column, figure in zip(two_class.COLUMNS, two_class.PAPER[name], strict=True):
        found = within(figure - 0.02, figure + 0.02) if column in two_class.BASELINES else figure
        columns |= {column: [found], f"{column}, paper": figure}
    constant = measured.loc[name, "constant_error"]
    table = frame([name], **columns, **{"other readings": 0, "one cluster": constant})
    alone = two_class.reaches(constant, two_class.PAPER[name][0])
    assert two_class.figure_rule(name)(table) is (VACUOUS if alone else AGREES)


def test_the_papers_nine_rows_say_that_the_relaxation_beats_the_baselines_and_not_that_sparsity_helps():
    paper = pd.DataFrame.from_dict(two_class.PAPER, orient="index", columns=list(two_class.COLUMNS))
    records = {
        (reading, rival): two_class.gain_over(paper, rival) for reading in READINGS for rival in two_class.COLUMNS[1:]
    }
    table = pd.DataFrame.from_dict(records, orient="index")
    assert two_class.OVER_BASELINES(table) is AGREES
    assert two_class.SPARSITY(table) is AGREES  # better on four sets, worse on none
    gain = records["weights", "non-sparse"]["mean gain"]
    assert gain.low < 0 < gain.value
    high = int((paper["sparse"] > two_class.HIGH).sum())
    row = frame(**{"sets": len(paper), "high": high, "with better clusterings": high})
    assert two_class.HIGH_ERRORS(row) is AGREES


def test_no_gain_of_sparsity_in_the_committed_table_is_significant_as_its_page_says():
    gains = two_class.gains_of_sparsity(read_table(FIGURES / "two_class.csv"))
    assert all(gain.low < 0 for gain in gains.xs("non-sparse", level=1)["mean gain"])


# Laws


def streams(rank, error):
    """The rows of Figure 1 with transitions at given functions of d, a little noise on each replication."""
    rng, rows = np.random.default_rng(0), []
    for d in (10, 14, 20, 28, 40):
        for replication in range(6):
            wobble = np.exp(0.03 * rng.standard_normal())
            for n in np.geomspace(2, 4000, 90):
                one, right = (int(n >= wobble * law(float(d))) for law in (rank, error))
                rows.append({"d": d, "n": n, "replication": replication, "rank_one": one, "recovered": right})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("affine", "sparse"), [(lambda d: d**2, lambda d: d), (statistical_dimension, wendel)], ids=["the paper's", "ours"]
)
def test_transitions_at_d_squared_and_at_d_and_at_the_laws_agree(affine, sparse):
    plain = streams(affine, affine)
    panel = dict.fromkeys(PANELS, streams(sparse, sparse)) | {"affine": plain}
    laws = phase.laws(panel, plain)
    for rule in (phase.RANK_AFFINE, phase.RANK_SPARSE, phase.ERROR_AFFINE, phase.SAME_SCALING):
        assert rule(laws) is AGREES
    cubic = phase.laws(panel | {"affine": streams(lambda d: d**3 / 20, affine)}, plain)
    assert phase.RANK_AFFINE(cubic) is not AGREES


def searches(law):
    """The table of searches whose n is a function of l, d and the variance, a little noise on each replication."""
    rng = np.random.default_rng(0)
    cells = [cell for cell in load("sparse_noise").cells("full") if cell["method"] in WEIGHTS]
    table = pd.DataFrame([cell for cell in cells if cell["replication"] < 6 and cell["variance"] in (0.25, 1.0)])
    table = table[table["columns"] == "raw"]
    n = np.array([law(l, d, m) for l, d, m in zip(table["l"], table["d"], table["variance"], strict=True)], dtype=float)
    return table.assign(points=n * np.exp(0.03 * rng.standard_normal(len(table))), outside=0)


def verdicts_of(law):
    found = noise.boundaries_of(searches(law))
    return noise.ERROR_SPARSE(noise.growth_in_dimension(found)), noise.CONJECTURE(noise.growth_in_entries(found))


def test_numbers_of_points_of_order_l_d_agree_and_other_orders_are_told_from_it():
    assert verdicts_of(lambda l, d, m: 3.0 * l * d) == (AGREES, AGREES)
    assert verdicts_of(lambda l, d, m: l * d if m < 0.6 else d**2.5) == (PARTLY, PARTLY)
    assert verdicts_of(lambda l, d, m: 1.0 + dimension_bound(l, d))[0] is PARTLY
    assert verdicts_of(lambda l, d, m: 3.0 * l**2 * d) == (AGREES, DIFFERS)
    assert verdicts_of(lambda l, d, m: d**2.2) == (DIFFERS, DIFFERS)


# Costs, sizes and labels


def test_the_papers_orders_of_cost_and_its_sizes_and_labels_agree():
    assert times.COST(runtime.exponents(times.COST_ROWS, 1.0, 2.0)) is AGREES
    assert times.ITERATIONS(runtime.exponents(times.COUNT_ROWS, 1.0, 0.0, 0.0)) is AGREES
    assert times.BREAKDOWN(runtime.sizes(1000.0, 1000.0, 1000.0)) is AGREES
    assert LABELS(multi_label.labels(10)) is AGREES
