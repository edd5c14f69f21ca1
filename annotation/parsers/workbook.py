"""Excel workbooks (.xlsx), one sheet of them, row by row: values as they were last computed, nothing computed here.

References
----------
.. [1] ECMA-376, Office Open XML File Formats, part 1, section 18 (SpreadsheetML).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import BinaryIO, NamedTuple

from annotation.errors import InvalidUpload
from annotation.parsers.rows import BadRow, FirstRows, Layout, RawBatch
from annotation.parsers.sources import MAXIMUM_LINE_BYTES
from annotation.parsers.workbook_cells import (
    NOT_A_CELL,
    NumberShownAs,
    SharedTexts,
    Styles,
    shown_text,
    unescaped,
    whole,
)
from annotation.parsers.workbook_xml import BENT, DAMAGED, MOST_DEPTH, WorkbookParts, XmlPartReader
from annotation.tables.cells import BadCell
from privacy.wording import as_message

BATCH_ROWS = 4096
BATCH_CHARACTERS = 4 * 1024 * 1024
MOST_ROWS = 2**20
MOST_COLUMNS = 2**14
MOST_SHEETS = 10_000
MOST_MERGES = 100_000
PLACE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
FORMULA = as_message("holds a formula whose value is not stored; open the workbook in a spreadsheet and save it")
ERROR = as_message("holds the error of a formula")
MERGED = as_message("is merged with other cells; unmerge them and give each row its value")


class Cell(NamedTuple):
    """A cell as it stands in a sheet."""

    kind: str
    value: str
    style: int
    is_formula: bool


class WorkbookReader:
    """Read one sheet under the names in its first row that holds anything.

    Rows are named by their number in the sheet. With `look` only so many are read, and no more is unpacked than its
    bytes.
    """

    def __init__(self, file: BinaryIO, layout: Layout, *, maximum_bytes: int, look: FirstRows | None = None) -> None:
        self._layout = layout
        self._maximum_bytes = maximum_bytes
        self._look = look
        self._parts = WorkbookParts(file, maximum_bytes=maximum_bytes, most_bytes=look.most_bytes if look else None)
        description = next((path for kind, path in self._parts.relations("").values() if kind == "officeDocument"), "")
        book = _Book()
        book.read(self._parts.pieces(description))
        relations = self._parts.relations(description)
        sheets = [(name, relations.get(id_, ("", ""))[1], shows) for name, id_, shows in book.sheets]
        sheets = [sheet for sheet in sheets if _kind_of(relations, sheet[1]) == "worksheet"]
        self.sheets = tuple(name for name, _, _ in sheets)
        self.sheet, self._part = _chosen(sheets, layout.sheet)
        self._since_1904 = book.since_1904
        of_kind = dict(relations.values())
        named = (self._part, of_kind.get("sharedStrings", ""), of_kind.get("styles", ""))
        if sum(map(self._parts.size_of, named)) > maximum_bytes:
            raise InvalidUpload(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))
        self._texts = SharedTexts(self._parts.pieces(named[1]))
        styles = Styles()
        if named[2]:
            styles.read(self._parts.pieces(named[2]))
        self._styles = styles.shows()
        self._written = 0
        self._rows = self._all_rows()
        self.header = self._find_header()
        layout.require(self.header)

    def batches(self) -> Iterator[RawBatch]:
        """Yield the rows in order; once."""
        columns = {name: self.header.index(name) for name in self._layout.columns()}
        most = BATCH_ROWS if self._look is None else self._look.rows
        merges = self._merges(set(columns.values()))
        batch, held = RawBatch([], {name: [] for name in columns}), 0
        for number, row in self._rows:
            try:
                cells = [self._cell(number, name, row.get(place), merges[place]) for name, place in columns.items()]
            except _BadRowFound as found:
                batch.bad.append(found.row)
                cells = []
            else:
                batch.lines.append(number)
                for name, cell in zip(columns, cells, strict=True):
                    batch.columns[name].append(cell)
            # Each costs at least a byte and its line end, as when each is written out.
            size = sum(map(len, cells)) + 2 * len(columns)
            held += size
            self._written += size
            if self._written > self._maximum_bytes:
                raise InvalidUpload(
                    as_message("file: holds more than {most:,} bytes once unpacked", most=self._maximum_bytes)
                )
            if len(batch.lines) + len(batch.bad) >= most or held > BATCH_CHARACTERS:
                yield batch
                batch, held = RawBatch([], {name: [] for name in columns}), 0
        yield batch

    def _cell(self, number: int, name: str, cell: Cell | None, merged: "_Spans") -> str:
        if merged.holds(number):
            raise _BadRowFound(BadRow(number, name, MERGED))
        try:
            return self._text_of(cell)
        except BadCell as error:
            raise _BadRowFound(BadRow(number, name, str(error))) from None

    def _text_of(self, cell: Cell | None) -> str:
        """Return what a cell says, as a file of lines would."""
        if cell is None:
            return ""
        if not cell.value:
            if cell.is_formula and cell.kind != "str":
                raise BadCell(FORMULA)
            return ""
        if cell.kind == "s":
            return unescaped(self._texts.text(whole(cell.value)))
        if cell.kind in ("str", "inlineStr"):
            return unescaped(cell.value)
        if cell.kind == "b":
            return "TRUE" if cell.value == "1" else "FALSE"
        if cell.kind == "e":
            raise BadCell(ERROR)
        if cell.kind == "d":
            return cell.value
        if cell.kind != "n":
            raise BadCell(NOT_A_CELL)
        shown = self._styles[cell.style] if cell.style < len(self._styles) else NumberShownAs()
        return shown_text(cell.value, shown, since_1904=self._since_1904)

    def _all_rows(self) -> Iterator[tuple[int, dict[int, Cell]]]:
        """Yield the number and the cells, by column, of each row that holds anything."""
        sheet = _Sheet()
        for _ in sheet.steps(self._parts.pieces(self._part)):
            yield from sheet.rows
            sheet.rows.clear()

    def _find_header(self) -> list[str]:
        number, row = next(self._rows, (0, {}))
        if not row:
            raise InvalidUpload("file: holds no rows")
        self._header_row = number
        places = range(max(row) + 1)
        if not self._layout.has_header:
            self._header_row = 0
            self._rows = chain([(number, row)], self._rows)
            return list(self._layout.header) or [str(place + 1) for place in places]
        try:
            return [self._text_of(row.get(place)).strip() for place in places]
        except BadCell as error:
            raise InvalidUpload(as_message("file: line {line} {reason}", line=number, reason=error)) from None

    def _merges(self, wanted: set[int]) -> "dict[int, _Spans]":
        """Return which rows of these columns are merged with other cells; a sheet names them after all its rows."""
        spans: dict[int, list[tuple[int, int]]] = {place: [] for place in wanted}
        # A look that would unpack too much for it says nothing of merged cells.
        looks = self._look is None or self._parts.size_of(self._part) < self._look.most_bytes // 4
        if looks and self._parts.mentions(self._part, b"mergeCell"):
            found = _Merges()
            found.read(self._parts.pieces(self._part))
            for first_row, last_row, first_column, last_column in found.merged:
                for place in wanted:
                    if first_column <= place <= last_column:
                        spans[place].append((first_row, last_row))
        found_spans = {place: _Spans(rows) for place, rows in spans.items()}
        if self._header_row and any(rows.holds(self._header_row) for rows in found_spans.values()):
            raise InvalidUpload(as_message("file: line {line} {reason}", line=self._header_row, reason=MERGED))
        return found_spans


class _BadRowFound(Exception):
    def __init__(self, row: BadRow) -> None:
        super().__init__(row)
        self.row = row


class _Spans:
    """Rows from one to another, several times, asked for by number."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(spans):
            if self._lasts and first <= self._lasts[-1]:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def holds(self, row: int) -> bool:
        """Say whether a row is among them."""
        place = bisect_right(self._firsts, row) - 1
        return place >= 0 and row <= self._lasts[place]


