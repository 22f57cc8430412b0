"""A new table read as an earlier one was: its columns found by name, with the categories and the means of the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.columns import category_texts, list_texts, made_of, places_of, split_numbers, tell_row
from diffrac_cvx.datasets.tables import MISSING, Table, missing_error, read_frame
from diffrac_cvx.datasets.text_tables import Reading
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, one_of

if TYPE_CHECKING:
    import pandas as pd

READING = (
    "header",
    "separator",
    "decimal",
    "encoding",
    "sheet",
    "transpose",
)  # of `how`, what a new file is read with too
ASIDE = ("label", "drop", "aside")  # of `how`, the columns that are no features


@dataclass(frozen=True, eq=False)
class Form:
    """What a table has to have so that features can be taken from it as from an earlier one.

    Attributes
    ----------
    names : tuple of str
        Names of the features, in order.
    means : (d,) array or None
        Their means in the earlier table, for missing values.
    categories, how
        As in `Table`.
    """

    names: tuple[str, ...]
    means: Array | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> "Form":
        """Return the form of a table."""
        return cls(table.names, table.X.mean(axis=0), table.categories, table.how)

    @property
    def made(self) -> dict[str, str]:
        """The columns of categories, by the features that they became."""
        return made_of(self.categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table has to have."""
        made = self.made
        return tuple(dict.fromkeys(made.get(name, name) for name in self.names))


def read_alike(source: str | Path, form: Form, *, missing: str | None = None, **reading: Any) -> Table:
    """Read the features of a new table, of one row or more, as those of an earlier one.

    Parameters
    ----------
    source : str or Path
        A file, as for `read_table`.
    form : Form
        Of the earlier table.
    missing : {"error", "drop", "mean"}, optional
        What to do about missing values and about categories that the earlier table did not have: raise an error, drop
        the rows, or take the earlier table's mean of the feature; by default what was done there.
    **reading
        ``header``, ``separator``, ``decimal``, ``encoding`` and ``sheet`` of `read_table`; what is None is as it was
        given for the earlier table.

    Raises
    ------
    DataError, ParameterError
        If the file cannot be read, or a column is missing or holds something else than there.
    """
    missing = one_of(missing or form.how.get("missing", "error"), "missing", MISSING)
    if missing == "mean" and form.means is None:
        raise DataError("the means of the features are not known here: drop rows with missing values")
    how: dict[str, Any] = {key: form.how.get(key) if reading.get(key) is None else reading[key] for key in READING}
    how["transpose"] = bool(how["transpose"])
    frame = read_frame(source, str(source), Reading(**how))
    notes = [*frame.attrs.get("notes", ()), *columns_left_out(frame, form)]
    X, unseen = features_of(frame, form, frame.attrs.get("decimal", "."))
    if unseen and missing == "error":
        raise DataError(f"{'; '.join(unseen)}: correct these rows, or treat them as missing", remedies=("missing",))
    notes += [f"{text}: taken as missing" for text in unseen]
    lacking = np.isnan(X)
    if missing == "error" and lacking.any():
        raise missing_error(lacking, np.zeros(len(X), dtype=bool), form.names)
    keep = ~lacking.any(axis=1) if missing == "drop" else np.ones(len(X), dtype=bool)
    if not keep.all():
        notes.append(f"dropped for missing values: {int((~keep).sum())} of {len(X)} rows")
    elif lacking.any():
        X = np.where(lacking, np.asarray(form.means), X)
        notes.append(f"missing values replaced by the means of the earlier table: {int(lacking.sum())}")
    if not keep.any():
        raise DataError(f"none of the {len(X)} rows is left")
    points = frame.attrs.get("points")
    named = None if points is None else np.array(points)[keep]
    X = np.ascontiguousarray(X[keep])
    return Table(X, form.names, None, (), np.flatnonzero(keep), tuple(notes), points=named)


def columns_left_out(frame: "pd.DataFrame", form: Form) -> Iterator[str]:
    """Yield a note about columns that the earlier table did not have; raise where some that it had are missing."""
    names, columns = list(map(str, frame.columns)), form.columns
    absent = [name for name in columns if name not in names]
    if absent:
        folded = {name.casefold(): name for name in names}
        near = [(name, folded[close]) for name in absent for close in get_close_matches(name.casefold(), folded, n=1)]
        meant = list_texts(f"{close!r} for {name!r}" for name, close in near)
        what = f"there is no column {list_texts(map(repr, absent))}"
        raise DataError(f"{what}; {f'did you mean {meant}? ' if near else ''}the columns are {list_texts(names)}")
    twice = next((name for name in columns if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"two columns are called {twice!r}; give each a name of its own")
    given = [form.how.get(key) or () for key in ASIDE]
    aside = {name for one in given for name in ([one] if isinstance(one, str) else one)}
    others = [name for name in names if name not in {*columns, *aside}]
    if others:
        yield f"not used, for the earlier table had no such column: {list_texts(map(repr, others))}"


def features_of(frame: "pd.DataFrame", form: Form, decimal: str) -> tuple[Array, list[str]]:
    """Return the features, NaN where a value is missing or a category is unknown; and these categories, in words."""
    found: dict[str, Array] = {}
    unseen = []
    for name in form.columns:
        if name in form.categories:
            every = form.categories[name]
            texts, _ = category_texts(frame[name])
            unknown = sorted({*texts} - {*every, ""})
            if unknown:
                row = next(i for i, text in enumerate(texts) if text in unknown)
                held = f"the earlier table held {list_texts(map(repr, every))}"
                unseen.append(f"column {name!r} holds {list_texts(map(repr, unknown))} in {tell_row(row)}, and {held}")
            part = places_of(["" if text in unknown else text for text in texts], every)
            found |= {f"{name}={value}": column for value, column in zip(part.values, part.columns().T, strict=True)}
            continue
        numbers, text = split_numbers(frame[name], decimal)
        wrong = np.flatnonzero(text | np.isinf(numbers))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"column {name!r} holds {str(frame[name].iloc[row])!r} in {tell_row(row)}, and the earlier table held "
                "finite numbers: correct it, or leave it empty"
            )
        found[name] = numbers
    return np.column_stack([found[name] for name in form.names]), unseen
