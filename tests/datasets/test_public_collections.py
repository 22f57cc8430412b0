"""All CSV files of public collections that are installed: none crashes, and the numbers are those of pandas."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app.cli.options import parse_lines
from diffrac_cvx.datasets.tables import read_table


def read_with_remedies(path):
    """Return the table read after at most four remedies of errors, or the last error."""
    options = {"missing": "mean"}
    for _ in range(5):
        try:
            return read_table(path, **options), options
        except dc.DataError as error:
            found = error
        for value, parameter in found.columns:
            many = parameter in ("drop", "na_values")
            parse = {"header": "yes".__eq__, "skip_rows": parse_lines, "skip_footer": int}.get(parameter, str)
            options[parameter] = (*options.get(parameter, ()), value) if many else parse(value)
    return found, options


@pytest.mark.slow
@pytest.mark.parametrize("collection", ["statsmodels", "vega_datasets"])
def test_the_files_of_a_collection_have_the_numbers_that_pandas_reads(collection):
    if find_spec(collection) is None:
        pytest.skip(f"{collection} is not installed")
    folder = Path(find_spec(collection).submodule_search_locations[0])
    files = sorted(path for path in folder.rglob("*.csv") if "tests" not in path.parts)
    n_read = 0
    for path in files:
        table, options = read_with_remedies(path)
        if isinstance(table, dc.DataError) or {"skip_rows", "skip_footer"} & set(options):
            continue
        if any("lines above" in note for note in table.notes):  # which pandas would read
            continue
        has_header = not any("was read as data" in note for note in table.notes)
        how = {"header": 0 if has_header else None, "encoding_errors": "replace", "skipinitialspace": True}
        for separator in (",", "\t", ";", r"\s+"):
            frame = pd.read_csv(path, **how, sep=separator, on_bad_lines="skip")
            frame.columns = [str(name).strip() if has_header else f"x{name + 1}" for name in frame.columns]
            if set(table.names) <= set(frame.columns):
                break
        for name in table.names:
            expected = pd.to_numeric(frame[name], errors="coerce").to_numpy(float)[table.rows]
            known = ~np.isnan(expected)
            np.testing.assert_array_equal(table.X[known, table.names.index(name)], expected[known], err_msg=str(path))
        n_read += 1
    assert n_read >= 0.9 * len(files)
