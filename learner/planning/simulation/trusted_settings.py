"""What a simulated project of trusted experts is set to: the preset's limits and a planned recipe."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast

from annotation.choices.catalogue import chosen_of
from annotation.choices.presets import PRESETS, broken_rules
from learner.estimators.choice import EstimatorChoice, PrivateEstimator, Shape
from learner.features.choice import FeaturesChoice
from learner.linear_model import LinearModel
from learner.planning.simulation.given import names_of, with_given
from learner.strategies.blocks import block_rates
from learner.strategies.secret_sample import BlocksChoice
from privacy.accounting.event import Event
from privacy.accounting.events import SecretBlockEvent, SecretSampleEvent
from privacy.choices import Kind
from privacy.mechanisms.randomness import SimulationRandom
from privacy.wording import joined_rules

PRESET = "pool-experts"
# What a training may cost follows from the limits; images are pooled to one size.
PRICES: Final = ("training_epsilon", "training_delta")
LEFT_OUT: Final = {*PRICES, "feature_dimension"}
# The constant column of what has one of its own, as those trials had it.
INTERCEPT_SCALING: Final = 1.0
# The smallest float above would already cost more than the account holds.
WHOLE: Final = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class TrustedSettings:
    """All settings of one simulation.

    Attributes
    ----------
    values : mapping of str to object
        What a project of the preset would hold, by the names it stores them under; its limits are all planned for.
    n_classes : int
        Declared classes.
    in_series : bool
        Whether a series of secret blocks is asked about, each of which releases, as live projects have it; else there
        is one secret sample and one release.
    """

    values: Mapping[str, Any]
    n_classes: int
    in_series: bool

    @classmethod
    def of(cls, given: Mapping[str, str], *, n_classes: int, data_kind: str = "text") -> Self:
        """Return the planned recipe with `given` in its place; of a series of blocks it is the preset's own.

        Raises
        ------
        ValueError
            If a name is unknown, a value cannot be read, the whole breaks a rule, or no blocks are chosen.
        """
        preset = PRESETS[PRESET]
        values = {name: value for name, value in preset.defaults.items() if name not in PRICES}
        values |= {"oracle": preset.oracle, "data_kind": data_kind, "normalizer": "L1"}
        values |= {"classes": [str(number) for number in range(n_classes)]}
        values |= _features(values).planned(values)
        of_blocks = {*names_of(Kind.STRATEGY, playing=BlocksChoice), "maximum_releases"}
        in_series = any(map(given.get, (Kind.STRATEGY.key, "selection_rate")))
        of_features = {each.name for each in _features(values).parameters()}
        names = {"normalizer", "pool_epsilon", "pool_delta"} | of_blocks | of_features | names_of(Kind.ESTIMATOR)
        values = with_given(values, given, names - LEFT_OUT)
        if not in_series and any(map(values.get, of_blocks & given.keys())):
            raise ValueError(f"blocks need a selection_rate, the preset's is {preset.defaults['selection_rate']:g}")
        if broken := broken_rules(values):
            raise ValueError(str(joined_rules(broken)))
        if not issubclass(_chosen(Kind.STRATEGY, values), BlocksChoice):
            raise ValueError(f"{Kind.STRATEGY.key}: only secret blocks are simulated, got {values['selection']!r}")
        return cls(values, n_classes, in_series)

    @property
    def estimator(self) -> str:
        """Name of what trains."""
        return str(self.values[Kind.ESTIMATOR.key])

    @property
    def features(self) -> FeaturesChoice:
        """What makes vectors of records."""
        return _features(self.values)

    @property
    def blocks(self) -> BlocksChoice:
        """What asks about secret blocks."""
        return cast(BlocksChoice, _chosen(Kind.STRATEGY, self.values).of(self.values))

    @property
    def limit(self) -> tuple[float, float]:
        """Epsilon and delta of the pool's account."""
        return self.values["pool_epsilon"], self.values["pool_delta"]

    def suited(self, *, labels: int) -> Self:
        """Return these settings with what their estimator stands for, of so many labels in one release."""
        texts = labels if self.values["data_kind"] == "text" and not self.in_series else None
        chosen = cast(type[EstimatorChoice], _chosen(Kind.ESTIMATOR, self.values))
        stands_for = chosen.stands_for(self.n_classes, texts=texts)
        return replace(self, values={**self.values, Kind.ESTIMATOR.key: stands_for.name})

    def one_of_several(self) -> Self:
        """Return these settings with the part of the limit that one of several releases in the open gets."""
        releases = max(1, len(self.rates))
        limits = {name: self.values[name] / releases for name in ("pool_epsilon", "pool_delta")}
        return replace(self, values={**self.values, **limits}, in_series=False)

    @property
    def every_rate(self) -> tuple[float, ...]:
        """Public rates of all blocks of a series."""
        first_rate = self.blocks.first_rate
        assert first_rate is not None
        return block_rates(first_rate)

    @property
    def rates(self) -> tuple[float, ...]:
        """Public rates of the blocks that release, where there are blocks; their series has all of them."""
        return self.every_rate[: self.values.get("maximum_releases")] if self.in_series else ()

    def of_block(
        self,
        before: SecretBlockEvent | None,
        *,
        block: int,
        n_features: int,
        prior: LinearModel | None,
        **parameters: Any,
    ) -> tuple[PrivateEstimator, SecretBlockEvent]:
        """Return the estimator of one block of the series, which together spends the account, and what it is charged.

        Raises
        ------
        ValueError
            If the series cannot pay for it: a mistake of the recipe, not of the data.
        """
        planned = self.blocks.planned({**self.values, "maximum_releases": len(self.rates)})
        epsilon, delta = (planned[name] * WHOLE for name in PRICES)
        estimator = self._estimator(epsilon, delta, prior, **parameters)
        event = SecretBlockEvent.next_of(before, estimator.event_for(n_features), block=block, rates=self.every_rate)
        if event is None:
            raise ValueError(f"block {block} costs more than its series was opened with")
        return estimator, event

    def training(self, rate: float, *, prior: LinearModel | None, rng: SimulationRandom) -> PrivateEstimator:
        """Return the estimator that spends the whole account on a secret sample of this rate; 1 for no secret."""
        pool_epsilon, pool_delta = self.limit
        epsilon, delta = math.log1p(math.expm1(pool_epsilon) / rate) * WHOLE, pool_delta / rate * WHOLE
        if delta >= 1:
            raise ValueError(f"pool_delta must be below the rate {rate}, got {pool_delta}")
        return self._estimator(epsilon, delta, prior, random_state=rng)

    def _estimator(
        self, epsilon: float, delta: float, prior: LinearModel | None, **parameters: Any
    ) -> PrivateEstimator:
        choice = cast(type[EstimatorChoice], _chosen(Kind.ESTIMATOR, self.values))
        priced = choice.of({**self.values, **dict(zip(PRICES, (epsilon, delta), strict=True))})
        shape = Shape(list(range(self.n_classes)), 1.0, INTERCEPT_SCALING, prior)
        return priced.estimator(shape).set_params(**parameters)

    def event(self, estimator: PrivateEstimator, *, rate: float, n_features: int) -> Event:
        """Return what the release is charged, and check that the account holds it.

        Raises
        ------
        ValueError
            If the recipe costs more than the limit: a mistake of the recipe, not of the data.
        """
        inner = estimator.event_for(n_features)
        event: Event = SecretSampleEvent(inner, rate) if rate < 1 else inner
        cost = event.cost()
        if cost.epsilon > self.limit[0] or cost.delta > self.limit[1]:
            raise ValueError(f"the release costs ({cost.epsilon}, {cost.delta}), more than the account holds")
        return event


def _chosen(kind: Kind, values: Mapping[str, Any]) -> type[Any]:
    choice = chosen_of(kind, values)
    assert choice is not None
    return choice


def _features(values: Mapping[str, Any]) -> FeaturesChoice:
    return cast(FeaturesChoice, _chosen(Kind.FEATURES, values).of(values))
