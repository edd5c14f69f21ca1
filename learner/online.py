"""Learning from each answer at once, and from confirmations: the learner, its guesses and what answers to them tell.

Streams of projects and their simulations both come through here, so that a simulation is of what really runs.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from annotation.choices.policies.updates import BatchPolicy, BatchState
from learner.estimators.streaming import AnsweredBatch, GuessingClassifier, StreamingLinearClassifier
from learner.linear_model import LinearModel
from learner.streaming import examine
from privacy.mechanisms.randomness import RandomSource


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


def simulated_arrival(
    learner: StreamingLinearClassifier,
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    *,
    policy: BatchPolicy,
    ahead: int,
    stops: Sequence[int],
    rng: RandomSource,
) -> Iterator[int]:
    """Let records arrive one by one, people answer them rightly and the learner learn; yield at each stop.

    Records are examined until as many as the configuration allows wait for answers; then all of these are answered.

    Parameters
    ----------
    learner : StreamingLinearClassifier
        Started, with classes 0, 1, ...
    X, y : ndarrays of shape (n, n_features) and (n,)
        The records in the order of arrival, and their classes.
    policy : BatchPolicy
        Groups the records into batches, none of which is left open.
    ahead : int
        Batches that may wait for answers, >= 1.
    stops : sequence of int
        Numbers of records, increasing, after whose steps to stop, each at the end of a batch.
    rng : RandomSource
        Source of coins; there are none where all are asked about.

    Yields
    ------
    int
        Each of `stops`; the learner then is as it stands after so many records.
    """
    state, names = BatchState(), tuple(str(name) for name in learner.classes_)
    while state.next_slot < len(X):
        first = state.next_slot
        seen = examine(
            X[first : first + ahead],
            first_slot=first,
            state=state,
            examiner=None,
            policy=policy,
            model=LinearModel(learner.coef_, learner.intercept_, names, "softmax"),
            rng=rng,
            most_batches=ahead,
        )
        rows, choices = X[first + seen.selected], y[first + seen.selected]
        guesses = learner.guess_all(rows) if isinstance(learner, GuessingClassifier) else []
        state, ends, done = seen.state, np.array([batch.end for batch in seen.batches]), 0
        for stop in sorted({state.next_slot, *(stop for stop in stops if first < stop < state.next_slot)}):
            following = int(np.searchsorted(ends, stop, side="right"))
            counts = [len(batch.slots) for batch in seen.batches[done:following]]
            own = slice(taken := sum(len(batch.slots) for batch in seen.batches[:done]), taken + sum(counts))
            if isinstance(learner, GuessingClassifier):
                right = [guess.place == choice for guess, choice in zip(guesses[own], choices[own], strict=True)]
                learner.learn_guesses([guess.direction for guess in guesses[own]], right, counts)
            else:
                batches = AnsweredBatch.all_answered(rows[own], choices[own], counts)
                learner.learn_batches(batches, new=len(batches))
            done = following
            if stop in stops:
                yield stop
