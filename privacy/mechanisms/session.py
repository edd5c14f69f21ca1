"""Measuring sessions: private rows answer declared queries with noise, and every answer is recorded."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from privacy.arrays import Array


class Measurement(NamedTuple):
    """A noisy answer.

    Attributes
    ----------
    query : str
    sensitivity : float
        How far one record moves the exact answer, in the norm of the noise.
    scale : float
        Scale of the noise: 0 for public chance that no record moves.
    answer : ndarray of floats
    """

    query: str
    sensitivity: float
    scale: float
    answer: Array


Queries = Mapping[str, Callable[..., Measurement]]


class MeasuringSession:
    """All that learning may know of private rows: answers to measured queries, each recorded.

    Parameters
    ----------
    queries : mapping of str to callable
        Each returns a `Measurement` from public values; the rows it reads are its own.
    """

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self.record: list[Measurement] = []

    def ask(self, query: str, *public: Any) -> Array:
        """Return the noisy answer to a query."""
        measured = self._queries[query](*public)
        self.record.append(measured)
        return measured.answer
