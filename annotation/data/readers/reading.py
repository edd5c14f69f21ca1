"""From a file of any known format to checked rows: the one door the services use."""

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from annotation.data.readers.checks import check_rows
from annotation.data.readers.images import ImageArchiveReader
from annotation.data.readers.parquet import ParquetReader
from annotation.data.readers.texts import TextReader
from annotation.data.readers.workbook import WorkbookReader
from annotation.errors import InvalidUpload, refusing_unreadable
from dpal.reading import formats
from dpal.reading.formats import TEXTS, Format
from dpal.reading.labels import one_hot_labels
from dpal.reading.rows import FirstRows, Layout, RawBatch, RowBatch
from privacy.wording import as_message, in_english

detect_format = refusing_unreadable()(formats.detect_format)


class CellReader(Protocol):
    def batches(self) -> Iterator[RawBatch]: ...


class Upload:
    """An upload whose format is known and whose columns are all there; with `look` only its first rows are read."""

    @refusing_unreadable()
    def __init__(
        self, file: BinaryIO, name: str, layout: Layout, *, maximum_bytes: int, look: FirstRows | None = None
    ) -> None:
        self.format, self.compressed, self.encoding, member = detect_format(file, name, layout.encoding, layout.sheet)
        self.layout = layout
        self.maximum_bytes = maximum_bytes
        if layout.sheet is not None and self.format is not Format.WORKBOOK and member is None:
            raise InvalidUpload("sheet: only workbooks have sheets")
        if layout.skip_rows and self.format not in (Format.CSV, Format.TSV, Format.WORKBOOK):
            raise InvalidUpload("skip_rows: only tables have a header")
        if self.format is Format.IMAGES and layout.kind != "image":
            raise InvalidUpload(
                as_message("file: a zip of images does not fit this project ({kind})", kind=layout.kind)
            )
        if layout.kind == "table" and not layout.declared:
            raise InvalidUpload(in_english("columns: the project declares none"))
        if layout.kind == "image" and not (layout.height and layout.width):
            raise InvalidUpload(in_english("image_height: the project declares none"))
        self._images: ImageArchiveReader | None = None
        self.reader: CellReader | None = None
        if self.format is Format.IMAGES:
            self._images = ImageArchiveReader(file, layout, maximum_bytes=maximum_bytes, look=look)
        elif self.format is Format.PARQUET:
            self.reader = ParquetReader(file, layout, maximum_bytes=maximum_bytes, look=look)
        elif self.format is Format.WORKBOOK:
            self.reader = WorkbookReader(file, layout, maximum_bytes=maximum_bytes, look=look)
        else:
            self.reader = TextReader(
                file,
                layout,
                TEXTS[self.format],
                delimiter="\t" if self.format is Format.TSV else ",",
                compressed=self.compressed,
                member=member,
                encoding=self.encoding,
                maximum_bytes=maximum_bytes,
                look=look,
            )

    @property
    def suffix(self) -> str:
        return self.format + (".gz" if self.compressed else "")

    def batches(self) -> Iterator[RowBatch]:
        """Yield checked rows in file order; once."""
        if self._images:
            yield from self._images.batches()
        for raw in self.cells():
            yield check_rows(raw, self.layout)

    def cells(self) -> Iterator[RawBatch]:
        """Yield rows in file order as they stand there, nothing checked; once, and never of an archive of images."""
        for raw in self.reader.batches() if self.reader else ():
            if self.layout.one_hot and self.layout.label:
                raw.columns[self.layout.label] = list(one_hot_labels(raw.columns, self.layout.one_hot))
            yield raw
