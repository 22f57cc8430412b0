"""Claims and findings on Table 1."""

from typing import NamedTuple

import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.claims import Claim, Finding, judge
from experiments.harness.intervals import Interval, mean_of
from experiments.two_class.cells import PUBLISHED_MOST, RELATIVE, SEARCHED, WIDER_READINGS
from experiments.two_class.chance import best_of_random
from experiments.two_class.readings import MAIN, READINGS
from experiments.two_class.table import (
    BASELINES,
    CHOICES,
    CLOSE_ERROR,
    PAPER,
    PROTOCOLS,
    RELAXED,
    SAME,
    Protocol,
    by_protocol,
    by_reading,
    distance_by_reading,
    expected_best,
    figures_met,
    is_same,
    reaches,
    runs_in,
    runs_of,
    settings,
    summary,
)

TITLE = "Table 1: two-class data"
ABOUT = (
    "Nine sets, the best setting of the paper's grid by the true labels, as in the paper. (a) At the optimum: columns of variance "
    "one, a and c the weights of Gamma (section 3 read literally; the paper does not state how its data were scaled). K-means on "
    "whitened data. Whiskers contain 95 % of the means of ten runs. (b) The sparse column at the optimum in each reading, (c) in the "
    "paper's protocol: labels that its algorithm returns, at its own stopping rule and before it. Grey bands: range that counts as "
    "the paper's figure. A mark below the axis: not solved, or no clustering found. [The tables](../figures/two_class.md) have the "
    "figures in both protocols, reference values, the other readings of scale and penalty, and settings chosen without labels."
)
ROUNDED = 0.005  # the paper's means have two decimal places
HIGH = 0.5  # smallest error that is called high
BY_CHANCE = 0.05  # smallest probability at which random partitions explain an error
LEAST_SETS = 4  # fewest sets for a statement about many sets
FIGURE_RULE = (
    "an error e means that a fraction (1 - sqrt(1 - e))/2 of the points is in the wrong cluster. A figure of the "
    f"relaxations equals the paper's if these fractions differ by at most {100 * SAME:g} % of the points; that of a "
    "baseline does if the paper's mean of ten runs is, up to rounding, within 95 % of the means of ten of our runs. "
    "Agrees if all four figures equal the paper's, the relaxed ones in the paper's protocol in one reading, the same "
    f"for all sets: the one of {len(PROTOCOLS)} that matches most of the figures. Partly if the sparse one equals the "
    "paper's there, or is equal or lower in any other reading of the protocol or of the optimum. Differs otherwise."
)


class Column(NamedTuple):
    """Comparison of a figure with the paper's ("same", "lower" or "higher"), and its text."""

    verdict: str
    words: str


def claims(table: pd.DataFrame) -> list[Claim | Finding]:
    """Return the claims on two-class data, set by set and as a whole, and further findings."""
    rows = summary(table).set_index("data_set")
    readings, protocols = by_reading(table), by_protocol(table)
    return [
        *(figures_of(name, rows, readings, protocols) for name in PAPER),
        sparsity_helps(table),
        high_errors(rows),
        papers_protocol(table),
        other_readings(table),
        against_random_splits(rows),
        *wider_search(table),
        constant_figures(rows),
        baselines(rows),
        unwhitened(rows),
        without_labels(rows),
        proved_gaps(rows),
    ]


def relaxed_column(row: pd.Series, column: str) -> Column:
    """Compare a column of the relaxations in the paper's protocol."""
    paper, ours = row[f"paper {column}"], row[f"protocol {column}"]
    verdict = "same" if is_same(ours, paper) else "lower" if ours < paper else "higher"
    return Column(
        verdict, f"{column} {ours:.3f} (paper {paper:.2f}: {verdict}; optimum, clusterings only, {row[column]:.3f})"
    )


def baseline_column(row: pd.Series, column: str) -> Column:
    """Compare a column of the baselines."""
    paper, low, high = row[f"paper {column}"], row[f"{column} low"], row[f"{column} high"]
    verdict = (
        "same" if low - ROUNDED <= paper.mean <= high + ROUNDED else "lower" if paper.mean > high else "higher"
    )  # fmt: skip
    return Column(
        verdict, f"{column} {row[column]}, means of ten {low:.2f} to {high:.2f} (paper {paper.mean:.2f}: {verdict})"
    )


