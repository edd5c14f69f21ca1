"""Ask first about what the released model is least sure of, among texts that are already public."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import BlockwiseStrategy, Series, StrategyChoice
from learner.strategies.rows import NO_ROWS, Rows
from learner.strategies.scoring import default_block_rows, score_blocks
from privacy.accounting.event import counted_words
from privacy.accounting.events import Event, PostProcessingEvent
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _

Measure = Literal["entropy", "margin", "least_confidence"]

MEASURE_WORDS: Final[Mapping[str, str]] = {
    "entropy": _("entropy of all classes"),
    "margin": _("margin between the two likeliest classes"),
    "least_confidence": _("doubt about the likeliest class"),
}


class Uncertainty(BlockwiseStrategy):
    """Take the most uncertain candidates, ties by row number; no noise, so only for the gate's output.

    Parameters
    ----------
    measure : {"entropy", "margin", "least_confidence"}
        Of the class probabilities: their entropy, one minus the lead of the first class over the second, or one minus
        the probability of the first; these agree on two classes.

    References
    ----------
    .. [1] Settles, "Active Learning Literature Survey", University of Wisconsin-Madison, 2009, section 3.1.
    """

    name = "uncertainty"
    needs_model = True
    oracles = frozenset({"crowd"})
    post_processing_only = True

    def __init__(self, measure: Measure = "entropy") -> None:
        if measure not in get_args(Measure):
            raise ValueError(f"measure must be one of {get_args(Measure)}, got {measure!r}")
        self.measure: Measure = measure

    def choose(
        self, X: NDArray[np.float32], rows: Rows, model: LinearModel | None, n: int, rng: RandomSource
    ) -> NDArray[np.int64]:
        """Choose a block at a time, most uncertain first; of all before, the `n` most uncertain alone are kept."""
        return NO_ROWS if model is None else rows.at(self.most_uncertain(X, rows, model, n))

    def most_uncertain(self, X: NDArray[np.float32], rows: Rows, model: LinearModel, n: int) -> NDArray[np.int64]:
        """Return the places of the `n` most uncertain rows, the first one first; of equals, whose place comes first."""
        places, doubts = NO_ROWS, np.empty(0)
        if n == 0:
            return places
        start = 0
        for block in rows.blocks(default_block_rows(X.shape[1], len(model.coef))):
            found = self.doubts(X, block, model)
            # Equals of the last one kept come later than it, and so after it.
            ahead = np.flatnonzero(found > doubts[-1]) if len(places) == n else np.arange(len(found))
            places, doubts = np.concatenate([places, start + ahead]), np.concatenate([doubts, found[ahead]])
            start += len(block)
            if len(places) > n:
                # Whoever is below the n-th largest need not be sorted.
                kept = doubts >= np.partition(doubts, len(doubts) - n)[-n]
                places, doubts = places[kept], doubts[kept]
            order = np.argsort(-doubts, kind="stable")[:n]
            places, doubts = places[order], doubts[order]
        return places

    def doubts(self, X: NDArray[np.float32], candidates: NDArray[np.int64], model: LinearModel) -> NDArray[np.float64]:
        """Return how uncertain the model is of each candidate, shape (n,), >= 0."""
        return self.measured(class_probabilities(X, candidates, model))

    def measured(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the uncertainty of each row of class probabilities, shape (rows,), >= 0."""
        uncertainty: NDArray[np.float64]
        if self.measure == "entropy":
            # 0 ln 0 = 0.
            logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
            uncertainty = -(probabilities * logs).sum(axis=1)
        elif self.measure == "margin":
            ranked = np.partition(probabilities, -2, axis=1)
            uncertainty = 1.0 - (ranked[:, -1] - ranked[:, -2])
        else:
            uncertainty = 1.0 - probabilities.max(axis=1)
        return uncertainty

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        return PostProcessingEvent(
            operation=f"{picks} of {counted_words(pool_size, 'text')} chosen by {MEASURE_WORDS[self.measure]}"
        )


def class_probabilities(
    X: NDArray[np.float32], candidates: NDArray[np.int64], model: LinearModel
) -> NDArray[np.float64]:
    blocks = score_blocks(X, model, candidates=candidates)
    return np.concatenate([np.empty((0, len(model.classes))), *(model.probabilities(values) for values in blocks)])


@dataclass(frozen=True)
class MostUncertain(StrategyChoice):
    """Uncertainty as projects choose it."""

    name: ClassVar[str] = "uncertainty"
    label: ClassVar[str] = _("uncertainty of the gate's output")
    stays: ClassVar[bool] = False
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        why_not={"trusted": _("Ranking without noise reveals records; choose another selection.")},
    )

    order: ClassVar[str] = _("Too many to rank here; the next round does.")

    uncertainty_measure: str = parameter(
        "entropy",
        options=MEASURE_WORDS,
        label=_("Measure of uncertainty"),
        help=_("Free behind the gate; equal for two classes."),
    )
    repeat_votes: bool = parameter(
        False,
        label=_("Rank again after half of the texts"),
        help=_("Asks again what the newest model doubts."),
    )

    def strategy(self) -> Uncertainty:
        return Uncertainty(cast(Measure, self.uncertainty_measure))

    def why(self, settings: Mapping[str, Any]) -> str:
        return _("Asks what the newest model is least sure of; random before the first.")
