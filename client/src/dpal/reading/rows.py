"""Layouts that readers are asked for, and rows that they hand over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpal.errors import Unreadable
from dpal.wording import as_message, as_plural_message, message_of

UploadKind = Literal["text", "table", "image"]
AnswersKept = Literal["majority", "ground_truth"]
TextKind = Literal["delimited", "lines", "tasks", "marked"]
# What a job that reads a file hands over: what can be written as JSON, and bytes.
Answer = tuple[dict[str, Any], bytes]


class NamesSeveral(Protocol):
    """Sets of classes as answers: how many one names, and the number that stands for one."""

    @property
    def most_classes(self) -> int: ...

    @property
    def names_none(self) -> bool: ...

    def places(self, choice: int) -> tuple[int, ...]: ...

    def stored(self, places: Iterable[int]) -> int: ...


# What a page can offer to choose from, and a row can have in memory.
MOST_COLUMNS = 2_000


def refuse_wide(columns: int, *, most: int = MOST_COLUMNS) -> None:
    if columns > most:
        raise Unreadable(
            as_message("file: has {columns:,} columns, and at most {most:,} are read", columns=columns, most=most)
        )


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Limits of a look at a file's first rows."""

    rows: int
    most_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns that a project takes from a file, by their names there, and how the file is written.

    Parameters
    ----------
    pixels : str, optional
        A list column; without it the columns pixel_0, pixel_1, ... are read.
    declared : tuple of mapping
        Columns of a table: `name` with `low` and `high`, or with `categories` and perhaps `other`; `missing` if it may
        be empty. `sources` has those that the file calls otherwise.
    header : tuple of str
        Names of all columns of a delimited file without a header; if empty they are called 1, 2, ...
    decimal : str
        Sign between whole and fraction of a number in a text: a point, or a comma with points between thousands.
    missing : tuple of str
        Texts that say that a value of a table is missing.
    skip_rows : int
        Rows of a table before the one that names its columns.
    ragged_rows : bool
        Whether short rows of a delimited file end in empty cells and further cells of long ones are left out.
    delimiter, encoding, sheet : str, optional
        None finds the delimiter, takes the mark's word or UTF-8, and the first sheet that shows.
    owner_id, metadata
        Columns that are kept as they are for people to read; nothing is learned from them.
    annotator : str, optional
        Take the answers of this person alone: an address or a number, as the export names them.
    sets : NamesSeveral, optional
        Where a label is a set of classes: how many it may hold.
    spans : bool
        Whether a label is a list of spans of the text, each with start, end and one of the classes.
    spelled : mapping
        Other spellings of classes in the file, with the class that each stands for.
    one_hot : tuple of str
        Columns called like the classes that say of each whether a record has it; together they are the column `label`.
    separator : str
        Stands between several classes in one cell.
    pictures : bool
        Whether a picture to look at is kept of each image that its values do not show as it is.
    """

    kind: UploadKind
    text: str | None = None
    contributor: str | None = None
    label: str | None = None
    pixels: str | None = None
    contributor_required: bool = False
    classes: tuple[str, ...] = ()
    declared: tuple[Mapping[str, Any], ...] = ()
    height: int = 0
    width: int = 0
    colour: bool = False
    has_header: bool = True
    skip_rows: int = 0
    ragged_rows: bool = False
    decimal: str = "."
    missing: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    delimiter: str | None = None
    quoting: bool = True
    encoding: str | None = None
    sheet: str | None = None
    owner_id: str | None = None
    metadata: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    answers: AnswersKept = "majority"
    annotator: str | None = None
    sets: NamesSeveral | None = None
    spans: bool = False
    spelled: Mapping[str, str] = field(default_factory=dict)
    one_hot: tuple[str, ...] = ()
    separator: str = "|"
    pictures: bool = False

    @property
    def image_shape(self) -> tuple[int, ...]:
        return (self.height, self.width, 3) if self.colour else (self.height, self.width)

    def source_of(self, declared: str) -> str:
        return self.sources.get(declared, declared)

    def columns(self) -> tuple[str, ...]:
        """Names of every column that is read; all others stay in the file."""
        features = [self.source_of(column["name"]) for column in self.declared]
        label = None if self.one_hot else self.label
        named = [self.text, self.contributor, label, *self.one_hot, *features, self.owner_id, *self.metadata]
        if self.kind == "image":
            named += [self.pixels] if self.pixels else [f"pixel_{i}" for i in range(prod(self.image_shape))]
        return tuple(dict.fromkeys(name for name in named if name))

    def require(self, present: Sequence[str]) -> None:
        """Refuse a file that lacks a column, has one twice, or has too many; its first line is not repeated."""
        refuse_wide(len(present), most=max(MOST_COLUMNS, 2 * len(self.columns())))
        for name in self.columns():
            if name not in present:
                raise Unreadable(
                    as_message("{role}: the file has no column named {name!r}", role=self._role_of(name), name=name)
                )
            if list(present).count(name) > 1:
                raise Unreadable(
                    as_message(
                        "{role}: the file has more than one column named {name!r}",
                        role=self._role_of(name),
                        name=name,
                    )
                )

    @property
    def optional(self) -> set[str]:
        needed = {
            self.text,
            self.label,
            *self.one_hot,
            self.pixels,
            *(self.source_of(column["name"]) for column in self.declared),
        }
        return {name for name in (self.contributor, self.owner_id, *self.metadata) if name} - needed

    def _role_of(self, name: str) -> str:
        kept = dict.fromkeys(self.metadata, "metadata") | dict.fromkeys(self.one_hot, "one_hot") | {self.owner_id: "id"}
        roles = kept | {self.text: "text", self.contributor: "contributor", self.label: "label", self.pixels: "pixels"}
        return roles.get(name, "columns")


@dataclass(frozen=True, slots=True)
class BadRow:
    """Place of an unreadable row (line, Parquet row or image, from 1) and the reason, without its content."""

    line: int
    column: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", message_of(self.reason))


BAD_ROWS_KEPT = 1000


@dataclass(slots=True)
class BadRowReport:
    count: int = 0
    kept: list[BadRow] = field(default_factory=list)
    cut_spans: int = 0

    def add(self, rows: list[BadRow], *, count: int | None = None) -> None:
        self.count += len(rows) if count is None else count
        self.kept += rows[: BAD_ROWS_KEPT - len(self.kept)]

    def sentence(self) -> str:
        first = self.kept[0]
        at = {"n": self.count, "line": first.line, "column": first.column, "reason": first.reason}
        if first.column:
            return as_plural_message(
                "{n} bad row; it is line {line}, column {column}: {reason}",
                "{n:,} bad rows; the first is line {line}, column {column}: {reason}",
                **at,
            )
        return as_plural_message(
            "{n} bad row; it is line {line}: {reason}", "{n:,} bad rows; the first is line {line}: {reason}", **at
        )


@dataclass(slots=True)
class RawBatch:
    """Cells as they stand in the file, column by column, all lists of one length, with the line each row began on."""

    lines: list[int]
    columns: dict[str, list[Any]]
    bad: list[BadRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KeptPicture:
    """A picture to show beside the values that are learned from: WebP of bounded sides and length, without metadata."""

    width: int
    height: int
    content: bytes


@dataclass(slots=True)
class RowBatch:
    """Rows that passed every check; lists of length `count`, None where the project takes no such column."""

    count: int
    texts: list[str] | None = None
    payloads: list[dict[str, Any]] | None = None
    contributors: list[str | None] | None = None
    labels: list[int] | None = None
    pixels: NDArray[np.uint8] | None = None
    metadata: list[dict[str, Any]] | None = None
    bad: list[BadRow] = field(default_factory=list)
    pictures: Sequence[KeptPicture | None] | None = None
    # Spans beyond the words that are labelled, which are left out.
    cut_spans: int = 0
