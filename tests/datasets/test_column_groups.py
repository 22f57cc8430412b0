"""Feature groups of a table: by category, by prefix, and from a file."""

import pytest

import diffrac_cvx as dc
from diffrac_cvx.datasets import column_groups

NAMES = ("age", "job_clerk", "job_other", "dose.low", "dose.high", "site_a")


def test_the_columns_of_one_column_of_categories_are_a_group(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("age,job,sex\n" + "".join(f"{20 + i % 7}.5,{'abc'[i % 3]},{'mf'[i % 2]}\n" for i in range(12)))
    table = dc.datasets.read_table(path, one_hot="all")
    assert table.names == ("age", "job=a", "job=b", "job=c", "sex=m")
    assert column_groups(table) == {"age": [0], "job": [1, 2, 3], "sex": [4]}
    reduced = dc.datasets.read_table(path, one_hot="all", top_variance=3)
    assert sorted(j for some in column_groups(reduced).values() for j in some) == [0, 1, 2]


def test_a_prefix_ends_at_the_first_mark_and_never_at_the_first_letter():
    assert column_groups(NAMES, "prefix") == {"age": [0], "job": [1, 2], "dose": [3, 4], "site": [5]}
    assert column_groups(NAMES, "prefix=.") == {
        "age": [0], "job_clerk": [1], "job_other": [2], "dose": [3, 4], "site_a": [5],
    }  # fmt: skip
    assert column_groups(["_a", "_b"], "prefix") == {"_a": [0], "_b": [1]}


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("head", ["", "\ufeffColumn{}group\n"])
def test_a_file_names_the_group_of_some_columns_and_the_others_stand_alone(tmp_path, mark, head):
    path = tmp_path / "groups.csv"
    lines = [f"{name}{mark}work" for name in ("job_clerk", "site_a")]
    path.write_text(head.format(mark) + "\n".join(lines) + "\n\n", encoding="utf-8")
    assert column_groups(NAMES, str(path)) == {
        "age": [0], "work": [1, 5], "job_other": [2], "dose.low": [3], "dose.high": [4],
    }  # fmt: skip
