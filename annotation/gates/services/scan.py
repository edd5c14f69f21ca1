"""An upload through the gate in one scan: an engine runs the kernel, and whichever does, counts are the same.

The key of an attempt's coins is drawn here, lives as long as the scan, and is stored nowhere. Noise is drawn once,
here, over all counts in the order of their texts.
"""

import secrets
from functools import partial

import pyarrow as pa

from annotation.gates.services import pool_rows
from annotation.models import Dataset
from annotation.work.services import work
from privacy.engines.base import GateEngine
from privacy.engines.process import ProcessEngine
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.threshold_gate import ordered
from privacy.wording import say

KEY_BYTES = 32


def release(dataset: Dataset, gate: KAnonymityGate | ThresholdGate, lease: work.Lease) -> pa.Table:
    """Return what passes; which engine counts, and on how many machines, changes nothing of it."""
    key = secrets.token_bytes(KEY_BYTES)

    def tell(read: int) -> None:
        lease.check()
        lease.report(progress_done=read, progress_total=dataset.row_count, message=say("Reading the upload."))

    if not dataset.in_columns:
        return gate.decide(gate.read(pool_rows.records(dataset, tell), key=key), key=key)
    engine: GateEngine = ProcessEngine(partial(pool_rows.current_content, dataset))
    counted = engine.counted(gate, pool_rows.files_of(dataset), key=key, tell=tell)
    return gate.conclude(ordered(counted))
