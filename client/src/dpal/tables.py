"""Records from files, in batches, and predictions beside them into another: CSV, JSONL, Parquet, lines of text."""

import csv
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from dpal.errors import DpalError, NotFitting, install

FORMATS = ("csv", "jsonl", "parquet", "lines")
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".txt": "lines"}
STANDARD = "-"
# The column of a text in a file of lines.
TEXT = "text"
Row = dict[str, Any]
Write = Callable[[Sequence[Row]], None]


def format_of(name: str, given: str | None) -> str:
    """Return the format that was named, or that the end of a file's name tells; standard input holds lines."""
    if given:
        return given
    if name == STANDARD:
        return "lines"
    found = SUFFIXES.get(Path(name).suffix.lower())
    if found is None:
        raise DpalError(f"{name} may hold anything: say what with --format, one of {', '.join(FORMATS)}.")
    return found


def read_batches(name: str, kind: str, size: int) -> Iterator[list[Row]]:
    """Yield the rows of a file, or of standard input under the name ``-``, so many at a time."""
    if kind == "parquet":
        if name == STANDARD:
            raise DpalError("Parquet is read from a file: name one.")
        yield from _parquet_batches(name, size)
        return
    with _source(name) as file:
        rows = {"csv": _csv_rows, "jsonl": _json_rows, "lines": _line_rows}[kind](file, name)
        while batch := list(islice(rows, size)):
            yield batch


def _csv_rows(file: IO[str], name: str) -> Iterator[Row]:
    reader = csv.DictReader(file, strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise NotFitting(f"Line {reader.line_num} of {name} has more or fewer cells than the first.")
            yield dict(row)
    except csv.Error as error:
        raise NotFitting(f"After line {reader.line_num} of {name} comes no CSV: {error}.") from error


def _json_rows(file: IO[str], name: str) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise NotFitting(f"Line {number} of {name} is no JSON.") from error
        if isinstance(row, str):
            row = {TEXT: row}
        if not isinstance(row, dict):
            raise NotFitting(f"Line {number} of {name} is neither an object nor a text.")
        yield row


def _line_rows(file: IO[str], name: str) -> Iterator[Row]:
    for line in file:
        yield {TEXT: line.rstrip("\r\n")}


@contextmanager
def _source(name: str) -> Iterator[IO[str]]:
    if name == STANDARD:
        yield sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise NotFitting(f"{name} is not written in UTF-8.") from error
    except OSError as error:
        raise DpalError(f"{name} cannot be read: {error.strerror}.") from error


def column_of_texts(row: Mapping[str, Any], wanted: str | None) -> str:
    name = wanted or (TEXT if TEXT in row or len(row) != 1 else next(iter(row)))
    if name not in row:
        raise NotFitting(f"There is no column {name}, only {', '.join(row)}: name the texts with --text-column.")
    return name


@contextmanager
def written(name: str, kind: str) -> Iterator[Write]:
    """Give a function that adds rows to a new file, which appears once all are there; ``-`` is standard output."""
    if name == STANDARD:
        if kind == "parquet":
            raise DpalError("Parquet is written into a file: name one with --output.")
        yield _writer(sys.stdout, kind)
        sys.stdout.flush()
        return
    target = Path(name)
    try:
        number, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise DpalError(f"{name} cannot be written: {error.strerror}.") from error
    os.close(number)
    try:
        with _parquet_writer(partial) if kind == "parquet" else _text_writer(partial, kind) as write:
            yield write
        umask = os.umask(0)
        os.umask(umask)
        Path(partial).chmod(0o666 & ~umask)
        Path(partial).replace(target)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


@contextmanager
def _text_writer(name: str, kind: str) -> Iterator[Write]:
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        yield _writer(file, kind)


def _writer(file: IO[str], kind: str) -> Write:
    begun = False

    def write(rows: Sequence[Row]) -> None:
        nonlocal begun
        if kind == "csv":
            table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            if not begun:
                table.writeheader()
            # Several classes stand in one cell as the JSON of their names.
            table.writerows({name: _in_one_cell(value) for name, value in row.items()} for row in rows)
        elif kind == "jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        else:
            file.writelines(f"{_in_one_cell(row['predicted'])}\n" for row in rows)
        begun = True

    return write


def _in_one_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def _parquet_batches(name: str, size: int) -> Iterator[list[Row]]:
    arrow = _arrow()
    try:
        with arrow.ParquetFile(name) as file:
            for batch in file.iter_batches(batch_size=size):
                yield batch.to_pylist()
    except (OSError, ValueError) as error:
        raise NotFitting(f"{name} cannot be read as Parquet.") from error


@contextmanager
def _parquet_writer(name: str) -> Iterator[Write]:
    arrow = _arrow()
    import pyarrow as pa  # noqa: PLC0415 - an extra

    opened: list[Any] = []

    def write(rows: Sequence[Row]) -> None:
        batch = pa.Table.from_pylist(list(rows), schema=opened[0].schema if opened else None)
        if not opened:
            opened.append(arrow.ParquetWriter(name, batch.schema))
        opened[0].write_table(batch)

    try:
        yield write
    finally:
        for one in opened:
            one.close()


def _arrow() -> Any:
    try:
        import pyarrow.parquet as found  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise DpalError(f"Parquet needs another package: {install('parquet')}") from error
    return found
