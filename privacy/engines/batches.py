"""Rows made of rows, a batch at a time: a step looks at one batch alone, so nothing shows who made which."""

import json
import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from privacy.engines.base import function_named

# What a process of an engine is told of its parent's environment: no address, key or token.
PASSED_ON: Final = ("PATH", "HOME", "USER", "LANG", "TZ")
PASSED_ON_PREFIXES: Final = ("LC_", "OMP_", "OPENBLAS_")
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class BatchStep:
    """What is done with each batch, as another process can be told it.

    Parameters
    ----------
    function : str
        `package.module:name` of what returns, for `given`, the function of a batch.
    given : str
        Its parameters; no data.
    needs : str
        Packages that it imports besides its own and this one, with spaces between them.
    """

    function: str
    given: str
    needs: str = ""

    def ready(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Return the function of a batch."""
        made: Callable[[pa.RecordBatch], pa.RecordBatch] = function_named(self.function)(self.given)
        return made

    @property
    def package(self) -> str:
        """The package whose code it is."""
        return self.function.partition(".")[0]

    def to_json(self) -> bytes:
        """Return the step as `BatchStep(**json.loads(...))` reads it."""
        return json.dumps(asdict(self)).encode()


class BatchEngine(Protocol):
    """Does a step with every batch; whichever does, and however often one is repeated, the bytes are the same."""

    def made(self, step: BatchStep, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        """Yield what the step makes of each batch, in their order, some ahead of whoever reads.

        Raises
        ------
        EngineFailed
            If the step failed, or those who do it die of a batch time and again.
        """


def batch_bytes(batch: pa.RecordBatch) -> memoryview:
    """Return a batch as it is sent to another process."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


def batch_of(content: bytes) -> pa.RecordBatch:
    """Return the batch that `batch_bytes` wrote, over the same memory."""
    return pa.ipc.open_stream(pa.py_buffer(content)).read_next_batch()


def engine_environment(*more: str) -> dict[str, str]:
    """Return the environment of an engine's process: where things are, the code's own place, and nothing secret.

    Parameters
    ----------
    *more : str
        What names of further variables begin with that this engine is told.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES + more)
    }
    return kept | {"PYTHONPATH": str(ROOT)}
