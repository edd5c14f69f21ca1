"""Simulated projects of experts, and the references without privacy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

from annotation.choices.catalogue import chosen_of
from annotation.choices.presets import PRESETS, broken_rules
from dpal.recompute.sums import NoisySums
from learner.estimators.choice import EstimatorChoice, PrivateEstimator, Shape
from learner.estimators.label_sets import PrivateLabelSets
from learner.estimators.pick import PickedFit
from learner.estimators.planned import stands_for
from learner.estimators.sums import PrivateSums
from learner.estimators.version_zero import EncodedWords, enough_examples, public_examples
from learner.features.choice import FeaturesChoice, RecordShape
from learner.features.declared_rules import DeclaredRules
from learner.features.image import ReadsImages
from learner.linear_model import LinearModel
from learner.simulation.outcome import MeanAccuracy, Outcome, OutcomePoint, SimulatedAccount
from learner.simulation.reading import names_of, with_given
from learner.simulation.task import SimulationTask
from learner.strategies.base import QueryStrategy
from learner.strategies.blocks import draw_blocks, weights_of_block
from learner.strategies.random import RandomChoice
from learner.strategies.secret_blocks import SecretBlocks
from privacy.accounting.event import Event
from privacy.accounting.events import SecretBlockEvent, SecretSampleEvent
from privacy.accounting.screens import inner_epsilon
from privacy.arrays import Array
from privacy.choices import Kind, Plans
from privacy.mechanisms.randomness import SimulationRandom
from privacy.wording import joined_rules

# Strengths among which the baseline chooses, on its own labels.
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# So many labels settle a strength; more only take longer.
MOST_TUNED = 3_000

AnswerArray = NDArray[np.int64]


def strength_of(rows: Array, labels: AnswerArray) -> float:
    """Return the strength that folds of the labels find best, a middling one where there are too few for folds."""
    if len(labels) < 10 or np.bincount(labels)[np.unique(labels)].min() < 2:
        return 10.0
    least = int(np.bincount(labels)[np.unique(labels)].min())
    folds = StratifiedKFold(3 if least >= 3 else 2, shuffle=True, random_state=0)
    found = GridSearchCV(LogisticRegression(max_iter=300), {"C": STRENGTHS}, cv=folds, refit=False)
    return float(found.fit(rows, labels).best_params_["C"])


def clear_answers(rows: Array, labels: AnswerArray, test: Array, strength: float) -> AnswerArray:
    """Return what the model without noise says of `test`, shape (n_test,); or the one class there is."""
    if len(np.unique(labels)) < 2:
        return np.full(len(test), labels[0] if len(labels) else 0, dtype=np.int64)
    fitted = LogisticRegression(C=strength, max_iter=300).fit(rows, labels)
    return np.asarray(fitted.predict(test), dtype=np.int64)


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
    values: Mapping[str, Any]
    n_classes: int
    in_series: bool
    has_examples: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str], *, n_classes: int, data_kind: str = "text") -> Self:
        """Return the planned recipe with `given` in its place; of a series of blocks it is the preset's own."""
        preset = PRESETS[PRESET]
        values = {name: value for name, value in preset.defaults.items() if name not in PRICES}
        values |= {"oracle": preset.oracle, "data_kind": data_kind, "normalizer": "L1"}
        values |= {"classes": [str(number) for number in range(n_classes)]}
        features = _features(values)
        if isinstance(features, Plans):
            values |= features.planned(values)
        of_blocks = {*names_of(Kind.STRATEGY, playing=SecretBlocks), "maximum_releases"}
        in_series = any(map(given.get, (Kind.STRATEGY.key, "selection_rate")))
        of_features = {each.name for each in features.parameters()}
        names = {"normalizer", "pool_epsilon", "pool_delta"} | of_blocks | of_features | names_of(Kind.ESTIMATOR)
        values = with_given(values, given, names - LEFT_OUT)
        if not in_series and any(map(values.get, of_blocks & given.keys())):
            raise ValueError(f"blocks need a selection_rate, the preset's is {preset.defaults['selection_rate']:g}")
        if broken := broken_rules(values):
            raise ValueError(str(joined_rules(broken)))
        if not issubclass(_chosen(Kind.STRATEGY, values), SecretBlocks):
            raise ValueError(f"{Kind.STRATEGY.key}: only secret blocks are simulated, got {values['selection']!r}")
        return cls(values, n_classes, in_series)

    @property
    def estimator(self) -> str:
        return str(self.values[Kind.ESTIMATOR.key])

    @property
    def features(self) -> FeaturesChoice:
        return _features(self.values)

    @property
    def blocks(self) -> SecretBlocks:
        return cast(SecretBlocks, _chosen(Kind.STRATEGY, self.values).of(self.values))

    @property
    def limit(self) -> tuple[float, float]:
        return self.values["pool_epsilon"], self.values["pool_delta"]

    @property
    def suited(self) -> Self:
        """These settings with what their estimator stands for."""
        suited = stands_for(cast(type[EstimatorChoice], _chosen(Kind.ESTIMATOR, self.values)))
        return replace(self, values={**self.values, Kind.ESTIMATOR.key: suited.name})

    def one_of_several(self) -> Self:
        """Return these settings with the part of the limit that one of several releases in the open gets."""
        releases = max(1, len(self.rates))
        limits = {name: self.values[name] / releases for name in ("pool_epsilon", "pool_delta")}
        return replace(self, values={**self.values, **limits}, in_series=False)

    @property
    def rates(self) -> tuple[float, ...]:
        """Public rates of the blocks that release, where there are blocks; their series has all of them."""
        return self.blocks.block_rates[: self.values.get("maximum_releases")] if self.in_series else ()

    def of_block(
        self,
        before: SecretBlockEvent | None,
        *,
        block: int,
        n_features: int,
        prior: LinearModel | None,
        start: LinearModel | None = None,
        **parameters: Any,
    ) -> tuple[PrivateEstimator, SecretBlockEvent]:
        """Return the estimator of one block, which together spend the account, and what it is charged."""
        priced = self.values
        if PRICES[0] not in priced:
            planned = self.blocks.planned({**priced, "maximum_releases": len(self.rates)})
            priced = {name: planned[name] * WHOLE for name in PRICES}
        epsilon, delta = (priced[name] for name in PRICES)
        estimator = self._estimator(epsilon, delta, prior, start=start, **parameters)
        training = estimator.event_for(n_features)
        event = SecretBlockEvent.next_of(before, training, block=block, rates=self.blocks.block_rates)
        if event is None:
            raise ValueError(f"block {block} costs more than its series was opened with")
        return estimator, event

    def training(self, rate: float, *, prior: LinearModel | None, rng: SimulationRandom) -> PrivateEstimator:
        """Return the estimator that spends the whole account on a secret sample of this rate; 1 for no secret."""
        pool_epsilon, pool_delta = self.limit
        epsilon, delta = inner_epsilon(pool_epsilon, rate) * WHOLE, pool_delta / rate * WHOLE
        if delta >= 1:
            raise ValueError(f"pool_delta must be below the rate {rate}, got {pool_delta}")
        return self._estimator(epsilon, delta, prior, start=prior, random_state=rng)

    def _estimator(
        self,
        epsilon: float,
        delta: float,
        prior: LinearModel | None,
        *,
        start: LinearModel | None,
        **parameters: Any,
    ) -> PrivateEstimator:
        choice = cast(type[EstimatorChoice], _chosen(Kind.ESTIMATOR, self.values))
        priced = choice.of({**self.values, **dict(zip(PRICES, (epsilon, delta), strict=True))})
        classes = list(range(self.n_classes))
        shape = Shape(classes, 1.0, INTERCEPT_SCALING, prior, has_examples=self.has_examples)
        estimator = priced.estimator(shape).set_params(**parameters)
        return estimator if start is None or not choice.picks else PickedFit(estimator, start)

    def event(self, estimator: PrivateEstimator, *, rate: float, n_features: int) -> Event:
        """Return what the release is charged, and check that the account holds it."""
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