class _Book(XmlPartReader):
    """The sheets of a workbook in their order, and from when on it counts days."""

    def __init__(self) -> None:
        super().__init__()
        self.sheets: list[tuple[str, str, bool]] = []
        self.since_1904 = False

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            if len(self.sheets) >= MOST_SHEETS:
                raise InvalidUpload(BENT)
            shows = attributes.get("state", "visible") == "visible"
            reference = next((value for key, value in attributes.items() if key.endswith(":id")), "")
            self.sheets.append((attributes.get("name", ""), reference, shows))
        elif name == "workbookPr":
            self.since_1904 = attributes.get("date1904") in ("1", "true")


class _Sheet(XmlPartReader):
    """The cells of a sheet; `rows` holds those that are whole and nobody has taken yet."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, dict[int, Cell]]] = []
        self._row = 0
        self._cells: dict[int, Cell] = {}
        self._column = -1
        self._kind = "n"
        self._style = 0
        self._is_formula = False
        self._row_length = 0
        self._within_reading = False

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """As of any part, with a call less for each of millions of elements."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise InvalidUpload(BENT)
        if ":" in name:
            name = name.rpartition(":")[2]
        if name == "c":
            place = attributes.get("r")
            self._column = self._column + 1 if place is None else _column_of(place)
            if self._column >= MOST_COLUMNS:
                raise InvalidUpload(BENT)
            self._kind, self._is_formula = attributes.get("t", "n"), False
            self.take_text()
            self._style = whole(attributes["s"]) if "s" in attributes else 0
        elif name == "row":
            number = whole(attributes["r"]) if "r" in attributes else self._row + 1
            if not self._row < number <= MOST_ROWS:
                raise InvalidUpload(BENT)
            self._row, self._cells, self._column, self._row_length = number, {}, -1, 0
        elif name in ("v", "t"):
            self.keep_text(not self._within_reading)
        elif name == "f":
            self._is_formula = True
        elif name == "rPh":
            self._within_reading = True

    def end_element(self, name: str) -> None:
        """As of any part, with a call less."""
        self._depth -= 1
        if ":" in name:
            name = name.rpartition(":")[2]
        if name in ("v", "t"):
            self.keep_text(False)
        elif name == "c":
            value = self.take_text()
            self._row_length += len(value)
            if self._row_length > MAXIMUM_LINE_BYTES:
                raise InvalidUpload(as_message("file: has a line longer than {most:,} bytes", most=MAXIMUM_LINE_BYTES))
            if value or self._is_formula:
                self._cells[self._column] = Cell(self._kind, value, self._style, self._is_formula)
        elif name == "row":
            if self._cells:
                self.rows.append((self._row, self._cells))
            self._cells = {}
        elif name == "rPh":
            self._within_reading = False


