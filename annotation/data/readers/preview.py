"""Preview of the first rows of an upload as they would be read, with every cell that is bad."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from annotation.data.readers.checks import check_rows, cut_spans_words
from annotation.data.readers.reading import Upload
from dpal.reading.rows import Layout, RawBatch, RowBatch

PREVIEW_ROWS = 20


@dataclass(frozen=True, slots=True)
class PreviewColumn:
    name: str
    role: str
    declared: str = ""


@dataclass(frozen=True, slots=True)
class PreviewCell:
    """A cell as it is stored, or as it stands in the file and why it cannot be."""

    value: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A row by its line; `reason` says why all of it is bad, `column` where that shows."""

    line: int
    cells: tuple[PreviewCell, ...]
    reason: str = ""
    column: str = ""

    @property
    def is_bad(self) -> bool:
        return bool(self.reason) or any(cell.reason for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of a file; images have no cells that could be shown."""

    columns: tuple[PreviewColumn, ...]
    rows: tuple[PreviewRow, ...]
    cut_spans: int = 0

    @property
    def left_out(self) -> str:
        return cut_spans_words(self.cut_spans)

    @property
    def bad_count(self) -> int:
        return sum(row.is_bad for row in self.rows)


def preview_of(upload: Upload, layout: Layout, *, most: int = PREVIEW_ROWS) -> Preview:
    """Return the first rows; the file is read no further than they reach."""
    if layout.kind == "image":
        return _of_images(upload, layout, most)
    nothing = RawBatch([], {name: [] for name in layout.columns()})
    raw = next((batch for batch in upload.cells() if batch.lines or batch.bad), nothing)
    lines = sorted({*raw.lines, *(row.line for row in raw.bad)})[:most]
    kept = sum(line in set(lines) for line in raw.lines)
    raw = RawBatch(
        raw.lines[:kept],
        {name: cells[:kept] for name, cells in raw.columns.items()},
        [row for row in raw.bad if row.line in lines],
    )
    columns = list(_columns(layout))
    shown: dict[int, list[PreviewCell]] = {line: [] for line in raw.lines}
    for column in columns:
        for line, cell in zip(raw.lines, _cells(raw, layout, column), strict=True):
            shown[line].append(cell)
    broken = {row.line: row for row in raw.bad}
    rows = [
        PreviewRow(line, tuple(shown[line]))
        if line in shown
        else PreviewRow(line, (), broken[line].reason, broken[line].column)
        for line in lines
    ]
    cut = check_rows(raw, layout).cut_spans if layout.spans else 0
    return Preview(tuple(columns), tuple(rows), cut)


def _columns(layout: Layout) -> Iterable[PreviewColumn]:
    if layout.text:
        yield PreviewColumn(layout.text, "text")
    for column in layout.declared:
        kind = "category" if "categories" in column else "number"
        yield PreviewColumn(layout.source_of(column["name"]), kind, column["name"])
    if layout.contributor:
        yield PreviewColumn(layout.contributor, "contributor")
    if layout.label:
        yield PreviewColumn(layout.label, "label")
    for name in (layout.owner_id, *layout.metadata):
        if name:
            yield PreviewColumn(name, "kept")


def _cells(raw: RawBatch, layout: Layout, column: PreviewColumn) -> list[PreviewCell]:
    alone = replace(
        layout,
        kind="table" if column.declared else "text",
        # Spans are checked against their text.
        text=layout.text if column.role == "text" or (column.role == "label" and layout.spans) else None,
        contributor=column.name if column.role == "contributor" else None,
        label=column.name if column.role == "label" else None,
        owner_id=column.name if column.role == "kept" else None,
        metadata=(),
        declared=tuple(one for one in layout.declared if one["name"] == column.declared),
    )
    checked = check_rows(RawBatch(raw.lines, raw.columns), alone)
    reasons = {row.line: row.reason for row in checked.bad}
    values: list[Any]
    if column.role == "text":
        values = list(checked.texts or ())
    elif column.role == "contributor":
        values = list(checked.contributors or ())
    elif column.role == "label":
        values = [_label(label, layout) for label in checked.labels or ()]
    elif column.role == "kept":
        values = [kept["id"] for kept in checked.metadata or ()]
    else:
        values = [payload[column.declared] for payload in checked.payloads or ()]
    good = iter(values)
    return [
        PreviewCell(_shown(cell), reasons[line]) if line in reasons else PreviewCell(_shown(next(good)))
        for line, cell in zip(raw.lines, raw.columns[column.name], strict=True)
    ]


def _label(label: Any, layout: Layout) -> str:
    if layout.spans:
        return str(label)
    if layout.sets is None:
        return str(layout.classes[label])
    return ", ".join(layout.classes[place] for place in layout.sets.places(label))


def _shown(value: Any) -> str:
    """Return a cell for a page; what no page can hold is replaced."""
    if value is None:
        return ""
    return str(value).replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _of_images(upload: Upload, layout: Layout, most: int) -> Preview:
    raw = next(upload.cells(), None)
    batch = next(upload.batches(), RowBatch(0)) if raw is None else check_rows(raw, layout)
    reasons = {row.line: row.reason for row in batch.bad}
    lines = range(1, batch.count + len(reasons) + 1) if raw is None else sorted({*raw.lines, *reasons})
    return Preview((), tuple(PreviewRow(line, (), reasons.get(line, "")) for line in lines[:most]))
