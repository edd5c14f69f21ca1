"""Records as other tools write them, turned into rows with a text and a label."""

from collections.abc import Iterator
from typing import Any

from dpal.errors import Unreadable
from dpal.reading.rows import BadRow, Layout, RawBatch
from dpal.reading.sources import TextSource
from dpal.wording import as_message

FASTTEXT_MARK = "__label__"
TEXT, LABEL = "text", "label"
# Least weight by which a category of spaCy counts as chosen.
CHOSEN = 0.5


def is_prodigy(row: Any) -> bool:
    return isinstance(row, dict) and "answer" in row and ("_task_hash" in row or "_input_hash" in row)


def row_of_prodigy(row: dict[str, Any]) -> dict[str, Any]:
    """Return a Prodigy task with its label; one that was rejected or ignored has none."""
    named = row.get("accept", row.get(LABEL, row.get("spans"))) if row["answer"] == "accept" else None
    if isinstance(row.get("spans"), list) and named is row["spans"]:
        # An empty list of spans is an answer: nothing is marked.
        return row | {LABEL: [{name: span.get(name) for name in ("start", "end", LABEL)} for span in named]}
    return row | {LABEL: named or None, "accept": named or None}


def row_of_pair(pair: list[Any]) -> Any:
    """Return spaCy's text with `cats`, or with `entities` as spans, as a row; other lists are named and refused."""
    match pair:
        case [str() as text, {"cats": dict() as cats}]:
            chosen = [name for name, weight in cats.items() if isinstance(weight, int | float) and weight >= CHOSEN]
            return {TEXT: text, LABEL: chosen}
        case [str() as text, {"entities": list() as entities}]:
            return {TEXT: text, LABEL: entities}
        case [str(), str() | int(), *_]:
            raise Unreadable(
                'file: is a list of lists; write an object a line, such as {"text": "first", "label": "a"}'
            )
    return pair


class FastTextReader:
    """Lines that begin with `__label__` and a class, then have the text."""

    header = (TEXT, LABEL)

    def __init__(self, source: TextSource, layout: Layout) -> None:
        layout.require(self.header)
        self._source, self._layout = source, layout
        self.lines_read = 0

    def batches(self) -> Iterator[RawBatch]:
        names = self._layout.columns()
        batch = RawBatch([], {name: [] for name in names})
        piece = self._source.chunks
        for number, line in enumerate(self._source.lines(), start=1):
            self.lines_read = number
            if self._source.chunks != piece:
                piece = self._source.chunks
                yield batch
                batch = RawBatch([], {name: [] for name in names})
            if not line.strip():
                continue
            words = line.split()
            marked = [word.removeprefix(FASTTEXT_MARK) for word in words if word.startswith(FASTTEXT_MARK)]
            text = line.strip()
            while text.startswith(FASTTEXT_MARK):
                text = text.partition(" ")[2].lstrip() if " " in text else ""
            if not marked:
                batch.bad.append(BadRow(number, LABEL, as_message("is missing")))
                continue
            batch.lines.append(number)
            for name in names:
                batch.columns[name].append(text if name == TEXT else marked)
        yield batch