class _Merges(XmlPartReader):
    """The cells of a sheet that are merged: first and last row, first and last column."""

    def __init__(self) -> None:
        super().__init__()
        self.merged: list[tuple[int, int, int, int]] = []

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        if name != "mergeCell":
            return
        first, _, last = attributes.get("ref", "").partition(":")
        if len(self.merged) >= MOST_MERGES:
            raise InvalidUpload(as_message("file: has more than {most:,} merged cells; unmerge them", most=MOST_MERGES))
        last = last or first
        self.merged.append((_row_of(first), _row_of(last), _column_of(first), _column_of(last)))


def _kind_of(relations: dict[str, tuple[str, str]], path: str) -> str:
    """Return as what a part is referred to; empty where it is not."""
    return next((kind for kind, target in relations.values() if path and target == path), "")


def _chosen(sheets: list[tuple[str, str, bool]], wanted: str | None) -> tuple[str, str]:
    """Return name and part of the sheet that is wanted, or of the first that shows."""
    if wanted is not None:
        for name, part, _ in sheets:
            if name == wanted:
                return name, part
        raise InvalidUpload(as_message("sheet: the workbook has no sheet named {name!r}", name=wanted))
    showing = next(((name, part) for name, part, shows in sheets if shows), None)
    if showing is None:
        raise InvalidUpload("file: the workbook has no sheet with cells that shows")
    return showing


def _place(text: str) -> re.Match[str]:
    place = PLACE.fullmatch(text)
    if place is None:
        raise InvalidUpload(DAMAGED)
    return place


def _column_of(text: str) -> int:
    """Return the number, from 0, of the column of a place such as BC12."""
    return _column_called(_place(text)[1])


@lru_cache(maxsize=256)
def _column_called(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _row_of(text: str) -> int:
    return int(_place(text)[2])
