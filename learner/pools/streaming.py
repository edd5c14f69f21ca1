"""Decisions about the next records of a stream, and the classes to ask about."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies import Batch, BatchPolicy, BatchState
from learner.estimators.streaming import StreamingLinearClassifier
from learner.linear_model import LinearModel
from privacy.mechanisms.randomness import RandomSource


class Examiner(Protocol):
    """Decision about records: a screen or a secret sample."""

    def decide(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None, rng: RandomSource
    ) -> NDArray[np.bool_]: ...


@dataclass(frozen=True, slots=True)
class Examination:
    """Result of handing records over."""

    selected: NDArray[np.int64]
    examined: int
    batches: list[Batch]
    state: BatchState


def examine(
    records: NDArray[np.float32],
    *,
    first_slot: int,
    state: BatchState,
    examiner: Examiner | None,
    policy: BatchPolicy,
    model: LinearModel | None,
    rng: RandomSource,
    most_batches: int | None = None,
    most_selected: int | None = None,
) -> Examination:
    for name, most in (("most_batches", most_batches), ("most_selected", most_selected)):
        if most is not None and most < 1:
            raise ValueError(f"{name} must be >= 1, got {most}")
    if first_slot > state.next_slot:
        raise ValueError(f"slots {state.next_slot} to {first_slot - 1} were not examined yet")
    # A record that is posted again, or again after a crash, gets no second coin.
    passed = min(state.next_slot - first_slot, len(records))
    rows = np.arange(passed, len(records), dtype=np.int64)
    decisions = np.ones(rows.size, dtype=np.bool_) if examiner is None else examiner.decide(records, rows, model, rng)
    # Stopping tells, so it is for visible selection alone.
    if most_selected is not None and decisions.sum() > most_selected:
        decisions = decisions[: np.flatnonzero(decisions)[most_selected - 1] + 1]
    following, batches = policy.advance(state, decisions)
    if most_batches is not None and len(batches) > most_batches - 1:
        decisions = decisions[: batches[most_batches - 1].end - state.next_slot]
        following, batches = policy.advance(state, decisions)
    return Examination(passed + np.flatnonzero(decisions), passed + len(decisions), batches, following)


def guessed_classes(
    learner: StreamingLinearClassifier, rows: NDArray[np.floating], *, rng: RandomSource
) -> NDArray[np.int64]:
    """Return the class to ask about for each row, where sums learn from the answers.

    A no to one of two classes names the other. Of more classes only a yes tells one, so half of the guesses are drawn
    evenly: otherwise a class that is never guessed would never be learned.
    """
    n_classes = len(learner.classes_)
    guesses = np.asarray(learner.predict(rows), dtype=np.int64) if len(rows) else np.empty(0, dtype=np.int64)
    if n_classes == 2:
        return guesses
    evenly = rng.integers(n_classes, size=len(rows))
    return np.where(rng.integers(2, size=len(rows)) == 1, guesses, evenly)