def course(
    settings: TrustedSettings,
    rows: Array,
    labels: AnswerArray,
    test: Array,
    *,
    classes: Sequence[str],
    prior: LinearModel | None,
    rng: SimulationRandom,
) -> tuple[list[AnswerArray], list[NDArray[np.intp]]]:
    """Play all blocks of a pool and return the answers of each release on `test`, and which rows each asked about."""
    every = settings.blocks.block_rates
    drawn = draw_blocks(len(rows), every, rng)
    found: list[AnswerArray] = []
    asked: list[NDArray[np.intp]] = []
    charge: SecretBlockEvent | None = None
    sums: NoisySums | None = None
    model: LinearModel | None = None
    spent, spent_delta = 0.0, 0.0
    for block, rate in enumerate(settings.rates, start=1):
        chosen = np.flatnonzero(drawn == block)
        parameters: dict[str, Any] = {"prior": model or prior, "start": model or prior, "random_state": rng}
        if sums is not None:
            of_earlier, of_own = weights_of_block(every[: block - 1], rate)
            parameters |= {"earlier": sums.times(of_earlier), "own_weight": of_own, "prior": prior}
        estimator, charge = settings.of_block(charge, block=block, n_features=rows.shape[1], **parameters)
        spent, spent_delta = spent + charge.cost().epsilon, spent_delta + charge.cost().delta
        if spent > settings.limit[0] or spent_delta > settings.limit[1]:
            raise ValueError(f"the series costs ({spent}, {spent_delta}), more than the account holds")
        model = fitted_model(estimator, rows[chosen], labels[chosen], classes=classes)
        fitted = estimator.fit_ if isinstance(estimator, PickedFit) else estimator
        sums = fitted.sums_ if isinstance(fitted, PrivateSums) else None
        found.append(model.leaders(model.decision_function(test)).astype(np.int64))
        asked.append(chosen)
    return found, asked


