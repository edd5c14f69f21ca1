"""Records from files, in batches, and predictions beside them into another: CSV, JSONL, Parquet, lines of text."""

import csv
import gzip
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from dpal.errors import DpalError, NotFitting, install

FORMATS = ("csv", "tsv", "jsonl", "parquet", "lines")
SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl", ".txt": "lines"}
COMPRESSED = ".gz"
STANDARD = "-"
DELIMITERS = ",;\t|"
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
    found = SUFFIXES.get(Path(name.lower().removesuffix(COMPRESSED)).suffix)
    if found is None:
        raise DpalError(f"{name} may hold anything: say what with --format, one of {', '.join(FORMATS)}.")
    return found


@contextmanager
def opened(name: str, kind: str, size: int) -> Iterator[tuple[list[str] | None, Iterator[list[Row]]]]:
    """Give the columns of a file, where its head names them, and its rows in batches; ``-`` is standard input."""
    if kind == "parquet":
        if name == STANDARD:
            raise DpalError("Parquet is read from a file: name one.")
        with _sentence_of_parquet(name), _arrow().ParquetFile(name) as parquet:
            batches = parquet.iter_batches(batch_size=size)
            yield list(parquet.schema_arrow.names), (batch.to_pylist() for batch in batches)
        return
    with _source(name) as file:
        columns, rows = None, (_json_rows if kind == "jsonl" else _line_rows)(file, name)
        if kind in ("csv", "tsv"):
            columns, rows = _table(file, name, "\t" if kind == "tsv" else None)
        yield columns, iter(lambda: list(islice(rows, size)), [])


def _table(file: IO[str], name: str, delimiter: str | None) -> tuple[list[str], Iterator[Row]]:
    first = file.readline()
    # The separator that the first line has most often.
    delimiter = delimiter or max(DELIMITERS, key=first.count)
    reader = csv.reader(chain([first], file), delimiter=delimiter, strict=True)
    columns = next(reader, [])
    if not first.strip() or len(set(columns)) != len(columns):
        raise NotFitting(f"The first line of {name} must name its columns, each once.")

    def rows() -> Iterator[Row]:
        try:
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(columns):
                    raise NotFitting(f"Line {reader.line_num} of {name} has {len(cells)} cells, not {len(columns)}.")
                yield dict(zip(columns, cells, strict=True))
        except csv.Error as error:
            raise NotFitting(f"Line {reader.line_num} of {name} is no CSV: {error}.") from error

    return columns, rows()


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
        opening = gzip.open if name.lower().endswith(COMPRESSED) else open
        with opening(name, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise NotFitting(f"{name} is not written in UTF-8.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise NotFitting(f"{name} is not a whole gzip file.") from error
    except OSError as error:
        raise DpalError(f"{name} cannot be read: {error.strerror}.") from error


def column_of_texts(row: Collection[str], wanted: str | None) -> str:
    name = wanted or (TEXT if TEXT in row or len(row) != 1 else next(iter(row)))
    if name not in row:
        raise NotFitting(f"There is no column {name}, only {', '.join(row)}: name the texts with --text-column.")
    return name


@contextmanager
def written(name: str, kind: str, columns: Sequence[str] | None) -> Iterator[Write]:
    """Give a function that adds rows to a new file, which appears once all are there; ``-`` is standard output."""
    if name == STANDARD:
        if kind == "parquet":
            raise DpalError("Parquet is written into a file: name one with --output.")
        yield _writer(sys.stdout, kind, columns)
        sys.stdout.flush()
        return
    target = Path(name)
    try:
        number, partial = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    except OSError as error:
        raise DpalError(f"{name} cannot be written: {error.strerror}.") from error
    os.close(number)
    try:
        with (_parquet_writer if kind == "parquet" else _text_writer)(partial, kind, columns) as write:
            yield write
        umask = os.umask(0)
        os.umask(umask)
        Path(partial).chmod(0o666 & ~umask)
        Path(partial).replace(target)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


@contextmanager
def _text_writer(name: str, kind: str, columns: Sequence[str] | None) -> Iterator[Write]:
    opening = gzip.open if name.lower().endswith(COMPRESSED) else open
    with opening(name, "wt", encoding="utf-8", newline="") as file:
        yield _writer(file, kind, columns)


def _writer(file: IO[str], kind: str, columns: Sequence[str] | None) -> Write:
    table: Any = None

    def begin(names: Sequence[str]) -> None:
        nonlocal table
        table = csv.DictWriter(file, names, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n")
        table.writeheader()

    if columns and kind in ("csv", "tsv"):
        begin(columns)

    def write(rows: Sequence[Row]) -> None:
        if kind in ("csv", "tsv"):
            if table is None:
                begin(list(rows[0]))
            # Several classes stand in one cell as the JSON of their names.
            table.writerows({name: _in_one_cell(value) for name, value in row.items()} for row in rows)
        elif kind == "jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        else:
            file.writelines(f"{_in_one_cell(row['predicted'])}\n" for row in rows)

    return write


def _in_one_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


@contextmanager
def _sentence_of_parquet(name: str) -> Iterator[None]:
    try:
        yield
    except NotFitting:
        raise
    except (OSError, ValueError) as error:
        raise NotFitting(f"{name} cannot be read as Parquet.") from error


@contextmanager
def _parquet_writer(name: str, kind: str, columns: Sequence[str] | None) -> Iterator[Write]:
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
        if not opened:
            arrow.write_table(pa.table({column: pa.array([], pa.string()) for column in columns or ()}), name)
    finally:
        for one in opened:
            one.close()


def _arrow() -> Any:
    try:
        import pyarrow.parquet as found  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise DpalError(f"Parquet needs another package: {install('parquet')}") from error
    return found
