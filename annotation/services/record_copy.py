"""Checked rows into Postgres by binary COPY."""

import hashlib
from collections.abc import Iterable
from itertools import repeat
from typing import Any

from django.conf import settings
from psycopg import Copy

from annotation.parsers.rows import RowBatch

RECORD_COPY = (
    "COPY annotation_record (dataset_id, row_number, text, payload, contributor, label) FROM STDIN (FORMAT BINARY)"
)
RECORD_TYPES = ("int8", "int8", "text", "jsonb", "bytea", "int2")
PSEUDONYM_BYTES = 16


class RecordWriter:
    """Write the rows of one dataset, numbered from 0 in the order they come."""

    def __init__(self, copy: Copy, *, dataset_id: int) -> None:
        copy.set_types(RECORD_TYPES)
        self._write_row = copy.write_row
        self._dataset_id = dataset_id
        self._pseudonyms = Pseudonyms()
        self.rows = 0

    def write(self, batch: RowBatch) -> None:
        """Write every row of a batch."""
        nothing: Iterable[Any] = repeat(None)
        contributors = nothing if batch.contributors is None else map(self._pseudonyms.of, batch.contributors)
        columns = (
            repeat(self._dataset_id),
            range(self.rows, self.rows + batch.count),
            nothing if batch.texts is None else batch.texts,
            nothing if batch.payloads is None else batch.payloads,
            contributors,
            nothing if batch.labels is None else batch.labels,
        )
        for row in zip(*columns, strict=False):  # the endless ones end with the row numbers
            self._write_row(row)
        self.rows += batch.count


class Pseudonyms:
    """Names of contributors to keyed hashes: equal for one person, and without the key nobody can try names out."""

    def __init__(self) -> None:
        key = hashlib.sha256(settings.PSEUDONYM_KEY.encode()).digest()
        self._keyed = hashlib.blake2b(digest_size=PSEUDONYM_BYTES, key=key, person=b"contributor")

    def of(self, name: str | None) -> bytes | None:
        """Return 16 bytes for a name, None for none."""
        if name is None:
            return None
        hashed = self._keyed.copy()
        hashed.update(name.encode())
        return hashed.digest()
