"""Excel workbooks (.xlsx): one sheet, row by row, with values as they were last computed; read in a limited process."""

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from annotation.work.limits import LOOK, WHOLE, Limits, run
from dpal.reading.rows import BadRow, FirstRows, Layout, RawBatch
from dpal.reading.workbook import MERGED, read_workbook

BATCH_ROWS = 4096
# The library holds the whole sheet.
LIMITS = Limits(memory=1024, cpu=30, time=60)


class WorkbookReader:
    """Read one sheet under the names in its first row that holds anything; rows are named by their number there."""

    def __init__(self, file: BinaryIO, layout: Layout, *, maximum_bytes: int, look: FirstRows | None = None) -> None:
        self._answers = run(
            read_workbook,
            file,
            replace(LIMITS, size=8 * maximum_bytes, total=WHOLE.total if look is None else LOOK.total),
            wanted=layout.columns(),
            sheet=layout.sheet,
            header=layout.header if not layout.has_header else None,
            skip_rows=layout.skip_rows,
            maximum_bytes=maximum_bytes,
            batch_rows=BATCH_ROWS if look is None else look.rows,
        )
        opening, _ = next(self._answers)
        self.sheets = tuple(opening["sheets"])
        self.sheet: str = opening["sheet"]
        self.header: list[str] = opening["header"]
        layout.require(self.header)

    def batches(self) -> Iterator[RawBatch]:
        for found, _ in self._answers:
            bad = [BadRow(line, column, MERGED) for line, column in found["merged"]]
            yield RawBatch(found["lines"], found["columns"], bad)
