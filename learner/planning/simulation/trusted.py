"""A pool labelled by trusted experts, on labelled public data: secret samples, and what their models must beat."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from learner.estimators.version_zero import EncodedWords, enough_examples, public_examples
from learner.features.choice import RecordShape
from learner.features.declared_rules import DeclaredRules
from learner.features.image import ImageFeaturizer, ReadsImages
from learner.linear_model import LinearModel
from learner.planning.simulation.course import course
from learner.planning.simulation.noise_free import MOST_TUNED, AnswerArray, clear_answers, strength_of
from learner.planning.simulation.outcome import MeanAccuracy, Outcome, OutcomePoint, SimulatedAccount
from learner.planning.simulation.task import SimulationTask
from learner.planning.simulation.trusted_settings import TrustedSettings
from privacy.arrays import Array
from privacy.mechanisms.randomness import SimulationRandom

# Names alone are worth leaning on while a class has few labels: a public rule, by the planned number of them.
MOST_LABELS_BESIDE_NAMES = 50
# Beyond so many labels times classes the baseline is fitted for a few seeds only: it hardly moves any more.
LARGE_BASELINE, FEW_SEEDS = 20_000, 3
IMAGE_SIDE = 8


def simulate_trusted(task: SimulationTask) -> Outcome:
    """Play a project of trusted experts, each number of labels as a project of its own that releases once.

    Parameters
    ----------
    task : Task
        Labelled public records, and settings over those of the preset.

    Returns
    -------
    Outcome
        `random` chooses in the open as many records as the secret sample is planned to have and spends the same
        limit, without the amplification that secrecy gives.

    Raises
    ------
    ValueError
        If a setting is unknown or out of range, or there are fewer records than labels.
    """
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
    """A task as its project reads it: encoded once, played as often as there are seeds."""

    task: SimulationTask
    settings: TrustedSettings
    rows: Array
    test: Array
    version_0: LinearModel | None
    prior: LinearModel | None
    examples: tuple[Array, AnswerArray]

    @classmethod
    def of(cls, task: SimulationTask, settings: TrustedSettings) -> "Play":
        """Encode the records once, and read what was written about classes."""
        rows, test = encoded_records(task, settings)
        if task.rows is not None:
            nothing = (np.empty((0, rows.shape[1])), np.empty(0, dtype=np.int64))
            return cls(task, settings, rows, test, None, None, nothing)
        encode = _encoder(settings)
        texts, places = public_examples(task.classes, task.descriptions)
        words = EncodedWords(tuple(task.classes), task.descriptions, encode, knows_names=True)
        suited = settings.suited(labels=task.label_counts[-1])
        prior = suited.training(1.0, prior=None, rng=SimulationRandom(0)).leaning(words)
        return cls(task, settings, rows, test, words.model(), prior, (encode(texts), places))

    def predictions(self, labels: int) -> tuple[list[list[AnswerArray]], list[AnswerArray], list[AnswerArray]]:
        """Return test answers of each release of the project, of random choice and of no privacy, one array a seed."""
        project: list[list[AnswerArray]] = []
        random, clear = [], []
        suited = self.settings.suited(labels=labels)
        rate = labels / self.task.n_records
        large = labels * len(self.task.classes) > LARGE_BASELINE
        strength: float | None = None
        for seed in range(self.task.seeds):
            rng = SimulationRandom(1_000_003 * seed + labels)
            if not suited.in_series:
                secret = np.flatnonzero(rng.generator.random(self.task.n_records) < rate)
                project.append([self._private(suited, secret, rate, rng, labels)])
            else:
                made, secret = self.series(suited, rng, labels)
                project.append(made)
            shown = rng.generator.permutation(self.task.n_records)[:labels]
            random.append(self._private(suited.one_of_several(), shown, 1.0, rng, labels))
            if not (large and seed >= FEW_SEEDS):
                strength = strength or strength_of(*self._labelled(secret[:MOST_TUNED]))
                clear.append(clear_answers(*self._labelled(secret), self.test, strength))
        return [list(release) for release in zip(*project, strict=True)], random, clear

    def series(
        self, settings: TrustedSettings, rng: SimulationRandom, labels: float
    ) -> tuple[list[AnswerArray], NDArray[np.intp]]:
        """Return what each block's release answers, and which rows were asked about.

        The pool is so large that blocks hold so many labels on average, before a screen leaves any out.
        """
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
        return made, pool[asked]

    def _private(
        self, settings: TrustedSettings, chosen: NDArray[np.intp], rate: float, rng: SimulationRandom, labels: int
    ) -> AnswerArray:
        estimator = settings.training(rate, prior=self._prior_for(labels), rng=rng)
        settings.event(estimator, rate=rate, n_features=self.rows.shape[1])
        estimator.fit(self.rows[chosen], self.task.labels[chosen])
        model = LinearModel(estimator.coef_, estimator.intercept_, tuple(self.task.classes), estimator.multiclass)
        return model.leaders(model.decision_function(self.test)).astype(np.int64)

    def _prior_for(self, labels: int) -> LinearModel | None:
        """Return what to lean on: always what was described, bare names only beside few labels."""
        if has_examples(self.task) or labels <= MOST_LABELS_BESIDE_NAMES * len(self.task.classes):
            return self.prior
        return None

    def _labelled(self, chosen: NDArray[np.intp]) -> tuple[Array, AnswerArray]:
        """Return the labels of the sample beside the public examples, the prior of both trainings."""
        rows, places = self.examples
        return np.vstack([self.rows[chosen], rows]), np.concatenate([self.task.labels[chosen], places])


def settings_of(task: SimulationTask) -> TrustedSettings:
    """Return the recipe of a task: what is planned for its classes, with its own settings in their place."""
    kind = "text" if task.rows is None else "table" if task.rows.ndim == 2 else "image"
    return TrustedSettings.of(task.settings, n_classes=len(task.classes), data_kind=kind)


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
    """Return pooled pixels of images, grey or in colour, or rows of numbers scaled each to norm one."""
    if images.ndim == 2:
        rows = images.astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1.0) * (1 - 1e-9)
    if colour and images.ndim == 4:
        shape = RecordShape("image", IMAGE_SIDE**2, image_height=images.shape[1], image_width=images.shape[2])
        return DeclaredRules(image_colours="colour").featurizer(shape).transform(images).astype(np.float64)
    grey = images if images.ndim == 3 else images.mean(axis=3).astype(images.dtype)
    height, width = grey.shape[1:]
    pooled = (min(IMAGE_SIDE, height), min(IMAGE_SIDE, width))
    return ImageFeaturizer(height, width, pooled=pooled, centered=True).transform(grey).astype(np.float64)


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
    kinds = (settings.suited(labels=point.labels).estimator for point in points)
    estimators = ", ".join(dict.fromkeys(kinds))
    notes = [
        _releases_note(settings),
        f"Training: {estimators}, {settings.values['text_columns']} columns of the static encoder."
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
