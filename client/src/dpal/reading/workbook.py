"""Excel workbooks (.xlsx): one sheet, row by row, with values as they were last computed."""

import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from typing import Any, BinaryIO

from dpal.errors import Unreadable
from dpal.reading.rows import Answer
from dpal.wording import as_message

BATCH_CHARACTERS = 4 * 1024 * 1024
DAMAGED = as_message("file: the workbook is damaged; save it as .xlsx")
MERGED = as_message("is a merged cell; unmerge it")


def read_workbook(
    file: BinaryIO,
    *,
    wanted: Sequence[str],
    sheet: str | None,
    header: Sequence[str] | None,
    maximum_bytes: int,
    batch_rows: int,
    skip_rows: int = 0,
) -> Iterator[Answer]:
    """Yield names of sheets and columns, then rows; a job of a limited process.

    `header` names the columns of a sheet that has no header; if it is empty they are called 1, 2, ...
    """
    # Here, so that the process that asks never loads it.
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum  # noqa: PLC0415

    try:
        if sum(entry.file_size for entry in zipfile.ZipFile(file).infolist()) > maximum_bytes:
            raise Unreadable(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))
        file.seek(0)
        book = CalamineWorkbook.from_filelike(file)
        sheets = [one for one in book.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
        names = [one.name for one in sheets]
        shown = [one.name for one in sheets if one.visible == SheetVisibleEnum.Visible]
        if sheet is not None and sheet not in names:
            raise Unreadable(as_message("sheet: the file has none named {name!r}", name=sheet))
        if sheet is None and not shown:
            raise Unreadable("file: the workbook has no visible sheet with cells")
        chosen = shown[0] if sheet is None else sheet
        cells = book.get_sheet_by_name(chosen)
        ranges = cells.merged_cell_ranges or []
        rows: Iterator[tuple[int, list[Any]]] = (
            (line, row) for line, row in enumerate(cells.iter_rows(), start=1) if any(one != "" for one in row)
        )
    except (CalamineError, OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        raise Unreadable(DAMAGED) from None
    line, first = next(islice(rows, skip_rows, None), (0, []))
    if not line:
        raise Unreadable("file: holds no rows")
    width = max(place for place, cell in enumerate(first, start=1) if cell != "")
    if header is None:
        columns = [cell_text(cell).strip() for cell in first[:width]]
    else:
        columns = list(header) or [str(place) for place in range(1, width + 1)]
        rows = chain([(line, first)], rows)
        line = 0
    yield {"sheets": names, "sheet": chosen, "header": columns}, b""
    places = {name: columns.index(name) for name in wanted}
    bottom_row = cells.end[0] + 1 if cells.end else 0
    merged = {name: bytearray(bottom_row + 1) for name in wanted}
    for (top, left), (bottom, right) in ranges:
        for name, place in places.items():
            if left <= place <= right:
                end = min(bottom + 2, len(merged[name]))
                merged[name][top + 1 : end] = b"\1" * max(0, end - top - 1)
    if any(marks[line] for marks in merged.values()):
        raise Unreadable(as_message("file: line {line} {reason}", line=line, reason=MERGED))
    yield from _batches(rows, places, merged, maximum_bytes=maximum_bytes, batch_rows=batch_rows)


def _batches(
    rows: Iterator[tuple[int, list[Any]]],
    places: dict[str, int],
    merged: dict[str, bytearray],
    *,
    maximum_bytes: int,
    batch_rows: int,
) -> Iterator[Answer]:
    lines: list[int] = []
    bad: list[tuple[int, str]] = []
    columns: dict[str, list[str]] = {name: [] for name in places}
    held = written = 0
    for line, row in rows:
        name = next((name for name, marks in merged.items() if marks[line]), None)
        if name is not None:
            bad.append((line, name))
        else:
            lines.append(line)
            for name, place in places.items():
                text = cell_text(row[place]) if place < len(row) else ""
                columns[name].append(text)
                # Each costs at least a byte and its line end, as when each is written out.
                held += len(text) + 2
        if len(lines) + len(bad) >= batch_rows or held > BATCH_CHARACTERS:
            written += held
            if written > maximum_bytes:
                raise Unreadable(as_message("file: holds more than {most:,} bytes once unpacked", most=maximum_bytes))
            yield {"lines": lines, "columns": columns, "merged": bad}, b""
            lines, bad, columns, held = [], [], {name: [] for name in places}, 0
    yield {"lines": lines, "columns": columns, "merged": bad}, b""


def cell_text(value: Any) -> str:
    """Return what a cell says, as a file of lines would: days and times by ISO 8601, whole numbers without a point."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return str(int(value)) if abs(value) < 2**53 and value == int(value) else repr(value)
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, date):
        return value.isoformat()
    assert isinstance(value, time)
    return value.isoformat(timespec="seconds")
