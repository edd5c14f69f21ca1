"""A crowd project in simulation: golden set, gate, uncertainty, crowd labels with mistakes, accuracy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from learner.estimators.baseline import LogisticRegressionBaseline
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.papers.experiment import Json
from learner.papers.query_log import QueryLog
from learner.strategies.uncertainty import Uncertainty
from privacy.arrays import Array
from privacy.gate.kanonymity import KAnonymityGate
from privacy.mechanisms.randomness import SimulationRandom

NAMES = ("other", "money")


class Crowd:
    """Features of one log; everything after the gate reads gate output only.

    Labelling protects nobody here and the classifier is not private: downstream of the gate both are free.
    """

    def __init__(self, log: QueryLog, settings: Json, rng: np.random.Generator) -> None:
        features = HashingTextFeaturizer(settings["features"], (1, 2))
        self.log, self.settings = log, settings
        self.pool, self.test, self.golden = (
            features.raw_rows(part.texts).astype(np.float32) for part in (log.pool, log.test, log.golden)
        )
        self.places = {text: place for place, text in enumerate(log.pool.texts)}
        right = np.clip(rng.normal(settings["right"], settings["right_spread"], size=len(self.pool)), 0, 1)
        self.answers = log.pool.positive ^ (rng.random(len(self.pool)) >= right)

    def passed(self, k: int, rate: float, key: bytes) -> NDArray[np.intp]:
        gate = KAnonymityGate(k, rate)
        table = gate.release(self.log.batches(), key=key)
        found = [self.places[text] for text in table["text"].to_pylist() if text in self.places]
        return np.array(found, dtype=np.intp)

    def model(self, asked: NDArray[np.intp]) -> LinearModel:
        rows = np.vstack([self.golden, self.pool[asked]])
        labels = np.concatenate([self.log.golden.positive, self.answers[asked]]).astype(int)
        fitted = LogisticRegressionBaseline(self.settings["regularization"], classes=[0, 1]).fit(rows, labels)
        return LinearModel(fitted.coef_, fitted.intercept_, NAMES)

    def accuracy(self, asked: NDArray[np.intp]) -> float:
        model = self.model(asked)
        scores = self.test @ model.coef[0] + model.intercept[0]
        return float(((scores > 0) == self.log.test.positive).mean())

    def ranked(self, passed: NDArray[np.intp], budgets: Sequence[int], *, uncertain: bool, seed: int) -> list[float]:
        """Return accuracies as texts are asked in batches, most uncertain first or at random, up to each budget."""
        rng, found = SimulationRandom(seed), []
        left = np.random.default_rng(seed).permutation(passed)
        asked = np.empty(0, dtype=np.intp)
        for budget in budgets:
            if uncertain:
                order = np.sort(left)
                chosen = Uncertainty().query(self.pool, order, self.model(asked), budget - len(asked), rng)
                left = np.setdiff1d(left, chosen)
            else:
                chosen, left = left[: budget - len(asked)], left[budget - len(asked) :]
            asked = np.concatenate([asked, chosen])
            found.append(self.accuracy(asked))
        return found

    def dropout(self, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return confidence and entropy of each pool text under dropout of half of the features, golden set only."""
        model = self.model(np.empty(0, dtype=np.intp))
        share = np.zeros(len(self.pool))
        for _ in range(draws):
            kept = rng.random(self.pool.shape[1]) < 0.5
            scores = self.pool @ (2 * kept * model.coef[0]).astype(np.float32) + model.intercept[0]
            share += 1 / (1 + np.exp(-scores))
        share /= draws
        both = np.stack([share, 1 - share])
        return both.max(axis=0), -(both * np.log(np.maximum(both, 1e-300))).sum(axis=0)