def fitted_model(
    estimator: PrivateEstimator, rows: Array, labels: AnswerArray, *, classes: Sequence[str]
) -> LinearModel:
    sets = isinstance(estimator, PrivateLabelSets)
    estimator.fit(rows, np.eye(len(classes), dtype=np.bool_)[labels] if sets else labels)
    return LinearModel(estimator.coef_, estimator.intercept_, tuple(classes), estimator.multiclass)


def rounds(
    estimator: PrivateEstimator,
    strategy: QueryStrategy,
    rows: NDArray[np.float32],
    labels: AnswerArray,
    test: Array,
    *,
    classes: Sequence[str],
    label_counts: Sequence[int],
    round_size: int,
    rng: SimulationRandom,
) -> list[AnswerArray]:
    """Ask in rounds in the open and train anew at each number of labels; return the answers on `test`."""
    asked: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    model: LinearModel | None = None
    found: list[AnswerArray] = []
    for wanted in label_counts:
        while len(asked) < wanted:
            candidates = np.setdiff1d(np.arange(len(rows)), asked)
            picks = min(round_size, wanted - len(asked))
            chooser = RandomChoice() if model is None else strategy
            asked = np.concatenate([asked, chooser.query(rows, candidates, model, picks, rng)])
        model = fitted_model(estimator, rows[asked].astype(np.float64), labels[asked], classes=classes)
        found.append(model.leaders(model.decision_function(test)).astype(np.int64))
    return found


# Beyond so many labels times classes the baseline is fitted for a few seeds only: it hardly moves any more.
LARGE_BASELINE, FEW_SEEDS = 20_000, 3
IMAGE_SIDE = 8


def simulate_trusted(task: SimulationTask) -> Outcome:
    if task.label_counts[-1] > task.n_records or task.label_counts[0] < 1:
        raise ValueError(f"labels must be within [1, {task.n_records}], got {task.label_counts}")
    settings = settings_of(task)
    # Small products by the thousand: threads of a BLAS would wait for each other most of the time.
    with threadpool_limits(limits=1, user_api="blas"):
        return _played(task, settings)


