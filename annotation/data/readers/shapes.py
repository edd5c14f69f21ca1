"""Shape of an upload, found in a limited process."""

from typing import BinaryIO

from annotation.data.readers.images import FILE_NAME
from annotation.data.readers.parquet import parquet_columns
from annotation.data.readers.reading import detect_format
from annotation.data.readers.workbook import WorkbookReader
from annotation.errors import refusing_unreadable
from annotation.work.limits import LOOK, run
from dpal.reading.formats import Format
from dpal.reading.rows import FirstRows, Layout
from dpal.reading.shapes import FileShape, read_shape


@refusing_unreadable()
def shape_of(
    file: BinaryIO,
    name: str,
    *,
    maximum_bytes: int,
    has_header: bool = True,
    delimiter: str | None = None,
    quoting: bool = True,
    encoding: str | None = None,
    sheet: str | None = None,
    skip_rows: int = 0,
) -> FileShape:
    """Look at the beginning of a file; `InvalidUpload` if its format or encoding is another, or it is damaged."""
    kind, compressed, settled, member = detect_format(file, name, encoding, sheet)
    if kind is Format.IMAGES:
        return FileShape(kind, (FILE_NAME,))
    if kind is Format.PARQUET:
        return FileShape(kind, parquet_columns(file))
    if kind is Format.WORKBOOK:
        asked = Layout(kind="text", has_header=has_header, sheet=sheet, skip_rows=skip_rows)
        book = WorkbookReader(file, asked, maximum_bytes=maximum_bytes, look=FirstRows(1))
        return FileShape(kind, tuple(name for name in book.header if name), sheets=book.sheets, sheet=book.sheet)
    found, _ = next(
        run(
            read_shape,
            file,
            LOOK,
            kind=kind,
            compressed=compressed,
            member=member,
            maximum_bytes=maximum_bytes,
            encoding=settled,
            has_header=has_header,
            delimiter=delimiter,
            quoting=quoting,
            skip_rows=skip_rows,
        )
    )
    several = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
    return FileShape(kind, **(found | several))
