"""Label a secret sample: nobody outside learns which records, how many, or when; only the model is released."""

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import QueryStrategy, Series
from privacy.accounting.events import Event, SecretChoiceEvent, SecretSampleEvent
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import coin_probability, flip_coins


class SecretSample(QueryStrategy):
    r"""Choose every record by a secret coin of public rate q, whatever the others' coins say.

    The choice itself is free because it stays inside. A model trained on it at :math:`\varepsilon_m` is released at
    :math:`\ln(1 + q (e^{\varepsilon_m} - 1))`.

    Parameters
    ----------
    rate : float
        Probability q, 0 < q < 1, taken as the nearest multiple of 2**-53. It must not depend on how many
        records earlier secret samples have left, which is secret too.

    Notes
    -----
    Several releases may use disjoint samples: let each round draw from what earlier ones left and charge
    each release `release_event` at the rate of its own round.

    References
    ----------
    .. [1] Balle, Barthe, Gaboardi, "Privacy amplification by subsampling", 2018, Theorem 8 (Poisson sampling).
    """

    name = "secret_sample"
    needs_model = False
    oracles = frozenset({"trusted"})
    post_processing_only = False
    fills_batch = False
    hidden = True

    def __init__(self, rate: float = 0.1) -> None:
        self.high = coin_probability(rate)

    @property
    def rate(self) -> float:
        """Probability with which a record takes part, as it is charged."""
        return float(self.high)

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        rows = self.check_query(X, candidates, model, n)
        # So that whatever is labelled first is a random part of the sample.
        return np.asarray(rng.permutation(rows[self.decide(X, rows, model, rng)]), dtype=np.int64)

    def decide(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None, rng: RandomSource
    ) -> NDArray[np.bool_]:
        return flip_coins(np.full(rows.shape, self.rate), high=self.high, low=self.high, rng=rng)

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        return SecretChoiceEvent(self.rate)

    def release_event(self, training: Event) -> SecretSampleEvent:
        """Return what releasing the outcome of `training` on the chosen records must be charged."""
        return SecretSampleEvent(training, self.rate)
