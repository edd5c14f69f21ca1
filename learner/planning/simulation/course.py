"""A series of secret blocks on labelled public data: each is asked about once and releases, as live projects do it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from learner.planning.simulation.noise_free import AnswerArray
from learner.planning.simulation.trusted_settings import TrustedSettings
from learner.strategies.blocks import block_rates, draw_blocks, weights_of_block
from learner.strategies.rows import ListedRows
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
    assert settings.selection_rate is not None
    every = block_rates(settings.selection_rate)
    drawn = draw_blocks(len(rows), settings.selection_rate, rng)
    found: list[AnswerArray] = []
    asked: list[NDArray[np.intp]] = []
    charge: SecretBlockEvent | None = None
    sums: NoisySums | None = None
    model: LinearModel | None = None
    clusters = settings.clusters
    spent, spent_delta = 0.0 if clusters is None else clusters.counts_event.cost().epsilon, 0.0
    for block in range(1, len(settings.rates) + 1):
        chosen = np.flatnonzero(drawn == block)
        if clusters is not None and block == 1:
            counts = clusters.counted(rows, ListedRows(np.arange(len(rows))), rng)
            cell_rates = clusters.rates_of(counts, len(rows))
            chosen = clusters.thin(rows, chosen, cell_rates, rng)
        if settings.screened_blocks and model is not None:
            chosen = settings.screened(every[block - 1]).thin(rows.astype(np.float32), chosen, model, rng)
        shape: dict[str, Any] = {"classes": range(len(classes)), "prior": model or prior, "random_state": rng}
        if sums is not None:
            of_earlier, of_own = weights_of_block(every[: block - 1], every[block - 1])
            shape |= {"earlier": sums.times(of_earlier), "own_weight": of_own, "prior": prior}
        estimator, charge = settings.of_block(charge, block=block, n_features=rows.shape[1], **shape)
        spent, spent_delta = spent + charge.cost().epsilon, spent_delta + charge.cost().delta
        if spent > settings.pool_epsilon or spent_delta > settings.pool_delta:
            raise ValueError(f"the series costs ({spent}, {spent_delta}), more than the account holds")
        estimator.fit(rows[chosen], labels[chosen])
        sums = estimator.sums_ if isinstance(estimator, PrivateSums) else None
        model = LinearModel(estimator.coef_, estimator.intercept_, tuple(classes), estimator.multiclass)
        found.append(np.asarray(estimator.predict(test), dtype=np.int64))
        asked.append(chosen)
    return found, np.concatenate(asked)
