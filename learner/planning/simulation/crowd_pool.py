"""What a crowd may be asked about: the texts that the gate lets out of labelled public records."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from learner.planning.simulation.crowd_settings import CrowdSettings
from learner.planning.simulation.task import SimulationTask
from privacy.mechanisms.randomness import SimulationRandom

BATCH_RECORDS = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class CrowdPool:
    """Texts with their counts, and what the records behind each of them mean.

    Attributes
    ----------
    texts : tuple of str
        In normal form, each once.
    counts : ndarray of float64, shape (n,)
        How often each was counted, > 0.
    answers : tuple of ndarray of int
        The classes of the records behind each text.
    passed, different : int
        Texts that the gate let out, and all there are.
    assumed : bool
        Whether so few passed that all texts were taken instead.
    """

    texts: tuple[str, ...]
    counts: NDArray[np.float64]
    answers: tuple[NDArray[np.int64], ...]
    passed: int
    different: int
    assumed: bool

    def to_json(self) -> dict[str, Any]:
        """Return the gate's part of an outcome."""
        return {"texts": self.different, "passed": self.passed, "assumed": self.assumed}


def crowd_pool(task: SimulationTask, settings: CrowdSettings, *, seed: int) -> CrowdPool:
    """Send the records through the gate, once for each seed.

    Raises
    ------
    ValueError
        If there are fewer different texts than the largest number of labels.
    """
    normal = np.array(settings.normalized(task.texts), dtype=object)
    different, place, counts = np.unique(normal, return_inverse=True, return_counts=True)
    if len(different) < task.label_counts[-1]:
        raise ValueError(f"{len(different)} different texts are fewer than {task.label_counts[-1]} labels")
    released = _released(task, settings, SimulationRandom(seed))
    found = {text: count for text, count in released.items() if text}
    assumed = len(found) < task.label_counts[-1]
    texts = [str(text) for text in different if text] if assumed else sorted(found)
    where = {str(text): position for position, text in enumerate(different)}
    behind = np.split(task.labels[np.argsort(place, kind="stable")], np.cumsum(counts)[:-1])
    return CrowdPool(
        texts=tuple(texts),
        counts=np.array([counts[where[text]] if assumed else found[text] for text in texts], dtype=np.float64),
        answers=tuple(behind[where[text]] for text in texts),
        passed=len(found),
        different=len(different),
        assumed=assumed,
    )


def _released(task: SimulationTask, settings: CrowdSettings, rng: SimulationRandom) -> dict[str, float]:
    gate = settings.gate(named=task.contributors is not None)
    table = gate.release(_batches(task), rng=rng)
    # A noisy count may be 0 or less; the text was said all the same.
    counts = np.maximum(np.asarray(table.column(1).to_pylist(), dtype=np.float64), 1.0)
    return dict(zip(table["text"].to_pylist(), counts.tolist(), strict=True))


def _batches(task: SimulationTask) -> Iterator[pa.RecordBatch]:
    for start in range(0, task.n_records, BATCH_RECORDS):
        part = slice(start, start + BATCH_RECORDS)
        columns = {"text": pa.array(task.texts[part], pa.large_string())}
        if task.contributors is not None:
            columns["contributor"] = pa.array(task.contributors[part], pa.large_string())
        yield pa.RecordBatch.from_pydict(columns)