def _played(task: SimulationTask, settings: TrustedSettings) -> Outcome:
    play = Play.of(task, settings)
    counts = np.bincount(task.labels, minlength=len(task.classes))
    constant = np.full_like(task.test_labels, counts.argmax())
    first = play.version_0.leaders(play.version_0.decision_function(play.test)) if play.version_0 else constant
    points = []
    for labels in task.label_counts:
        releases, random, clear = play.predictions(labels)
        made = [releases[-1], random, [first], clear, [constant]]
        project, chance, words, plain, always = (MeanAccuracy.over_seeds(found, task.test_labels) for found in made)
        each = tuple(MeanAccuracy.over_seeds(found, task.test_labels) for found in releases)
        points.append(OutcomePoint(labels, project, chance, words, plain, always, each if len(each) > 1 else ()))
    account = SimulatedAccount("pool", "record", *settings.limit)
    return Outcome((account,), tuple(points), _notes(task, settings, points))


@dataclass(frozen=True, slots=True)
class Play:
    task: SimulationTask
    settings: TrustedSettings
    rows: Array
    test: Array
    version_0: LinearModel | None
    prior: LinearModel | None
    examples: tuple[Array, AnswerArray]

    @classmethod
    def of(cls, task: SimulationTask, settings: TrustedSettings) -> "Play":
        rows, test = encoded_records(task, settings)
        if task.rows is not None:
            nothing = (np.empty((0, rows.shape[1])), np.empty(0, dtype=np.int64))
            return cls(task, settings, rows, test, None, None, nothing)
        encode = _encoder(settings)
        texts, places = public_examples(task.classes, task.descriptions)
        words = EncodedWords(tuple(task.classes), task.descriptions, encode, knows_names=True)
        suited = settings.suited
        prior = suited.training(1.0, prior=None, rng=SimulationRandom(0)).leaning(words)
        return cls(task, settings, rows, test, words.model(), prior, (encode(texts), places))

    def predictions(self, labels: int) -> tuple[list[list[AnswerArray]], list[AnswerArray], list[AnswerArray]]:
        """Return test answers of each release of the project, of random choice and of no privacy, one array a seed."""
        project: list[list[AnswerArray]] = []
        random: list[AnswerArray] = []
        clear: list[AnswerArray] = []
        suited = self.settings.suited
        rate = labels / self.task.n_records
        large = labels * len(self.task.classes) > LARGE_BASELINE
        strength: float | None = None
        for seed in self.task.repetitions:
            rng = SimulationRandom(1_000_003 * seed + labels)
            if not suited.in_series:
                secret = np.flatnonzero(rng.generator.random(self.task.n_records) < rate)
                project.append([self._private(suited, secret, rate, rng)])
            else:
                made, secret = self.series(suited, rng, labels)
                project.append(made)
            shown = rng.generator.permutation(self.task.n_records)[:labels]
            random.append(self._private(suited.one_of_several(), shown, 1.0, rng))
            if not (large and len(clear) >= FEW_SEEDS):
                strength = strength or strength_of(*self._labelled(secret[:MOST_TUNED]))
                clear.append(clear_answers(*self._labelled(secret), self.test, strength))
        return [list(release) for release in zip(*project, strict=True)], random, clear

    def series(
        self, settings: TrustedSettings, rng: SimulationRandom, labels: float
    ) -> tuple[list[AnswerArray], NDArray[np.intp]]:
        size = round(labels / sum(settings.rates))
        if size > self.task.n_records:
            raise ValueError(f"blocks with {labels} labels need a pool of {size} records, got {self.task.n_records}")
        pool = rng.generator.permutation(self.task.n_records)[:size]
        made, asked = course(
            settings,
            self.rows[pool],
            self.task.labels[pool],
            self.test,
            classes=self.task.classes,
            prior=self.prior,
            rng=rng,
        )
        return made, pool[np.concatenate(asked)]

    def _private(
        self, settings: TrustedSettings, chosen: NDArray[np.intp], rate: float, rng: SimulationRandom
    ) -> AnswerArray:
        estimator = settings.training(rate, prior=self.prior, rng=rng)
        settings.event(estimator, rate=rate, n_features=self.rows.shape[1])
        model = fitted_model(estimator, self.rows[chosen], self.task.labels[chosen], classes=self.task.classes)
        return model.leaders(model.decision_function(self.test)).astype(np.int64)

    def _labelled(self, chosen: NDArray[np.intp]) -> tuple[Array, AnswerArray]:
        rows, places = self.examples
        return np.vstack([self.rows[chosen], rows]), np.concatenate([self.task.labels[chosen], places])


