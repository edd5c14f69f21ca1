"""Decisions about the next records of a stream, and the classes to ask about."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies.updates import Batch, BatchPolicy, BatchState
from learner.estimators.streaming import StreamingLinearClassifier
from learner.linear_model import LinearModel
from privacy.mechanisms.randomness import RandomSource


class Examiner(Protocol):
    """What decides about records: a screen or a secret sample."""

    def decide(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None, rng: RandomSource
    ) -> NDArray[np.bool_]:
        """Return the decision on each of `rows`."""
        ...


@dataclass(frozen=True, slots=True)
class Examination:
    """What became of the records that were handed over.

    Attributes
    ----------
    selected : ndarray of int64
        Places, among the records handed over, of those to ask about.
    examined : int
        How many of them are behind the stream now; any that follow wait for the update that a batch makes.
    batches : list of Batch
        Batches that were closed.
    state : BatchState
        To be stored in the transaction that stores the questions.
    """

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
    """Decide about the next records of a stream.

    Parameters
    ----------
    records : ndarray of float32, shape (n, d)
        Feature rows of consecutive slots.
    first_slot : int
        Slot of the first of them. Slots the stream has passed are left alone: a record that is posted
        again, or again after a crash, gets no second coin.
    state : BatchState
        Where the stream stands.
    examiner : Examiner or None
        Flips the coins; None selects every record, which tells nothing about any.
    policy : BatchPolicy
        Groups the selected into batches.
    model : LinearModel or None
        The last RELEASED model; never one trained without noise.
    rng : RandomSource
        Source of the coins.
    most_batches : int, optional
        Stop where so many batches are closed, >= 1, so that their updates can change the model for the records after
        them. The coins of these, never seen by anybody, are flipped anew later.
    most_selected : int, optional
        Stop after so many selected records, >= 1; only where selection is visible, since stopping tells.

    Raises
    ------
    ValueError
        If a slot would be skipped, a needed model is missing, or no batch may close.
    """
    for name, most in (("most_batches", most_batches), ("most_selected", most_selected)):
        if most is not None and most < 1:
            raise ValueError(f"{name} must be >= 1, got {most}")
    if first_slot > state.next_slot:
        raise ValueError(f"slots {state.next_slot} to {first_slot - 1} were not examined yet")
    passed = min(state.next_slot - first_slot, len(records))
    rows = np.arange(passed, len(records), dtype=np.int64)
    decisions = np.ones(rows.size, dtype=np.bool_) if examiner is None else examiner.decide(records, rows, model, rng)
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

    Parameters
    ----------
    learner : StreamingLinearClassifier
        As it stands after its last release, with classes 0, 1, ...
    rows : ndarray of shape (n, n_features)
        The records that are asked about.
    rng : RandomSource
        Source of the coins.

    Returns
    -------
    ndarray of shape (n,)
        Places of classes, 0, 1, ...
    """
    n_classes = len(learner.classes_)
    guesses = np.asarray(learner.predict(rows), dtype=np.int64) if len(rows) else np.empty(0, dtype=np.int64)
    if n_classes == 2:
        return guesses
    evenly = rng.integers(n_classes, size=len(rows))
    return np.where(rng.integers(2, size=len(rows)) == 1, guesses, evenly)
