"""Records from files, in batches, and predictions beside them into another: CSV, JSONL, Parquet, lines of text."""

import csv
import gzip
import json
import os
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

from dpal.errors import DpalError, NotFitting, Unreadable, install
from dpal.reading.cells import BadCell, check_storable
from dpal.reading.delimited import DelimitedReader
from dpal.reading.encodings import Encoding
from dpal.reading.foreign import FASTTEXT_MARK, FastTextReader
from dpal.reading.formats import Detected, Format, detect_format
from dpal.reading.formulas import protected
from dpal.reading.json_lines import read_row
from dpal.reading.json_values import json_rows
from dpal.reading.rows import Layout
from dpal.reading.sources import TextSource

FORMATS = ("csv", "tsv", "jsonl", "parquet", "lines", "json", "xlsx")
SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl", ".txt": "lines"}
# Files of these forms are read and written as another.
WRITTEN_AS = {"json": "jsonl", "xlsx": "csv"}
WRITTEN = {
    "csv": Format.CSV,
    "tsv": Format.TSV,
    "jsonl": Format.JSON_LINES,
    "parquet": Format.PARQUET,
    "lines": Format.CSV,
    "json": Format.TASKS,
    "xlsx": Format.WORKBOOK,
}
COMPRESSED = ".gz"
ZIP = ".zip"
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
    found = SUFFIXES.get(Path(name.lower().removesuffix(COMPRESSED).removesuffix(ZIP)).suffix)
    if found is None and name.lower().endswith(ZIP):
        found = "csv"
    if found is None:
        raise DpalError(f"{name} may hold anything: say what with --format, one of {', '.join(FORMATS)}.")
    return found


@contextmanager
def opened(
    name: str, kind: str, size: int, *, encoding: str | None = None, skip_rows: int = 0
) -> Iterator[tuple[list[str] | None, Iterator[list[Row]]]]:
    """Give the columns of a file, where its head names them, and its rows in batches; ``-`` is standard input."""
    if name == STANDARD and kind in ("parquet", "xlsx"):
        raise DpalError("Parquet and workbooks are read from a file: name one.")
    if kind == "parquet":
        _arrow()
    with _source(name) as file:
        found = Detected(WRITTEN[kind], encoding=Encoding(encoding or Encoding.UTF_8))
        if name != STANDARD and (kind != "lines" or _is_fasttext(file)):
            found = detect_format(file, f"{name}.{kind}" if kind in SUFFIXES.values() else name, encoding)
        if found.format is Format.PARQUET or kind == "parquet":
            with _sentence_of_parquet(name), _arrow().ParquetFile(file) as parquet:
                batches = parquet.iter_batches(batch_size=size)
                yield list(parquet.schema_arrow.names), (batch.to_pylist() for batch in batches)
            return
        columns, rows = _cells(file, name, kind, found, skip_rows)
        yield columns, iter(lambda: list(islice(rows, size)), [])


def _is_fasttext(file: BinaryIO) -> bool:
    head = file.read(len(FASTTEXT_MARK))
    file.seek(0)
    return head == FASTTEXT_MARK.encode()


def _cells(
    file: BinaryIO, name: str, kind: str, found: Detected, skip_rows: int
) -> tuple[list[str] | None, Iterator[Row]]:
    if found.format is Format.IMAGES:
        raise DpalError(f"{name} is a zip without a table in it.")
    if found.format is Format.WORKBOOK:
        return _sheet(file, name, skip_rows)
    source = TextSource(
        file,
        compressed=found.compressed or name.lower().endswith(COMPRESSED),
        member=found.member,
        maximum_bytes=sys.maxsize,
        encoding=found.encoding,
    )
    if kind == "lines" and found.format is not Format.FASTTEXT:
        return None, _whole(({TEXT: line.rstrip("\r\n")} for line in source.lines()), name)
    if found.format is Format.JSON_LINES:
        return None, _whole(_json_lines(source, name), name)
    if found.format is Format.TASKS:
        return None, _whole(map(_as_row, json_rows(source)), name)
    reader: DelimitedReader | FastTextReader
    if found.format is Format.FASTTEXT:
        reader = FastTextReader(source, Layout(kind="text", text=TEXT))
        return [TEXT], _table(reader, name)
    layout = Layout(kind="text", skip_rows=skip_rows)
    reader = DelimitedReader(source, layout, default_delimiter="\t" if found.format is Format.TSV else ",")
    return reader.take_all(), _table(reader, name)


def _table(reader: DelimitedReader | FastTextReader, name: str) -> Iterator[Row]:
    for batch in reader.batches():
        first = min(batch.bad, key=lambda row: row.line, default=None)
        for column, cells in batch.columns.items():
            _refuse_broken(cells, name, column, batch.lines)
        rows = zip(*batch.columns.values(), strict=True)
        good = len(batch.lines) if first is None else bisect_right(batch.lines, first.line)
        yield from (dict(zip(batch.columns, row, strict=False)) for row in islice(rows, good))
        if first is not None:
            raise NotFitting(f"Line {first.line} of {name} {first.reason}.")


def _refuse_broken(cells: Sequence[Any], name: str, column: str, lines: Sequence[int]) -> None:
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        place = next(place for place, text in enumerate(texts) if any("\ud800" <= sign <= "\udfff" for sign in text))
        try:
            check_storable(texts[place])
        except BadCell as error:
            raise NotFitting(f"Line {lines[place]} of {name}: {column} {error}.") from None


