"""The queries that benchmarks of the gate count: the same for every contender and every run."""

import numpy as np
import pyarrow as pa

VOCABULARY, PEOPLE, BATCH_ROWS, K, RATE = 400_000, 200_000, 500_000, 14, 0.25
WORDS = [
    "play",
    "stop",
    "next",
    "call",
    "mum",
    "set",
    "alarm",
    "timer",
    "what",
    "weather",
    "kitchen",
    "lights",
    "music",
]


class Data:
    """Batches that are the same for every contender."""

    def __init__(self, vocabulary: int) -> None:
        rng = np.random.default_rng(1)
        words = np.array(WORDS)[rng.integers(0, len(WORDS), size=(vocabulary, 3))]
        self.texts = pa.array([f"{' '.join(row)} {number:x}" for number, row in enumerate(words.tolist())])
        weights = np.arange(1, vocabulary + 1) ** -1.1
        self.edges = np.cumsum(weights / weights.sum())

    def batch(self, number: int) -> pa.RecordBatch:
        rng = np.random.default_rng([2, number])
        rows = np.minimum(np.searchsorted(self.edges, rng.random(BATCH_ROWS)), len(self.texts) - 1)
        people = pa.array(rng.integers(0, PEOPLE, size=BATCH_ROWS)).cast(pa.string())
        return pa.RecordBatch.from_arrays([self.texts.take(pa.array(rows)), people], names=["text", "contributor"])