def figures_of(name: str, rows: pd.DataFrame, readings: pd.DataFrame, protocols: pd.DataFrame) -> Claim:
    """The four figures of one data set, and the other readings that reach the sparse one."""
    statement = f"table1-{name}"
    if name not in rows.index:
        return Claim(statement, "the set is not in the table.", judge(False, tested=False), FIGURE_RULE)
    row, best = rows.loc[name], figures_met(protocols).index[0]
    columns = {column: relaxed_column(row, column) for column in RELAXED}
    columns |= {column: baseline_column(row, column) for column in BASELINES}
    words = "; ".join(column.words for column in columns.values())
    others = {f"optimum, '{reading}'": readings.loc[name, (reading, "sparse")] for reading in READINGS}
    others |= {p: protocols.loc[name, (p, "sparse")] for p in map(str, PROTOCOLS) if p != best}
    tried = {reading: error for reading, error in others.items() if pd.notna(error)}
    reached = [r for r, error in tried.items() if reaches(error, row["paper sparse"])]
    nothing = is_same(row["constant"], row["paper sparse"])
    return Claim(
        statement,
        f"{words}. Of {len(tried)} other readings {len(reached)} reach the sparse figure"
        + (f", among them {reached[0]}" if reached else "")
        + f". A constant label has error {row['constant']:.3f}.",
        judge(
            all(column.verdict == "same" for column in columns.values()),
            columns["sparse"].verdict == "same" or bool(reached),
        ),
        FIGURE_RULE,
        "The paper's figure equals that of a single cluster, so it does not assess the method." if nothing else "",
    )


def papers_protocol(table: pd.DataFrame) -> Finding:
    """Results of the paper's own stopping rule in each reading of the scale."""
    figures = by_protocol(table)
    met = figures_met(figures)
    ends: dict[str, list[str]] = {}
    for protocol in PROTOCOLS:
        ends.setdefault(protocol.end, []).append(f"{met[str(protocol)]} ({protocol.reading})")
    runs = pd.concat([runs_in(table, protocol) for protocol in PROTOCOLS if not protocol.early])
    stopped = runs["stopped"].astype(bool)
    return Finding(
        "Table 1, protocol of the paper",
        f"Algorithm 1 exactly as printed, labels of its last iterate at any objective value. Of {2 * len(figures)} "
        "relaxed figures, these are matched: "
        + "; ".join(f"{end}: {', '.join(counts)}" for end, counts in ends.items())
        + f". {figures_anywhere(figures)} are matched by one of the {len(PROTOCOLS)}, each with its own choice. {int(stopped.sum())} of "
        f"{len(runs)} runs met their rule, within at most {PUBLISHED_MOST} iterations; the median gap of the others is "
        f"{format_upper(runs.loc[~stopped, 'gap'].median())}, for values in [0, 1].",
        f"Most are matched by {' and '.join(met.index[met == met.iloc[0]])}; the verdicts are for the first. Labels "
        "are those of an iterate stopped by the iteration limit, or by an absolute gap that exceeds the value itself "
        "at small nu; such figures need not be properties of the relaxation.",
    )


def figures_anywhere(figures: pd.DataFrame) -> int:
    """Return the number of the paper's relaxed figures that some protocol matches."""
    return sum(
        any(is_same(figures.loc[name, (str(protocol), column)], paper) for protocol in PROTOCOLS)
        for name in figures.index
        for column, paper in zip(RELAXED, PAPER[str(name)][:2], strict=True)
    )


def at_equal_numbers(table: pd.DataFrame, protocol: Protocol | None = None) -> pd.DataFrame:
    """Return the expected best error of each method from equal numbers of settings or runs, one row per data set.

    At the optimum, this is the number of non-sparse settings that find a clustering; sets without one are excluded.
    In a protocol, all settings count.
    """
    records = {}
    for name in (name for name in PAPER if name in set(table["data_set"])):
        mine = table[table["data_set"] == name]
        tried = settings(mine) if protocol is None else runs_in(mine, protocol)
        if protocol is None:
            tried = tried[tried["split"]]
        sparse, dense = tried.loc[tried["c"] > 0, "error"], tried.loc[tried["c"] == 0, "error"]
        m = min(len(dense), len(sparse))
        if m:
            rivals = {"non-sparse": dense.to_numpy(), **{method: runs_of(mine, method) for method in BASELINES}}
            expected = {method: expected_best(errors, m) for method, errors in rivals.items()}
            records[name] = {"sparse": expected_best(sparse.to_numpy(), m), **expected}
    return pd.DataFrame.from_dict(records, orient="index", columns=["sparse", "non-sparse", *BASELINES])