def _json_lines(source: TextSource, name: str) -> Iterator[Row]:
    for number, line in enumerate(source.lines(), 1):
        if not line.strip():
            continue
        try:
            yield _as_row(read_row(line))
        except ValueError as error:
            raise NotFitting(f"Line {number} of {name} {error}.") from error


def _as_row(value: Any) -> Row:
    if isinstance(value, str):
        return {TEXT: value}
    if not isinstance(value, dict):
        raise NotFitting("is neither an object nor a text")
    return value["data"] if isinstance(value.get("data"), dict) and "annotations" in value else value


def _whole(rows: Iterator[Row], name: str) -> Iterator[Row]:
    """Yield rows, by whose number a broken one is named."""
    for number, row in enumerate(rows, 1):
        for column, cell in row.items():
            _refuse_broken([cell], name, column, [number])
        yield row


def _sheet(file: BinaryIO, name: str, skip_rows: int) -> tuple[list[str], Iterator[Row]]:
    try:
        import python_calamine  # noqa: F401, PLC0415 - an extra

        from dpal.reading.workbook import read_workbook  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise DpalError(f"Workbooks need another package: {install('excel')}") from error
    how: dict[str, Any] = {"sheet": None, "header": None, "maximum_bytes": sys.maxsize, "batch_rows": 4096}
    how["skip_rows"] = skip_rows
    header = [title for title in next(read_workbook(file, wanted=(), **how))[0]["header"] if title]
    Layout(kind="text", metadata=tuple(header)).require(header)
    file.seek(0)
    found = (answer["columns"] for answer, _ in read_workbook(file, wanted=header, **how) if "columns" in answer)
    return header, (
        dict(zip(columns, row, strict=True)) for columns in found for row in zip(*columns.values(), strict=True)
    )


@contextmanager
def _source(name: str) -> Iterator[BinaryIO]:
    try:
        if name == STANDARD:
            yield sys.stdin.buffer
            return
        with open(name, "rb") as file:  # noqa: PTH123 - a name as it was typed
            yield file
    except Unreadable as error:
        raise NotFitting(f"{name} cannot be read: {str(error).removeprefix('file: ')}.") from error
    except OSError as error:
        raise DpalError(f"{name} cannot be read: {error.strerror}.") from error


def column_of_texts(row: Collection[str], wanted: str | None) -> str:
    name = wanted or (TEXT if TEXT in row or len(row) != 1 else next(iter(row)))
    if name not in row:
        raise NotFitting(f"There is no column {name}, only {', '.join(row)}: name the texts with --text-column.")
    return name


@contextmanager
def written(name: str, kind: str, columns: Sequence[str] | None, *, plain: bool = False) -> Iterator[Write]:
    """Give a function that adds rows to a new file, which appears once all are there; ``-`` is standard output."""
    if name == STANDARD:
        if kind == "parquet":
            raise DpalError("Parquet is written into a file: name one with --output.")
        yield _writer(sys.stdout, kind, columns, plain=plain)
        sys.stdout.flush()
        return
    target = Path(name)
    try:
        number, partial = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    except OSError as error:
        raise DpalError(f"{name} cannot be written: {error.strerror}.") from error
    os.close(number)
    try:
        if kind == "parquet":
            with _parquet_writer(partial, kind, columns) as write:
                yield write
        else:
            with _text_writer(partial, kind, columns, plain=plain) as write:
                yield write
        umask = os.umask(0)
        os.umask(umask)
        Path(partial).chmod(0o666 & ~umask)
        Path(partial).replace(target)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


@contextmanager
def _text_writer(name: str, kind: str, columns: Sequence[str] | None, *, plain: bool) -> Iterator[Write]:
    opening = gzip.open if name.lower().endswith(COMPRESSED) else open
    with opening(name, "wt", encoding="utf-8", newline="") as file:
        yield _writer(file, kind, columns, plain=plain)


def _writer(file: IO[str], kind: str, columns: Sequence[str] | None, *, plain: bool) -> Write:
    table = csv.writer(file, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n")
    named: list[str] = []

    def begin(names: Sequence[str]) -> None:
        named.extend(names)
        table.writerow([_in_one_cell(name, plain) for name in names])

    def cells(row: Row) -> list[Any]:
        if len(row) > len(named) or not all(map(row.__contains__, named)):
            if unknown := row.keys() - set(named):
                raise NotFitting(f"A row has columns that the first has not: {', '.join(sorted(unknown))}.")
            return [_in_one_cell(row.get(name, ""), plain) for name in named]
        return [_in_one_cell(row[name], plain) for name in named]

    if columns and kind in ("csv", "tsv"):
        begin(columns)

    def write(rows: Sequence[Row]) -> None:
        if kind in ("csv", "tsv"):
            if not named:
                begin(list(rows[0]))
            # Several classes are in one cell as the JSON of their names.
            table.writerows(map(cells, rows))
        elif kind == "jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        else:
            file.writelines(f"{_in_one_cell(row['predicted'], True)}\n" for row in rows)

    return write


def _in_one_cell(value: Any, plain: bool) -> Any:
    if isinstance(value, str):
        return value if plain else protected(value)
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
