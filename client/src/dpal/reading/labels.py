"""Labels in cells: one meaning for lists, numbers, truth values and texts, whatever file holds them."""

import ast
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from dpal.reading.cells import EMPTY, BadCell, check_storable, number_text
from dpal.reading.rows import NamesSeveral
from dpal.wording import as_message

NOT_A_CLASS = as_message("is not one of the project's classes")
NEITHER = as_message("is neither 0 nor 1")
SEVERAL = as_message("names several classes in one answer")
# Signs without a shape: byte order marks, zero-width spaces, soft hyphens, marks of direction. Joiners have a meaning.
INVISIBLE = dict.fromkeys(
    [0x00AD, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF]
)
Named = TypeVar("Named")
WHOLE = re.compile(r"([-+]?\d+)\.0*")
SIGNED = re.compile(r"\+(\d+(?:\.\d+)?)")
# Cells of a column that says whether a record has a class.
YES_OR_NO = dict.fromkeys(("1", "true", "yes", "x"), True) | dict.fromkeys(("", "0", "false", "no"), False)
# Cells remembered with their classes; further ones are looked up.
MOST_REMEMBERED = 4096


def canonical_name(name: str) -> str:
    """Return the one form in which a name is kept: NFC, single spaces, no invisible signs."""
    if name.isascii() and name.isprintable() and "  " not in name:
        return name.strip()
    return " ".join(unicodedata.normalize("NFC", name.translate(INVISIBLE)).split())


def class_key(name: str) -> str:
    """Return what tells two classes of a project apart: their one form, without case."""
    return unicodedata.normalize("NFC", canonical_name(name).casefold())


def split_line(line: str, names: Mapping[str, Named]) -> tuple[Named | None, str]:
    """Return what a line like ``class: words`` is about, by `class_key`, and its words; a name may hold colons."""
    ends = [place for place, sign in enumerate(line) if sign == ":"]
    for end in reversed(ends):
        if (found := names.get(class_key(line[:end]))) is not None:
            return found, line[end + 1 :].strip()
    return None, ""


def name_key(name: str) -> str:
    """Return what two spellings of a name have in common: case, `_` for a space, and the sign of +1 make no other."""
    folded = re.sub(r"[\s_]+", " ", class_key(name)).strip()
    whole = WHOLE.fullmatch(folded)
    folded = whole[1] if whole else folded
    signed = SIGNED.fullmatch(folded)
    return signed[1] if signed else folded


def label_text(value: Any) -> str:
    """Return a single label as text; empty where the cell holds none.

    Raises
    ------
    BadCell
        If the value is an object or a list, or holds broken characters.
    """
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        check_storable(value)
        return canonical_name(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return "" if math.isnan(value) else number_text(value)
    raise value if isinstance(value, BadCell) else BadCell(NOT_A_CLASS)


def listed_labels(cell: Any) -> list[str] | None:
    """Return the labels of a list, or of a text that is one as JSON or Python writes it; None for any other cell."""
    if isinstance(cell, str) and cell.lstrip().startswith("[") and cell.rstrip().endswith("]"):
        for read in (json.loads, ast.literal_eval):
            try:
                cell = read(cell.strip())
                break
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    if not isinstance(cell, list | tuple):
        return None
    return [text for text in map(label_text, cell) if text]


def labels_in(cell: Any, *, separator: str = "", known: "LabelNames | None" = None) -> list[str]:
    """Return the labels of a cell; `separator` splits a text that is not itself one of the `known`."""
    listed = listed_labels(cell) if not (known and isinstance(cell, str) and known.place(cell) is not None) else None
    if listed is not None:
        return listed
    text = label_text(cell)
    if separator and separator in text and (known is None or known.place(text) is None):
        return [part for part in map(canonical_name, text.split(separator)) if part]
    return [text] if text else []


def one_hot_labels(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> list[list[str] | BadCell]:
    """Return, for each row, the names of the columns that say yes, or why there is no telling."""
    said = [[YES_OR_NO.get(_plain(cell)) for cell in columns[name]] for name in names]
    return [
        BadCell(NEITHER) if None in row else [name for name, yes in zip(names, row, strict=True) if yes]
        for row in zip(*said, strict=True)
    ]


def _plain(cell: Any) -> str:
    try:
        return label_text(cell).casefold()
    except BadCell:
        return "?"


class LabelNames:
    """The classes of a project by every spelling that means one of them, and by none that could mean two."""

    def __init__(self, classes: Sequence[str], spelled: Mapping[str, str] | None = None) -> None:
        own = {name: place for place, name in enumerate(classes)}
        # The first of two that only differ in form goes before, as it always did.
        self._exact = {canonical_name(name): place for name, place in reversed(own.items())} | own
        given = {name: own[meant] for name, meant in (spelled or {}).items() if meant in own}
        self._exact |= {name: place for name, place in given.items() if name not in own}
        self._exact |= {canonical_name(name): place for name, place in given.items() if canonical_name(name) not in own}
        self._loose = unambiguous((name_key(name), place) for name, place in self._exact.items())
        self._known: dict[str, int] = {}

    def place(self, name: str) -> int | None:
        """Return the position of a class by a name in a file; None where it names none."""
        found = self._known.get(name)
        if found is None:
            found = self._exact.get(name)
            found = self._exact.get(canonical_name(name)) if found is None else found
            found = self._loose.get(name_key(name)) if found is None else found
            if found is not None and len(self._known) < MOST_REMEMBERED:
                self._known[name] = found
        return found

    def read(self, cell: Any) -> int:
        """Return the class of a cell that names one.

        Raises
        ------
        BadCell
            If it names none, several, or one that is not known.
        """
        if isinstance(cell, str) and (found := self.place(cell)) is not None and cell.strip():
            return found
        names = labels_in(cell)
        if not names:
            raise BadCell(EMPTY)
        places = {self._place(name) for name in names}
        if len(places) > 1:
            raise BadCell(SEVERAL)
        return places.pop()

    def read_set(self, cell: Any, sets: NamesSeveral, *, separator: str) -> int:
        """Return the number of the set of classes that a cell names.

        Raises
        ------
        BadCell
            If it names what is not known, too many, or none where one is needed.
        """
        names = labels_in(cell, separator=separator, known=self)
        unknown = [name for name in names if self.place(name) is None]
        if unknown:
            other = next((mark for mark in ",;|" if mark != separator and self._splits(unknown[0], mark)), "")
            if other:
                raise BadCell(
                    as_message(
                        "separates classes by {other!r}, not {separator!r}; choose the separator",
                        other=other,
                        separator=separator,
                    )
                )
            raise BadCell(NOT_A_CLASS)
        chosen = {self._place(name) for name in names}
        if not chosen and not sets.names_none:
            raise BadCell(EMPTY)
        if len(chosen) > sets.most_classes:
            raise BadCell(as_message("names more than {most} classes", most=sets.most_classes))
        return sets.stored(chosen)

    def _place(self, name: str) -> int:
        place = self.place(name)
        if place is None:
            raise BadCell(NOT_A_CLASS)
        return place

    def _splits(self, name: str, mark: str) -> bool:
        return mark in name and all(self.place(part) is not None for part in name.split(mark))


def unambiguous(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    several: set[str] = set()
    for key, place in pairs:
        if found.setdefault(key, place) != place:
            several.add(key)
    return {key: place for key, place in found.items() if key not in several}