def sparsity_helps(table: pd.DataFrame) -> Claim:
    """Sparse column compared with the others, each with the same number of choices by the labels, in both protocols."""
    most = figures_met(by_protocol(table)).index[0]
    protocol = next(protocol for protocol in PROTOCOLS if str(protocol) == most)
    both = {"optimum": at_equal_numbers(table), f"paper's protocol ({protocol})": at_equal_numbers(table, protocol)}
    ahead, words = [], []
    for title, best in both.items():
        rivals = [column for column in best.columns if column != "sparse"]
        gains: dict[str, Interval] = {r: mean_of((best[r] - best["sparse"]).to_numpy()) for r in rivals if len(best)}
        ahead += [gain.low > 0 for gain in gains.values()]
        words += [
            f"{title}: "
            + ", ".join(
                f"{gain:+.3f} against {rival} (lower on {(best['sparse'] < best[rival] - 1e-9).sum()} of {len(best)} sets)"
                for rival, gain in gains.items()
            )
        ]
    return Claim(
        "table1-sparsity",
        f"mean gain of the sparse settings, with its interval over the sets. {'; '.join(words)}.",
        judge(all(ahead), any(ahead), tested=min(map(len, both.values())) >= LEAST_SETS),
        "each method has its expected best error by the true labels, from the same number of settings or runs drawn at "
        "random: the number of non-sparse settings (the paper's columns are the best of 45, the best of 15, and "
        "means). Agrees if the interval of the mean gain, by the bootstrap over sets, is above 0 against all three "
        "rivals, both at the optimum among settings that find a clustering and in the paper's protocol with all "
        f"settings; partly if somewhere; differs otherwise; at least {LEAST_SETS} sets in both.",
    )


def high_errors(rows: pd.DataFrame) -> Claim:
    """Size of the errors, and whether the model's own criterion prefers other clusterings."""
    high = rows[rows["sparse"] > HIGH]
    other = high["found correlation"] > high["class correlation"]
    many = len(high) > len(rows) / 2
    return Claim(
        "table1-high",
        f"the sparse error is above {HIGH:g} on {len(high)} of {len(rows)} sets; on {other.sum()} of these, a "
        "clustering was found whose squared correlation exceeds that of the classes (mean "
        f"{high['found correlation'].mean():.2f} against {high['class correlation'].mean():.2f}).",
        judge(many and bool(other.all()), many, tested=len(rows) >= LEAST_SETS),
        f"agrees if the sparse error is above {HIGH:g} on more than half of the sets and on each of these, the labels "
        "found in some setting have a larger squared correlation with a direction, Eq. (2), than the classes: then the "
        "classes are not the clustering that optimises the model's criterion. Partly if only the first holds; differs "
        f"otherwise; at least {LEAST_SETS} sets.",
        "The classes need not be far from linear: least squares with known labels has a mean error of "
        f"{high['supervised'].mean():.2f} on these sets.",
    )


def other_readings(table: pd.DataFrame) -> Finding:
    """Reading closest to the paper's figures."""
    distance = distance_by_reading(table)
    compared = by_reading(table).dropna().index
    words = ", ".join(f"{100 * fraction:.1f} % ({reading})" for reading, fraction in distance.sort_values().items())
    return Finding(
        f"Table 1, {len(READINGS)} readings of the scale and of the penalties",
        f"Mean distance of the two relaxed columns from the paper's, in fractions of wrong points, on the {len(compared)} sets on "
        f"which every reading was solved and finds a clustering: {words}. The verdicts are for '{MAIN}', section 3 read literally.",
        "; ".join(f"'{name}': {how.words}" for name, how in READINGS.items()) + ".",
    )


def against_random_splits(rows: pd.DataFrame) -> Finding:
    """Figures that random partitions would reach."""
    known = rows[rows["chance probability"].notna()]
    words = ", ".join(f"{name} {row['chance probability']:.2g}" for name, row in known.iterrows())
    chance = known.index[known["chance probability"] > BY_CHANCE]
    return Finding(
        "Table 1, figures that random partitions reach",
        "Probability that the best of as many independent random partitions with the same cluster sizes reaches the sparse "
        f"column: {words}; it is above {BY_CHANCE:g} on " + (", ".join(map(str, chance)) or "none") + ".",
    )


