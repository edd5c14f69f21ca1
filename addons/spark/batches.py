"""Engine of a cluster for batches: each is a task of Spark's, and what the cluster does not do the host does."""

# Nothing made here is a release, so nothing may fail because a cluster did: a driver that ends is started again for
# the batches that are missing, and after a few that made nothing the host's engine makes the rest.

import base64
import logging
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict
from functools import cache
from itertools import chain, islice
from typing import Final

import pyarrow as pa

from addons.spark.engine import Driver, driver_of_a_job
from addons.spark.steps import FAILED_WITH, StepFailed
from learner.features.batches import BatchEngine, BatchFunction, BatchStep, batch_bytes, batch_of
from privacy.errors import EngineFailed
from privacy.gate.engine import Tell

logger = logging.getLogger(__name__)
# How many drivers may end one after the other without a batch that was made.
TRIES: Final = 3
# Batches under way for each core of the cluster, one that it makes and one it takes next; and how many at most, since
# whoever waits for the first of them holds what was made of the others.
AHEAD_FOR_EACH: Final = 2
MOST_AHEAD: Final = 128
# No batch takes as long. Whoever waits longer waits for a cluster that is full, or gone.
PATIENCE_SECONDS: Final = 7200


class SparkBatches:
    def __init__(self, master: str, host: BatchEngine) -> None:
        self._master, self._host = master, host

    def made(self, step: BatchStep, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        # What was read and is not made yet.
        ahead = deque(islice(batches, 1))
        failures = 0
        while ahead and failures < TRIES:
            try:
                with closing(self._made_by_one_driver(step, ahead, batches)) as found:
                    for made in found:
                        failures = 0
                        yield made
            except EngineFailed as error:
                failures += 1
                logger.warning("a driver of the cluster made no more batches: %s", error)
        if ahead:
            logger.warning("the cluster makes no batches, so this host does")
            yield from self._host.made(step, chain(list(ahead), batches))

    def _made_by_one_driver(
        self, step: BatchStep, ahead: deque[pa.RecordBatch], batches: Iterator[pa.RecordBatch]
    ) -> Generator[pa.RecordBatch, None, None]:
        needs = " ".join({"learner", "dpal", *step.packages})
        with driver_of_a_job(self._master, _patience(), needs=needs, step=asdict(step), at_once=MOST_AHEAD) as driver:
            sent, wide = 0, 1
            while ahead:
                while sent < min(AHEAD_FOR_EACH * wide, MOST_AHEAD):
                    ahead.extend(islice(batches, max(0, sent + 1 - len(ahead))))
                    if sent == len(ahead):
                        break
                    driver.order(batch=base64.b64encode(batch_bytes(ahead[sent])).decode())
                    sent += 1
                content, wide = _answer(driver)
                ahead.popleft()
                sent -= 1
                yield batch_of(content)
                ahead.extend(islice(batches, 0 if ahead else 1))


def _answer(driver: Driver) -> tuple[bytes, int]:
    tell = _patience()
    said = driver.answer("made", 0, tell)
    if "error" in said:
        raise EngineFailed(f"The work on the rows failed: {said['error']}.")
    return driver.take(said["bytes"], lambda: tell(0)), said["wide"]


def batch_made(step: BatchStep, content: bytes) -> bytes:
    try:
        return bytes(batch_bytes(_ready(step)(batch_of(content))))
    except Exception as error:  # noqa: BLE001 - whatever it is, its words may quote a row
        raise StepFailed(f"{FAILED_WITH}{type(error).__name__}") from None


@cache
def _ready(step: BatchStep) -> BatchFunction:
    return step.ready()


def _patience() -> Tell:
    until = time.monotonic() + PATIENCE_SECONDS

    def tell(read: int) -> None:
        if time.monotonic() > until:
            raise EngineFailed(f"The cluster did nothing for {PATIENCE_SECONDS // 60} minutes.")

    return tell
