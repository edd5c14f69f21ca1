"""Measuring sessions: private rows answer declared queries with noise, and every answer is recorded."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from privacy.arrays import Array
from privacy.mechanisms.randomness import RandomSource


class Measurement(NamedTuple):
    """A noisy answer to a query, its sensitivity in the norm of the noise, and the scale: 0 for public chance."""

    query: str
    sensitivity: float
    scale: float
    answer: Array


def public_seed(rng: RandomSource) -> Measurement:
    """Return 128 bits of public chance, in four numbers, for what is made of answers."""
    return Measurement("seed", 0.0, 0.0, np.array([rng.bits(32) for _ in range(4)], dtype=np.float64))


def rounded(answer: Array) -> Array:
    """Return an answer in single precision, which halves its record: what goes is far below the noise."""
    return answer.astype(np.float32).astype(np.float64)


Queries = Mapping[str, Callable[..., Measurement]]


class MeasuringSession:
    """All that learning may know of private rows: answers to measured queries, each recorded.

    Each query returns a `Measurement` from public values; the rows it reads are its own.
    """

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self.record: list[Measurement] = []

    def ask(self, query: str, *public: Any) -> Array:
        measured = self._queries[query](*public)
        self.record.append(measured)
        return measured.answer
