"""Uploads through the gate in one scan: an engine runs the kernel, and whichever does, counts are the same.

The key of an attempt's coins is drawn here, lives as long as the scan, and is stored nowhere. Noise is drawn once,
here, over all counts in the order of their texts.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from django.conf import settings

from annotation.gates.services import pool_rows
from annotation.models import Dataset
from annotation.tables import sources
from annotation.tables.shared import shared_store
from annotation.work.services import attempts
from privacy.engines.base import GateEngine, Tell
from privacy.engines.process import ProcessEngine
from privacy.engines.spark import SparkEngine
from privacy.engines.stores import columns_in
from privacy.gate.coins import new_key
from privacy.gate.counting import CountingGate, ordered
from privacy.wording import as_message


@contextmanager
def ready_engine(dataset: Dataset, gate: CountingGate, lease: attempts.Lease) -> Iterator[GateEngine]:
    """Hold the engine that will read an upload for a gate; nothing is read yet, so what is missing costs nothing."""
    engine: GateEngine
    if (source := sources.source_of(dataset)) is not None:
        found = sources.refuse_changed(source, lease.check)
        if settings.SPARK_MASTER:
            (first, *_) = pool_rows.files_of(dataset)
            reader, cut = sources.cluster_reader(source), sources.cut_by_groups(found)
            engine = SparkEngine(settings.SPARK_MASTER, reader, look_at=first, cut=cut)
        else:
            engine = ProcessEngine(sources.table_reader(source))
    elif settings.SPARK_MASTER and dataset.in_columns:
        engine = SparkEngine(settings.SPARK_MASTER, columns_in(shared_store()))
    else:
        engine = ProcessEngine(pool_rows.file_rows)
    with engine.opened(gate, attempts.checked_at(lease)):
        yield engine


def release(uploads: Sequence[Dataset], gate: CountingGate, lease: attempts.Lease, engine: GateEngine) -> pa.Table:
    """Return what passes of uploads counted together; which engine counts, and on how many machines, is no matter."""
    key = new_key()
    rows = sum(upload.row_count for upload in uploads)
    tell = attempts.told_of_rows(lease, rows, as_message("Reading the upload."))
    if not all(upload.in_columns for upload in uploads):
        return gate.decide(gate.read(pool_rows.records_of_all(uploads, tell), key=key), key=key)
    return gate.conclude(ordered(_counted(uploads, gate, key, tell, engine)))


def _counted(
    uploads: Sequence[Dataset], gate: CountingGate, key: bytes, tell: Tell, engine: GateEngine
) -> list[pa.Table]:
    """Count once more where a file was rewritten meanwhile: under the same key the coins are the same."""
    for _ in range(pool_rows.TRIES - 1):
        try:
            return engine.counted(gate, pool_rows.files_of(*uploads), key=key, tell=tell)
        except FileNotFoundError:
            continue
    return engine.counted(gate, pool_rows.files_of(*uploads), key=key, tell=tell)