def settings_of(task: SimulationTask) -> TrustedSettings:
    kind = "text" if task.rows is None else "table" if task.rows.ndim == 2 else "image"
    found = TrustedSettings.of(task.settings, n_classes=len(task.classes), data_kind=kind)
    return replace(found, has_examples=has_examples(task))


def encoded_records(task: SimulationTask, settings: TrustedSettings) -> tuple[Array, Array]:
    """Return the rows of all records and of the test records, each of norm one at most, as a training reads them."""
    if task.rows is not None and task.test_rows is not None:
        colour = isinstance(settings.features, ReadsImages) and settings.features.is_colour
        return rows_of_numbers(task.rows, colour=colour), rows_of_numbers(task.test_rows, colour=colour)
    encode = _encoder(settings)
    return encode(task.texts), encode(task.test_texts)


def has_examples(task: SimulationTask) -> bool:
    """Say whether the owner wrote examples of classes, enough to train towards."""
    return enough_examples(task.classes, task.descriptions)


def _encoder(settings: TrustedSettings) -> Callable[[Sequence[str]], Array]:
    def encode(texts: Sequence[str]) -> NDArray[np.float64]:
        shape = RecordShape("text", settings.values["feature_dimension"], settings.values["normalizer"])
        return settings.features.featurizer(shape).transform(list(texts)).astype(np.float64)

    return encode


def rows_of_numbers(images: NDArray[np.generic], *, colour: bool = False) -> Array:
    if images.ndim == 2:
        rows = images.astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1.0) * (1 - 1e-9)
    grey = images if colour or images.ndim == 3 else images.mean(axis=3).astype(images.dtype)
    height, width = grey.shape[1:3]
    shape = RecordShape("image", min(IMAGE_SIDE**2, height * width), image_height=height, image_width=width)
    rules = DeclaredRules(image_colours="colour" if grey.ndim == 4 else "grey")
    return rules.featurizer(shape).transform(grey).astype(np.float64)


def _releases_note(settings: TrustedSettings) -> str:
    if not settings.in_series:
        return (
            "Each number of labels is a project of its own: one secret sample, one release, the whole limit. A project "
            "on a site divides its limit among blocks unless its settings say one release; selection_rate=0.1 does so "
            "here."
        )
    return (
        f"Each number of labels is a project of its own that spends the whole limit on {len(settings.rates)} releases, "
        "one of each secret block; a pool that gives so many labels on average. Random choice spends an equal part of "
        "the limit on as many releases in the open, and its last one is shown, made of all labels."
    )


def _notes(task: SimulationTask, settings: TrustedSettings, points: list[OutcomePoint]) -> tuple[str, ...]:
    estimators = settings.suited.estimator
    notes = [
        _releases_note(settings),
        f"Training: {estimators}, {settings.values['text_columns']} columns of the "
        f"{'sentence network' if settings.values.get('sentence_network') else 'static encoder'}."
        if task.rows is None
        else f"Training: {estimators} on rows of norm one; images pooled to {IMAGE_SIDE} by {IMAGE_SIDE}.",
        "No privacy: logistic regression on the same columns and labels, public examples added, its strength chosen by "
        "folds of its own labels.",
    ]
    for point in points:
        if not point.beats_constant:
            notes.append(f"At {point.labels} labels the release does not beat a constant and would be flagged.")
        elif point.project.accuracy < point.version_0.accuracy:
            notes.append(f"At {point.labels} labels the release does not beat version 0 and would be flagged.")
    return tuple(notes)
