"""Forecast of a gate over an upload, counted in a limited process."""

from collections.abc import Iterator, Mapping
from secrets import token_bytes
from time import monotonic
from typing import Any, BinaryIO

from annotation.data.readers.pseudonyms import Pseudonyms, people_of
from annotation.data.readers.reading import Upload
from annotation.data.readers.texts import layout_as_json
from annotation.work.limits import LOOK, Answer, Limits, run
from dpal.reading.rows import Layout
from privacy.gate.columns import pool_rows
from privacy.gate.counting import CountingGate, gate_as_json, gate_from_json
from privacy.gate.forecast import GateForecast, PassingTexts

# Of a longer file the first rows are counted, until enough texts pass.
MOST_ROWS = 200_000
MOST_BYTES = 64 * 1024 * 1024
FIRST_LOOK_ROWS = 25_000
# A page waits for it, so of a slow file what was counted by then decides.
MOST_SECONDS = 10.0
LIMITS = Limits(memory=1024, cpu=30, total=LOOK.total)


def forecast_of(
    file: BinaryIO, name: str, layout: Layout, gate: CountingGate, *, uploads: int, needed: int, maximum_bytes: int
) -> tuple[PassingTexts, int, bool]:
    """Return the texts of a file that would pass, the rows that were counted, and whether those are all."""
    told, _ = next(
        run(
            count_passing,
            file,
            LIMITS,
            name=name,
            layout=layout_as_json(layout),
            gate=gate_as_json(gate),
            uploads=uploads,
            needed=needed,
            maximum_bytes=maximum_bytes,
            most_rows=MOST_ROWS,
            most_seconds=MOST_SECONDS,
            look_at=FIRST_LOOK_ROWS,
        )
    )
    return PassingTexts(**told["passing"]), told["rows"], told["is_whole"]


def count_passing(
    file: BinaryIO,
    *,
    name: str,
    layout: dict[str, Any],
    gate: Mapping[str, Any],
    uploads: int,
    needed: int,
    maximum_bytes: int,
    most_rows: int,
    most_seconds: float,
    look_at: int,
) -> Iterator[Answer]:
    """Yield how many texts pass; a job of a limited process."""
    counted = GateForecast(gate_from_json(gate), uploads=uploads)
    # Nothing of these hashes is kept, so the key of the site is not needed.
    people = Pseudonyms(token_bytes(32))
    rows = size = 0
    ends_at = monotonic() + most_seconds
    for batch in Upload(file, name, Layout(**layout), maximum_bytes=maximum_bytes).batches():
        assert batch.texts is not None
        table = pool_rows(batch.texts, people_of(batch.contributors, people))
        for part in table.to_batches():
            counted.add(part)
        rows, size = rows + len(batch.texts), size + table.nbytes
        ends = rows >= most_rows or size >= MOST_BYTES or monotonic() > ends_at
        if ends or rows >= look_at:
            passing, look_at = counted.passing(), min(2 * look_at, most_rows)
            if ends or passing.low >= max(needed, 1):
                yield _answer(passing, rows, is_whole=False)
                return
    yield _answer(counted.passing(), rows, is_whole=True)


def _answer(passing: PassingTexts, rows: int, *, is_whole: bool) -> Answer:
    found = {"expected": passing.expected, "low": passing.low, "high": passing.high}
    return {"passing": found, "rows": rows, "is_whole": is_whole}, b""
