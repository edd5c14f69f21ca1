"""Simulated streams."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.base import Teaching
from annotation.choices.label_types.catalogue import label_type_of
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.confirm import NO, YES, ConfirmGuess
from annotation.choices.policies import Batch, BatchPolicy, BatchState, FixedBatches, policy_choice_of
from annotation.choices.presets import PRESETS, broken_rules
from learner.estimators.choice import INTERCEPT_SCALING, EstimatorChoice, Shape
from learner.estimators.streaming import AnsweredBatch, StreamingLinearClassifier
from learner.estimators.version_zero import EncodedWords, public_examples
from learner.features.base import Featurizer
from learner.features.choice import FeaturesChoice, RecordShape
from learner.linear_model import LinearModel
from learner.pools.streaming import examine, guessed_classes
from learner.simulation.outcome import MeanAccuracy, Outcome, OutcomePoint, SimulatedAccount
from learner.simulation.reading import names_of, with_given
from learner.simulation.task import SimulationTask
from learner.simulation.trusted import MOST_TUNED, AnswerArray, clear_answers, rows_of_numbers, strength_of
from learner.strategies.bernoulli_screen import BernoulliScreen, TwoRates
from privacy.accounting.event import Event
from privacy.accounting.events import StreamEvent
from privacy.arrays import Array
from privacy.choices import Kind
from privacy.mechanisms.randomness import RandomSource, SimulationRandom
from privacy.wording import joined_rules

# What is played as it is chosen.
PLAYED = (Kind.STRATEGY, Kind.ESTIMATOR, Kind.POLICY, Kind.FEATURES, Kind.STREAM, Kind.RELEASES)
# Prices of one update, and the limits they are part of.
PRICE: Mapping[str, str] = {"training_epsilon": "pool_epsilon", "training_delta": "pool_delta"}
# What a rounding may add to a price that is planned to be the whole limit.
WHOLE = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class StreamSettings:
    values: Mapping[str, Any]
    n_classes: int

    @classmethod
    def of(cls, preset: str, given: Mapping[str, str], *, classes: tuple[str, ...], data_kind: str) -> Self:
        """Return the preset with `given` in place of its own; what is given as nothing is left out."""
        values = dict(PRESETS[preset].defaults) | {"oracle": PRESETS[preset].oracle}
        values |= {"classes": list(classes), "data_kind": data_kind}
        values = with_given(values, given, {"normalizer", *PRICE.values(), *names_of(*PLAYED)})
        if broken := broken_rules(values):
            raise ValueError(str(joined_rules(broken)))
        return cls(values, len(classes))

    @property
    def asks_all(self) -> bool:
        """True where every record is asked about, so that there is nothing to choose."""
        return self.screen() is None

    @property
    def confirms(self) -> bool:
        kind = label_type_of(self.values.get("question_kind", ChooseOne.name), self.values)
        return kind.teaches == Teaching.CONFIRMATIONS

    @property
    def ahead(self) -> int:
        return int(self.values.get("windows_ahead", 1))

    def featurizer(self) -> Featurizer:
        choice = chosen_of(Kind.FEATURES, {"features": "standard", **self.values})
        assert choice is not None
        shape = RecordShape("text", int(self.values["feature_dimension"]), self.values.get("normalizer") or "L1")
        return cast(FeaturesChoice, choice.of(self.values)).featurizer(shape)

    def screen(self) -> BernoulliScreen | None:
        choice = chosen_of(Kind.STRATEGY, self.values)
        assert choice is not None
        found = choice.of(self.values)
        return found.strategy() if isinstance(found, TwoRates) else None

    def policy(self) -> BatchPolicy:
        return policy_choice_of(self.values).batches()

    def learner(self, rng: RandomSource, *, whole: bool = False) -> StreamingLinearClassifier:
        """Return the learner, not started; one update may cost the `whole` of the limit."""
        classes = list(range(self.n_classes))
        price = {name: self.values[name] for name in PRICE if name in self.values}
        if whole:
            price = {name: self.values[PRICE[name]] * WHOLE for name in price}
        choice = chosen_of(Kind.ESTIMATOR, self.values)
        assert choice is not None
        shape = Shape(classes, 1.0, INTERCEPT_SCALING)
        learner = cast(EstimatorChoice, choice.of({**self.values, **price})).estimator(shape)
        if not isinstance(learner, StreamingLinearClassifier):
            raise ValueError(f"{Kind.ESTIMATOR.key}: {choice.name} makes no updates of batches")
        learner.set_params(random_state=rng)
        return learner

    def event(self, learner: StreamingLinearClassifier, *, n_features: int, chosen: bool = True) -> Event:
        """Return what the whole stream is charged; without being `chosen` records are asked about by chance alone."""
        update = learner.event_for(n_features)
        screen, policy = (self.screen() if chosen else None), self.policy()
        high, low = (1.0, 1.0) if screen is None else screen.rates
        event = StreamEvent(high, low, update, policy.selection_visible, policy.schedule)
        cost = event.cost()
        if cost.epsilon > self.values["pool_epsilon"] or cost.delta > self.values["pool_delta"]:
            raise ValueError(f"the stream costs ({cost.epsilon}, {cost.delta}), more than the account holds")
        return event


# Records examined at once, as a worker does it.
RECORDS_PER_STEP = 8192


def simulate_stream(preset: str) -> Callable[[SimulationTask], Outcome]:
    """Return what plays a stream preset on a task: one stream a seed, looked at after each number of answers."""

    def simulate(task: SimulationTask) -> Outcome:
        kind = "text" if task.rows is None else "table"
        settings = StreamSettings.of(preset, task.settings, classes=task.classes, data_kind=kind)
        if task.label_counts[0] < 1:
            raise ValueError(f"labels must be >= 1, got {task.label_counts}")
        # Small products by the thousand: threads of a BLAS would wait for each other most of the time.
        with threadpool_limits(limits=1, user_api="blas"):
            return _played(task, settings)

    return simulate


def _played(task: SimulationTask, settings: StreamSettings) -> Outcome:
    play = StreamPlay.of(task, settings)
    constant = np.full_like(task.test_labels, np.bincount(task.labels, minlength=len(task.classes)).argmax())
    first = play.version_0.leaders(play.version_0.decision_function(play.test)) if play.version_0 else constant
    project = [play.answers(seed, chosen=True) for seed in task.repetitions]
    random = project if settings.asks_all else [play.answers(seed, chosen=False) for seed in task.repetitions]
    points = []
    for place, labels in enumerate(task.label_counts):
        made = [[run[place] for run in project], [run[place] for run in random], [first]]
        made += [[play.clear(seed, labels) for seed in task.repetitions], [constant]]
        seen, chance, words, plain, always = (MeanAccuracy.over_seeds(found, task.test_labels) for found in made)
        points.append(OutcomePoint(labels, seen, chance, words, plain, always))
    account = SimulatedAccount("pool", "record", settings.values["pool_epsilon"], settings.values["pool_delta"])
    return Outcome((account,), tuple(points), _notes(task, settings, points))


@dataclass(slots=True)
class _Arrival:
    n_records: int
    rng: np.random.Generator
    drawn: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def upto(self, stop: int) -> NDArray[np.intp]:
        while len(self.drawn) < stop:
            self.drawn = np.concatenate([self.drawn, self.rng.permutation(self.n_records)])
        return self.drawn


@dataclass(frozen=True, slots=True)
class StreamPlay:
    task: SimulationTask
    settings: StreamSettings
    rows: NDArray[np.float32]
    test: Array
    version_0: LinearModel | None
    start: LinearModel | None
    examples: tuple[Array, AnswerArray]

    @classmethod
    def of(cls, task: SimulationTask, settings: StreamSettings) -> "StreamPlay":
        if task.rows is not None and task.test_rows is not None:
            return cls.of_rows(task, settings, rows_of_numbers(task.rows), rows_of_numbers(task.test_rows))
        featurizer = settings.featurizer()

        def encode(texts: Sequence[str]) -> Array:
            return featurizer.transform(list(texts)).astype(np.float64)

        texts, places = public_examples(task.classes, task.descriptions)
        words = EncodedWords(tuple(task.classes), task.descriptions, encode, featurizer.knows_words)
        start = settings.learner(SimulationRandom(0)).first_model(words)
        examples = encode(texts) if texts else np.empty((0, featurizer.dimension))
        rows, test = encode(task.texts), encode(task.test_texts)
        return cls(task, settings, _narrow(rows), test, words.model(), start, (examples, places))

    @classmethod
    def of_rows(cls, task: SimulationTask, settings: StreamSettings, rows: Array, test: Array) -> "StreamPlay":
        """Take rows of norm one at most, about which nothing was written."""
        nothing = (np.empty((0, rows.shape[1])), np.empty(0, dtype=np.int64))
        return cls(task, settings, _narrow(rows), test, None, None, nothing)

    def answers(self, seed: int, *, chosen: bool) -> list[AnswerArray]:
        rng = SimulationRandom(1_000_003 * seed + chosen)
        learner = self.settings.learner(rng, whole=not chosen)
        self.settings.event(learner, n_features=self.rows.shape[1], chosen=chosen)
        if self.start is None:
            learner.start(self.rows.shape[1])
        else:
            learner.start_from(self.start.coef, self.start.intercept)
        arrival = _Arrival(self.task.n_records, self._order(seed))
        found: list[AnswerArray] = []
        for answered, after in self._batches(learner, arrival, rng, chosen=chosen):
            while len(found) < len(self.task.label_counts) and answered >= self.task.label_counts[len(found)]:
                found.append(self._said(after))
        return found

    def clear(self, seed: int, labels: int) -> AnswerArray:
        """Return what logistic regression without noise says, fitted to as many records as they came."""
        order = _Arrival(self.task.n_records, self._order(seed)).upto(labels)[:labels]
        tuned = self._labelled(order[:MOST_TUNED])
        return clear_answers(*self._labelled(order), self.test, strength_of(*tuned))

    def _order(self, seed: int) -> np.random.Generator:
        return np.random.default_rng((20_261_124, seed))

    def _labelled(self, order: NDArray[np.intp]) -> tuple[Array, AnswerArray]:
        rows, places = self.examples
        own = self.rows[order].astype(np.float64)
        return np.vstack([own, rows]), np.concatenate([self.task.labels[order], places])

    def _batches(
        self, learner: StreamingLinearClassifier, arrival: _Arrival, rng: SimulationRandom, *, chosen: bool
    ) -> Iterator[tuple[int, StreamingLinearClassifier]]:
        """Examine and update until the last number of answers is there; yield after each update."""
        names, answered = tuple(map(str, learner.classes_)), 0
        state, policy = BatchState(), self.settings.policy() if chosen else FixedBatches(self._batch_size())
        read: list[AnsweredBatch] = []
        guessed: dict[int, int] = {}
        # Of two classes either answer to a guess names one, whatever was guessed.
        guesses_matter = self.settings.confirms and len(names) > 2
        # Where no screen scores records the first model stands for all: making one takes longer than an update.
        first_model = LinearModel(learner.coef_, learner.intercept_, names, "softmax")
        while answered < self.task.label_counts[-1]:
            first = state.next_slot
            order = arrival.upto(first + RECORDS_PER_STEP)[first : first + RECORDS_PER_STEP]
            screen = self.settings.screen() if chosen else None
            seen = examine(
                self.rows[order],
                first_slot=first,
                state=state,
                examiner=screen,
                policy=policy,
                model=LinearModel(learner.coef_, learner.intercept_, names, "softmax") if screen else first_model,
                rng=rng,
                most_batches=self.settings.ahead,
            )
            state = seen.state
            if guesses_matter:
                said = guessed_classes(learner, self.rows[order[seen.selected]], rng=rng)
                guessed |= dict(zip((first + seen.selected).tolist(), said.tolist(), strict=True))
            for batch in seen.batches:
                own = arrival.drawn[list(batch.slots)]
                named, labels = np.ones(len(own), dtype=np.bool_), self.task.labels[own]
                if guesses_matter:
                    guesses = np.array([guessed.pop(slot) for slot in batch.slots])
                    said = np.where(guesses == labels, YES, NO)
                    named, labels = ConfirmGuess().targets(said, guesses, n_classes=len(self.task.classes))
                read = self._update(learner, batch, (self.rows[own[named]], labels), read)
                answered += len(own)
                yield answered, learner

    @staticmethod
    def _update(
        learner: StreamingLinearClassifier,
        batch: Batch,
        answers: tuple[NDArray[np.float32], AnswerArray],
        before: list[AnsweredBatch],
    ) -> list[AnsweredBatch]:
        new = AnsweredBatch(*answers, asked=batch.denominator or len(batch.slots))
        earlier = batch.number - 1 - learner.first_read(batch.number - 1)
        read = [*before[len(before) - earlier :], new]
        learner.learn_batches(read, new=1)
        return read

    def _batch_size(self) -> int:
        screen = self.settings.screen()
        return self.settings.policy().asked_at(1.0 if screen is None else float(screen.rates[0]))

    def _said(self, learner: StreamingLinearClassifier) -> AnswerArray:
        return np.asarray(learner.predict(self.test), dtype=np.int64)


def _narrow(rows: Array) -> NDArray[np.float32]:
    # A little shorter, since float32 may round a row beyond the bound.
    return (rows * (1 - 1e-6)).astype(np.float32)


def _notes(task: SimulationTask, settings: StreamSettings, points: list[OutcomePoint]) -> tuple[str, ...]:
    notes = [
        f"Training: {settings.values['estimator']}, updates {settings.values['update_policy']}; labels are answers.",
        "Where answers need more records than the file holds, it arrives again in another order.",
        "No privacy: logistic regression on as many records as they arrive, its strength chosen by folds of them.",
    ]
    if settings.asks_all:
        notes.append("Every record is asked about, so random choice is the project itself.")
    for point in points:
        if not point.beats_constant:
            notes.append(f"At {point.labels} labels the release does not beat a constant and would be flagged.")
        elif task.rows is None and point.project.accuracy < point.version_0.accuracy:
            notes.append(f"At {point.labels} labels the release does not beat version 0 and would be flagged.")
    return tuple(notes)
