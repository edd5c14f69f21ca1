"""A series of secret blocks on labelled public data: each is asked about once and releases, as live projects do it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from learner.planning.simulation.noise_free import AnswerArray
from learner.planning.simulation.trusted_settings import TrustedSettings
from learner.strategies.blocks import draw_blocks, weights_of_block
from learner.strategies.noisy_clusters import NoisyClusters
from learner.strategies.rows import ListedRows
from learner.strategies.secret_sample import ScreenedSecretSample
from privacy.accounting.events import SecretBlockEvent
from privacy.arrays import Array
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.sums import NoisySums


def course(
    settings: TrustedSettings,
    rows: Array,
    labels: AnswerArray,
    test: Array,
    *,
    classes: Sequence[str],
    prior: LinearModel | None,
    rng: SimulationRandom,
) -> tuple[list[AnswerArray], NDArray[np.intp]]:
    """Play all blocks of a pool and return the answers of each release on `test`, and which rows were asked about.

    Each model starts from the release before it; where it is made of noisy sums it adds its own to all before.

    Raises
    ------
    ValueError
        If the series costs more than the account holds: a mistake of the recipe, not of the data.
    """
    blocks, every = settings.blocks, settings.every_rate
    drawn = draw_blocks(len(rows), every[0], rng)
    found: list[AnswerArray] = []
    asked: list[NDArray[np.intp]] = []
    charge: SecretBlockEvent | None = None
    sums: NoisySums | None = None
    model: LinearModel | None = None
    opening = blocks.opening(settings.values)
    spent, spent_delta = 0.0 if opening is None else opening.cost().epsilon, 0.0
    for block, rate in enumerate(settings.rates, start=1):
        chosen = np.flatnonzero(drawn == block)
        sample = blocks.of_block(block, rate)
        if isinstance(sample, NoisyClusters):
            counts = sample.counted(rows, ListedRows(np.arange(len(rows))), rng)
            chosen = sample.thin(rows, chosen, sample.rates_of(counts, len(rows)), rng)
        elif isinstance(sample, ScreenedSecretSample) and model is not None:
            chosen = sample.thin(rows.astype(np.float32), chosen, model, rng)
        parameters: dict[str, Any] = {"prior": model or prior, "random_state": rng}
        if sums is not None:
            of_earlier, of_own = weights_of_block(every[: block - 1], rate)
            parameters |= {"earlier": sums.times(of_earlier), "own_weight": of_own, "prior": prior}
        estimator, charge = settings.of_block(charge, block=block, n_features=rows.shape[1], **parameters)
        spent, spent_delta = spent + charge.cost().epsilon, spent_delta + charge.cost().delta
        if spent > settings.limit[0] or spent_delta > settings.limit[1]:
            raise ValueError(f"the series costs ({spent}, {spent_delta}), more than the account holds")
        estimator.fit(rows[chosen], labels[chosen])
        sums = estimator.sums_ if isinstance(estimator, PrivateSums) else None
        model = LinearModel(estimator.coef_, estimator.intercept_, tuple(classes), estimator.multiclass)
        found.append(model.leaders(model.decision_function(test)).astype(np.int64))
        asked.append(chosen)
    return found, np.concatenate(asked)