def wider_search(table: pd.DataFrame) -> list[Finding]:
    """Number of settings needed to reach the paper's figure on Sonar."""
    tried = pd.concat([settings(table, reading, "search") for reading in WIDER_READINGS])
    if tried.empty:
        return []
    tried = tried[tried["split"]]
    facts = table[(table["data_set"] == SEARCHED) & (table["method"] == "facts")].iloc[0]
    best, each = tried.loc[tried["error"].idxmin()], tried.groupby("reading")["error"].min()
    sizes = (tried["size_of_smaller"] * facts["n"]).round().astype(int).tolist()
    chance = best_of_random(int(facts["n"]), int(facts["positive"]), sizes, float(best["error"]))
    return [
        Finding(
            f"Table 1, {SEARCHED}, a wider search",
            f"Sparse {PAPER[SEARCHED][0]:.2f} in the paper; the best of {len(tried)} settings that find a clustering is "
            f"{best['error']:.3f} ('{best['reading']}', a = {best['a']:g}, c = {best['c']:g}, nu = {best['nu']:g}); by reading "
            + ", ".join(f"{error:.3f} ({name})" for name, error in each.items())
            + f". The best of as many random partitions has an expected error of {chance.expected:.3f} and reaches "
            f"{best['error']:.3f} with probability {chance.probability:.2g}.",
        )
    ]


def constant_figures(rows: pd.DataFrame) -> Finding:
    """Sets on which the paper's figure equals that of a single cluster."""
    near = [
        f"{name} ({row['constant']:.3f} against {row['paper sparse']:.2f}; clusterings found {row['sparse']:.3f})"
        for name, row in rows.iterrows()
        if reaches(row["constant"], row["paper sparse"])
    ]
    return Finding(
        "Table 1, sparse figures that a single cluster reaches",
        f"A constant label matches or improves on the paper's sparse figure, up to {100 * SAME:g} % of the points, on "
        f"{len(near)} of {len(rows)} sets: {', '.join(near) or 'none'}.",
    )


def baselines(rows: pd.DataFrame) -> Finding:
    """Figures that do not depend on the reading."""
    same = {
        column: sum(baseline_column(row, column).verdict == "same" for _, row in rows.iterrows())
        for column in BASELINES
    }
    return Finding(
        "Table 1, figures that do not depend on scale or penalty",
        f"Of {len(rows)} means in the paper for each method, {same['alternating']} of alternating optimisation and {same['k-means']} "
        "of K-means on whitened data lie, up to rounding, within 95 % of the means of ten of our runs.",
    )


def unwhitened(rows: pd.DataFrame) -> Finding:
    """K-means without whitening."""
    lower = [name for name in rows.index if rows.loc[name, "k-means, not whitened"].mean < rows.loc[name, "sparse"]]
    return Finding(
        "Table 1, K-means on scaled, unwhitened columns",
        "Mean error (on whitened data): "
        + ", ".join(
            f"{name} {row['k-means, not whitened'].mean:.2f} ({row['k-means'].mean:.2f})"
            for name, row in rows.iterrows()
        )
        + f". Its mean, which uses no labels, is below the best sparse setting by labels on {len(lower)} of {len(rows)} sets"
        + (f": {', '.join(lower)}." if lower else "."),
    )


def without_labels(rows: pd.DataFrame) -> Finding:
    """Choices that use no labels."""
    words = [
        f"{choice} {((rows[choice] - rows['sparse']) < CLOSE_ERROR).sum()} times (mean error {rows[choice].mean():.3f})"
        for choice in CHOICES
    ]
    return Finding(
        "Table 1, settings chosen without labels",
        f"Within {CLOSE_ERROR:g} of the best sparse error by labels, of {len(rows)} sets: {', '.join(words)}; the mean "
        f"error of the best by labels is {rows['sparse'].mean():.3f}.",
    )


def proved_gaps(rows: pd.DataFrame) -> Finding:
    """Certified gaps, and the settings that find no clustering."""
    total = int(rows["settings"].sum())
    open_ones = rows[rows["not solved"] > 0]
    where = ", ".join(f"{name} {row['not solved']}" for name, row in open_ones.iterrows())
    return Finding(
        "Table 1, accuracy of the relaxations' solutions",
        f"In the main reading {total - int(rows['not solved'].sum())} of {total} settings have a certified gap of at "
        f"most {RELATIVE:g} of the value; the others: {where or 'none'}. The largest gap is "
        f"{format_upper(rows['largest gap'].max())}, for values in [0, 1]. {int(rows['trivial'].sum())} settings are "
        f"trivial (value nu), {int(rows['one cluster'].sum())} others put all but 1 % of the points in one cluster.",
    )
