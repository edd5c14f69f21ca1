"""Features as a step of an engine: batches of texts, or of tables as JSON, in; batches of vectors out."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import asdict, dataclass
from pkgutil import resolve_name
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from learner.features.base import Featurizer, featurizer_from_json

BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class BatchStep:
    """Work on one batch alone, as another process is told it.

    `function`, as `package.module:name`, returns the function of a batch for the parameters `given`, which hold no
    data; `needs` names the packages that it imports besides its own and `privacy`.
    """

    function: str
    given: str
    needs: str = ""

    def ready(self) -> BatchFunction:
        made: BatchFunction = resolve_name(self.function)(self.given)
        return made

    @property
    def packages(self) -> list[str]:
        return [self.function.partition(".")[0], *self.needs.split()]

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()


class BatchEngine(Protocol):
    """Does a step with every batch; the bytes do not depend on the engine, nor on how often a batch is repeated."""

    def made(self, step: BatchStep, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        """Yield what the step makes of each batch, in their order; some are made ahead.

        `EngineFailed` if the step failed, or its processes die of a batch time and again.
        """


def batch_bytes(batch: pa.RecordBatch) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


def batch_of(content: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(pa.py_buffer(content)).read_next_batch()


def features_step(featurizer: Featurizer) -> BatchStep:
    return BatchStep(f"{__name__}:{vectors_of.__name__}", featurizer.to_json(), needs="annotation dpal")


def values_batch(values: Iterable[str]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.large_string())], names=["value"])


def vectors_of(given: str) -> BatchFunction:
    featurizer = featurizer_from_json(given)
    reads_tables = featurizer.reads == "table"

    def made(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column(0)
        rows = featurizer.transform([json.loads(each) for each in values.to_pylist()] if reads_tables else values)
        numbers = pa.array(np.ascontiguousarray(rows).reshape(-1))
        return pa.record_batch([pa.FixedSizeListArray.from_arrays(numbers, featurizer.dimension)], names=["vector"])

    return made


def vectors_in(batch: pa.RecordBatch, dimension: int) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = batch.column(0).flatten().to_numpy().reshape(-1, dimension)
    return numbers
