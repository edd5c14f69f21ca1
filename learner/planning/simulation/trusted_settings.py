"""What a simulated project of trusted experts is set to: the preset's limits and a planned recipe."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.presets import PRESETS
from learner.estimators.huber_svm import PrivateHuberSVM
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.sums import PrivateSums
from learner.features.planned import planned_columns
from learner.features.static_encoder import COLUMNS, MOST_COLUMNS
from learner.linear_model import LinearModel
from learner.strategies.blocks import block_rates
from learner.strategies.noisy_clusters import NoisyClusters
from learner.strategies.secret_sample import BlocksChoice, ScreenedSecretSample
from privacy.accounting.event import Event
from privacy.accounting.events import SecretBlockEvent, SecretSampleEvent
from privacy.accounting.events_series import even_training
from privacy.choices import Kind
from privacy.mechanisms.randomness import SimulationRandom

PRESET = "pool-experts"
MOMENT_SHARE = 0.05
ESTIMATORS = ("planned", "huber_svm_gaussian", "softmax_steps", "sums")
# Found on public tasks, see docs/results/utility.md: what is planned of two classes for one release of the whole limit,
# by whether the owner wrote examples, towards which a training may be drawn harder and in more columns.
TWO_CLASSES: Mapping[bool, Mapping[str, Any]] = {
    False: {"feature_dimension": COLUMNS, "regularization": 2.0, "smoothing": 0.5},
    True: {"feature_dimension": MOST_COLUMNS, "regularization": 3.0, "smoothing": 1.0},
}
# So few classes of texts with so many labels each are learned better by one release of sums than by steps.
FEW_CLASSES, LABELS_FOR_SUMS = 12, 40
KINDS: Mapping[str, type] = {
    "estimator": str,
    "feature_dimension": int,
    "regularization": float,
    "smoothing": float,
    "moment_share": float,
    "normalizer": str,
    "pool_epsilon": float,
    "pool_delta": float,
    "selection_rate": float,
    "maximum_releases": int,
    "screened_blocks": int,
    "cluster_epsilon": float,
    "cluster_spread": float,
    "image_colours": str,
}
OF_BLOCKS = ("maximum_releases", "screened_blocks", "cluster_epsilon")
SimulatedEstimator = PrivateHuberSVM | PrivateSoftmaxSteps | PrivateSums


@dataclass(frozen=True, slots=True)
class TrustedSettings:
    """All settings of one simulation.

    Attributes
    ----------
    estimator : str
        "huber_svm_gaussian", "softmax_steps", "sums", or "planned": what suits classes and labels.
    feature_dimension : int
        Leading columns of the static encoder.
    regularization, smoothing, moment_share : float
        Of the estimators.
    normalizer : str
        Rule of texts.
    pool_epsilon, pool_delta : float
        Limit of the pool's account, all of which is planned for.
    selection_rate : float or None
        Rate of the first of a series of secret blocks, each of which releases, as live projects have it; None for one
        secret sample and one release.
    maximum_releases : int or None
        How many blocks release; None for all.
    screened_blocks : int
        1 where blocks from the second on leave out most of what is far from the last release's boundary.
    cluster_epsilon, cluster_spread : float
        What counting the cells of the pool costs, 0 for not at all, and how many times fewer records the first block
        then asks about.
    image_colours : str
        "grey" or "colour": what is learned of images that have colours.
    """

    estimator: str
    feature_dimension: int
    regularization: float
    smoothing: float
    moment_share: float
    normalizer: str
    pool_epsilon: float
    pool_delta: float
    selection_rate: float | None = None
    maximum_releases: int | None = None
    screened_blocks: int = 0
    cluster_epsilon: float = 0.0
    cluster_spread: float = 4.0
    image_colours: str = "grey"

    @classmethod
    def of(cls, given: Mapping[str, str], *, n_classes: int, described: bool) -> Self:
        """Return the planned recipe with `given` in its place; of a series of blocks it is the preset's own.

        Raises
        ------
        ValueError
            If a name is unknown, or a value cannot be read or is out of range.
        """
        if unknown := sorted(set(given) - set(KINDS)):
            raise ValueError(f"unknown settings {', '.join(unknown)}; there are {', '.join(sorted(KINDS))}")
        wanted: dict[str, Any] = {}
        for name, text in given.items():
            try:
                wanted[name] = KINDS[name](text)
            except ValueError as error:
                raise ValueError(f"{name} must be of type {KINDS[name].__name__}, got {text!r}") from error
        if wanted.get("estimator", "planned") not in ESTIMATORS:
            raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {wanted['estimator']!r}")
        if wanted.get("image_colours", "grey") not in ("grey", "colour"):
            raise ValueError(f"image_colours must be grey or colour, got {wanted['image_colours']!r}")
        if "selection_rate" not in wanted and any(map(wanted.get, OF_BLOCKS)):
            raise ValueError("blocks need a selection_rate, the preset's is 0.1")
        if not 0 < wanted.get("selection_rate", 0.5) < 1:
            raise ValueError(f"selection_rate must lie in (0, 1), got {wanted['selection_rate']}")
        if wanted.get("cluster_epsilon", 0.0) < 0 or not wanted.get("cluster_spread", 4.0) > 1:
            raise ValueError("cluster_epsilon must be >= 0 and cluster_spread > 1")
        preset = PRESETS[PRESET].defaults
        recipe = {name: preset[name] for name in ("regularization", "smoothing")}
        recipe |= {"feature_dimension": planned_columns(n_classes), "moment_share": MOMENT_SHARE, "normalizer": "L1"}
        if n_classes == 2 and "selection_rate" not in wanted:
            recipe |= TWO_CLASSES[described]
        limits = {name: preset[name] for name in ("pool_epsilon", "pool_delta")}
        return cls(**{"estimator": "planned"} | recipe | limits | wanted)

    def suited(self, *, n_classes: int, labels: int, texts: bool) -> Self:
        """Return these settings with the estimator that is planned for so many classes and labels in one release."""
        if self.estimator != "planned":
            return self
        if n_classes == 2:
            return replace(self, estimator="huber_svm_gaussian")
        of_sums = self.selection_rate is None and texts and n_classes <= FEW_CLASSES
        enough = labels >= LABELS_FOR_SUMS * n_classes
        return replace(self, estimator="sums" if of_sums and enough else "softmax_steps")

    def one_of_several(self) -> Self:
        """Return these settings with the part of the limit that one of several releases in the open gets."""
        releases = max(1, len(self.rates))
        return replace(
            self, pool_epsilon=self.pool_epsilon / releases, pool_delta=self.pool_delta / releases, selection_rate=None
        )

    @property
    def rates(self) -> tuple[float, ...]:
        """Public rates of the blocks that release, where there are blocks; their series has all of them."""
        return () if self.selection_rate is None else block_rates(self.selection_rate)[: self.maximum_releases]

    @property
    def clusters(self) -> NoisyClusters | None:
        """What spreads the first block over the pool, where it is."""
        if not self.cluster_epsilon or self.selection_rate is None:
            return None
        return NoisyClusters(self.selection_rate, epsilon=self.cluster_epsilon, spread=self.cluster_spread)

    def screened(self, rate: float) -> ScreenedSecretSample:
        """Return the sample of a later block, as the preset's selection prefers what is near."""
        preset = {**PRESETS[PRESET].defaults, "screened_blocks": True}
        selection = CATALOGUE.find(Kind.STRATEGY, preset["selection"])
        assert selection is not None
        sample = cast(BlocksChoice, selection.of(preset)).of_block(2, rate)
        assert isinstance(sample, ScreenedSecretSample)
        return sample

    def of_block(
        self, before: SecretBlockEvent | None, *, block: int, n_features: int, **shape: Any
    ) -> tuple[SimulatedEstimator, SecretBlockEvent]:
        """Return the estimator of one block of the series, which together spends the account, and what it is charged.

        Raises
        ------
        ValueError
            If the series cannot pay for it: a mistake of the recipe, not of the data.
        """
        assert self.selection_rate is not None
        every = block_rates(self.selection_rate)
        left = self.pool_epsilon - self.cluster_epsilon
        epsilon, delta = even_training(left, self.pool_delta, every, releases=len(self.rates))
        estimator = self._estimator(epsilon * (1 - 1e-9), delta=delta * (1 - 1e-9), **shape)
        event = SecretBlockEvent.next_of(before, estimator.event_for(n_features), block=block, rates=every)
        if event is None:
            raise ValueError(f"block {block} costs more than its series was opened with")
        return estimator, event

    def training(
        self, rate: float, *, classes: range, prior: LinearModel | None, rng: SimulationRandom
    ) -> SimulatedEstimator:
        """Return the estimator that spends the whole account on a secret sample of this rate; 1 for no secret."""
        # The smallest float above would already cost more than the account holds.
        epsilon = math.log1p(math.expm1(self.pool_epsilon) / rate) * (1 - 1e-9)
        delta = self.pool_delta / rate * (1 - 1e-9)
        if delta >= 1:
            raise ValueError(f"pool_delta must be below the rate {rate}, got {self.pool_delta}")
        return self._estimator(epsilon, delta=delta, classes=classes, prior=prior, random_state=rng)

    def _estimator(self, epsilon: float, **shape: Any) -> SimulatedEstimator:
        if self.estimator == "sums":
            return PrivateSums(epsilon, moment_share=self.moment_share, **shape)
        if self.estimator == "softmax_steps":
            return PrivateSoftmaxSteps(epsilon, **shape)
        return PrivateHuberSVM(epsilon, self.regularization, "gaussian", smoothing=self.smoothing, **shape)

    def event(self, estimator: SimulatedEstimator, *, rate: float, n_features: int) -> Event:
        """Return what the release is charged, and check that the account holds it.

        Raises
        ------
        ValueError
            If the recipe costs more than the limit: a mistake of the recipe, not of the data.
        """
        inner = estimator.event_for(n_features)
        event: Event = SecretSampleEvent(inner, rate) if rate < 1 else inner
        cost = event.cost()
        if cost.epsilon > self.pool_epsilon or cost.delta > self.pool_delta:
            raise ValueError(f"the release costs ({cost.epsilon}, {cost.delta}), more than the account holds")
        return event
