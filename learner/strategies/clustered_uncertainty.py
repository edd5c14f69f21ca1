"""Ask about what the model doubts, spread over all that people say: for texts that are already public."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import BEYOND_A_STREAM, QueryStrategy, Series, StrategyChoice
from learner.strategies.clustering import spread_batch
from learner.strategies.uncertainty import Measure, Uncertainty
from privacy.accounting.answers import response_odds
from privacy.accounting.event import counted_words
from privacy.accounting.events import Event, PostProcessingEvent
from privacy.choices import Sound
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _

DoubtMeasure = Literal["response", "entropy", "margin", "least_confidence"]


class ClusteredUncertainty(QueryStrategy):
    """Take the candidate nearest to each middle of a weighted k-means with as many middles as questions.

    A candidate weighs its doubt times the square root of how often it was said, times the square of how dense texts
    are around it. Where answers are as they are, what is nearest to a text that was asked before draws no middle; a
    randomised answer says too little to speak for its neighbours. Before there is a model every doubt is 1, so the
    first batch goes to the middles of all texts; with one, the batch is uncertain, diverse, typical and frequent at
    once. No noise, so only for the gate's output.

    Parameters
    ----------
    measure : {"response", "entropy", "margin", "least_confidence"}
        Of the doubt: how much a randomised answer at `epsilon` is expected to tell about the class, or a measure of
        `Uncertainty`. What the model knows for sure and what no response could tell both weigh little by the first.
    epsilon : float
        Loss of the responses, > 0; only for "response".

    References
    ----------
    .. [1] Zhdanov, "Diverse mini-batch active learning", 2019.
    .. [2] Yuan, Lin, Boyd-Graber, "Cold-start active learning through self-supervised language modeling", EMNLP 2020
       (clusters before there is a model).
    .. [3] Ash et al., "Deep batch active learning by diverse, uncertain gradient lower bounds" (BADGE), ICLR 2020.
    .. [4] Hacohen, Dekel, Weinshall, "Active learning on a budget" (TypiClust), ICML 2022.
    """

    name = "clustered_uncertainty"
    needs_model = False
    oracles = frozenset({"crowd"})
    post_processing_only = True

    def __init__(self, measure: DoubtMeasure = "response", *, epsilon: float = 2.0) -> None:
        if measure not in get_args(DoubtMeasure):
            raise ValueError(f"measure must be one of {get_args(DoubtMeasure)}, got {measure!r}")
        self.measure: DoubtMeasure = measure
        self.epsilon = float(epsilon)
        self._odds = response_odds(self.epsilon)

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
        *,
        counts: NDArray[np.floating] | None = None,
        asked: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Choose as `QueryStrategy.query` says, heaviest clusters first.

        `counts`, of shape (rows,), says how often each row of `X` was said, > 0; without it once each. `asked` are the
        rows of `X` that were asked before; they do not matter for the measure "response".
        """
        rows = self.check_query(X, candidates, model, n)
        if n == 0 or not rows.size:
            return rows[:0]
        weights = np.ones(rows.size)
        if counts is not None:
            often = np.asarray(counts, dtype=np.float64)
            if often.shape != (len(X),) or not (np.isfinite(often).all() and (often > 0).all()):
                raise ValueError(f"counts must be {len(X)} finite numbers > 0")
            weights = np.sqrt(often[rows])
        values = X[rows]
        if model is not None:
            weights = weights * self.doubts(model.predict_proba(values))
        before = X[[]] if asked is None or self.measure == "response" else X[asked]
        # Of a text that was emptied nothing is left that another could be near to.
        return rows[spread_batch(values, weights, min(n, rows.size), asked=before[before.any(axis=1)])]

    def doubts(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the doubt of each row of class probabilities, shape (rows,), >= 0."""
        if self.measure != "response":
            measure: Measure = self.measure
            return Uncertainty(measure).measured(probabilities)
        response = RandomizedResponse(probabilities.shape[1], self._odds)
        return response.information(probabilities, response.kept(probabilities))

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        return PostProcessingEvent(
            operation=f"{picks} of {counted_words(pool_size, 'text')} chosen by clusters and doubt"
        )


@dataclass(frozen=True)
class SpreadDoubt(StrategyChoice):
    """Doubt spread over all that people say, as projects choose it."""

    name: ClassVar[str] = "clustered_uncertainty"
    label: ClassVar[str] = _("most informative texts, spread out")
    order: ClassVar[str] = _("Each round asks the most informative texts, spread out. Free.")
    # What is asked next is free behind a gate, so another way to choose changes no promise.
    stays: ClassVar[bool] = False
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={
            "trusted": _("Ranking without noise reveals records; choose another selection."),
            "stream": BEYOND_A_STREAM,
        },
    )

    def strategy(self) -> ClusteredUncertainty:
        return ClusteredUncertainty("entropy")

    def behind_randomness(self, epsilon: float) -> ClusteredUncertainty:
        return ClusteredUncertainty("response", epsilon=epsilon)
