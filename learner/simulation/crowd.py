"""Simulated crowd projects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotation.choices.catalogue import chosen_of
from annotation.choices.consensus import plurality
from annotation.choices.gates import gate_from, run_event
from annotation.choices.presets import PRESETS
from annotation.choices.randomizers import chosen_randomizer
from learner.estimators.adaptation import adapt_to_texts
from learner.estimators.channel import ChannelClassifier
from learner.estimators.version_zero import Encode, word_directions
from learner.features.static_encoder import StaticEncoder
from learner.linear_model import LinearModel
from learner.simulation.outcome import MeanAccuracy, Outcome, OutcomePoint, SimulatedAccount
from learner.simulation.reading import names_of, with_given
from learner.simulation.task import SimulationTask
from learner.strategies.base import QueryStrategy, StrategyChoice, strategy_behind
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.random import RandomChoice
from privacy.accounting.cost import Cost, Unit
from privacy.accounting.events import AnswersEvent
from privacy.choices import Kind
from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer, normalize_texts
from privacy.mechanisms.randomized_response import mechanism_of
from privacy.mechanisms.randomness import SimulationRandom
from privacy.wording import joined_rules

PRESET = "voice-crowd"
# What is played as it is chosen; how answers are learned from, the preset says.
PLAYED = (Kind.GATE, Kind.RANDOMIZER, Kind.STRATEGY)
# Of these as much is there as everything costs.
LIMITS = ("pool_epsilon", "pool_delta", "labels_epsilon")


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """All settings of one simulation, by the names a project stores them under."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        preset = PRESETS[PRESET]
        values = {name: value for name, value in preset.defaults.items() if name not in LIMITS}
        values |= {"oracle": preset.oracle, "data_kind": preset.data_kinds[0]}
        values = with_given(values, given, {"privacy_unit", "overlap", "round_size", *names_of(*PLAYED)})
        broken: dict[str, str] = {}
        for kind in PLAYED:
            choice = chosen_of(kind, values)
            assert choice is not None
            broken |= choice.broken_by(values)
        if broken:
            raise ValueError(str(joined_rules(broken)))
        settings = cls(values)
        settings.answers_event(2)
        if values.get("repeat_votes"):
            raise ValueError("repeat_votes: no question is asked again here")
        return settings

    @property
    def round_size(self) -> int:
        return int(self.values["round_size"])

    @property
    def overlap(self) -> int:
        return int(self.values["overlap"])

    @property
    def epsilon_once(self) -> float:
        """Largest price of one randomisation with which all that a unit can move stays within the account."""
        return self.answers_event(2).epsilon

    def answers_event(self, n_classes: int) -> AnswersEvent:
        randomizer = chosen_randomizer(self.values)
        event = None if randomizer is None else randomizer.of(self.values).event(n_classes=n_classes)
        if event is None:
            raise ValueError(f"{Kind.RANDOMIZER.key}: only answers that are randomised are simulated")
        return event

    def strategy(self, *, private: bool) -> QueryStrategy:
        choice = chosen_of(Kind.STRATEGY, self.values)
        assert choice is not None
        chosen = cast(StrategyChoice, choice.of(self.values))
        return strategy_behind(chosen, self.epsilon_once if private else None)

    def gate(self, *, named: bool) -> CountingGate:
        return gate_from(self._gate_settings(named=named))

    def _gate_settings(self, *, named: bool) -> Mapping[str, Any]:
        return self.values if named else {**self.values, "privacy_unit": "record"}

    def gate_cost(self, *, named: bool) -> tuple[Cost, Unit]:
        return run_event(self._gate_settings(named=named)).cost(), self.gate(named=named).unit

    def normalized(self, texts: Sequence[str]) -> list[str]:
        normal = normalize_texts(pa.array(texts, pa.large_string()), Normalizer(self.values["normalizer"]))
        return [str(text) for text in normal.to_pylist()]


BATCH_RECORDS = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class CrowdPool:
    """Texts with their counts, and what the records behind each of them mean."""

    texts: tuple[str, ...]
    counts: NDArray[np.float64]
    answers: tuple[NDArray[np.int64], ...]
    passed: int
    different: int
    assumed: bool

    def to_json(self) -> dict[str, Any]:
        return {"texts": self.different, "passed": self.passed, "assumed": self.assumed}


def crowd_pool(task: SimulationTask, settings: CrowdSettings, *, seed: int) -> CrowdPool:
    normal = np.array(settings.normalized(task.texts), dtype=object)
    different, place, counts = np.unique(normal, return_inverse=True, return_counts=True)
    if len(different) < task.label_counts[-1]:
        raise ValueError(f"{len(different)} different texts are fewer than {task.label_counts[-1]} labels")
    released = _released(task, settings, SimulationRandom(seed))
    found = {text: count for text, count in released.items() if text}
    assumed = len(found) < task.label_counts[-1]
    texts = [str(text) for text in different if text] if assumed else sorted(found)
    where = {str(text): position for position, text in enumerate(different)}
    behind = np.split(task.labels[np.argsort(place, kind="stable")], np.cumsum(counts)[:-1])
    return CrowdPool(
        texts=tuple(texts),
        counts=np.array([counts[where[text]] if assumed else found[text] for text in texts], dtype=np.float64),
        answers=tuple(behind[where[text]] for text in texts),
        passed=len(found),
        different=len(different),
        assumed=assumed,
    )


def _released(task: SimulationTask, settings: CrowdSettings, rng: SimulationRandom) -> dict[str, float]:
    gate = settings.gate(named=task.contributors is not None)
    table = gate.release(_batches(task), rng=rng)
    # A noisy count may be 0 or less; the text was said all the same.
    counts = np.maximum(np.asarray(table.column(1).to_pylist(), dtype=np.float64), 1.0)
    return dict(zip(table["text"].to_pylist(), counts.tolist(), strict=True))


def _batches(task: SimulationTask) -> Iterator[pa.RecordBatch]:
    for start in range(0, task.n_records, BATCH_RECORDS):
        part = slice(start, start + BATCH_RECORDS)
        columns = {"text": pa.array(task.texts[part], pa.large_string())}
        if task.contributors is not None:
            columns["contributor"] = pa.array(task.contributors[part], pa.large_string())
        yield pa.RecordBatch.from_pydict(columns)


# Between two points the penalty of the last one is kept; this one before the first.
FIRST_PENALTY = 3.0

# Predictions for the test records at every number of labels.
Course = list[NDArray[np.int64]]


def simulate_crowd(task: SimulationTask, *, encode: Encode | None = None, prior: LinearModel | None = None) -> Outcome:
    """Play a crowd's project from its gate to its models, beside what it must beat."""
    settings = CrowdSettings.of(task.settings)
    if task.rows is not None:
        raise ValueError("only texts can pass a gate, so a crowd is shown nothing else")
    encode = StaticEncoder(normalizer=settings.values["normalizer"]).transform if encode is None else encode
    prior = word_directions(task.classes, task.descriptions, encode) if prior is None else prior
    test = np.asarray(encode(settings.normalized(task.test_texts)), dtype=np.float32)
    pools = [crowd_pool(task, settings, seed=seed) for seed in task.repetitions]
    vectors = _Vectors(encode)
    courses: dict[str, list[Course]] = {"project": [], "random": [], "no_privacy": []}
    for seed, pool in zip(task.repetitions, pools, strict=True):
        rows = vectors.of(pool.texts)
        for name, found in courses.items():
            private = name != "no_privacy"
            play = CrowdPlay(
                classes=task.classes,
                pool=pool,
                rows=rows,
                prior=prior,
                overlap=settings.overlap,
                round_size=settings.round_size,
                event=settings.answers_event(len(task.classes)) if private else None,
                rng=SimulationRandom(1_000_003 * seed + len(found)),
            )
            strategy = RandomChoice() if name == "random" else settings.strategy(private=private)
            found.append(play.course(strategy, test, label_counts=task.label_counts))
    return Outcome(
        accounts=_accounts(settings, task),
        points=_points(task, courses, np.array(prior.leaders(prior.decision_function(test)))),
        notes=_notes(task, settings, pools),
        gate=pools[0].to_json(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdPlay:
    """One seed of one way to run a crowd's project; without an `event` answers are learned from as they are."""

    classes: tuple[str, ...]
    pool: CrowdPool
    rows: NDArray[np.float32]
    prior: LinearModel | None
    overlap: int
    round_size: int
    event: AnswersEvent | None
    rng: SimulationRandom

    def course(self, strategy: QueryStrategy, test: NDArray[np.floating], *, label_counts: Sequence[int]) -> Course:
        left, asked = np.arange(len(self.rows)), np.empty(0, dtype=np.int64)
        likelihoods = np.empty((0, len(self.classes)))
        moved = None if self.prior is None else adapt_to_texts(self.prior, self.rows, self.pool.counts)
        model, penalty, found = moved, FIRST_PENALTY, []
        for size, is_point in _rounds(label_counts, self.round_size):
            spread = {"counts": self.pool.counts, "asked": asked} if isinstance(strategy, ClusteredUncertainty) else {}
            if model is None and strategy.needs_model:
                batch = RandomChoice().query(self.rows, left, None, size, self.rng)
            else:
                batch = strategy.query(self.rows, left, model, size, self.rng, **spread)
            left, asked = np.setdiff1d(left, batch, assume_unique=True), np.concatenate([asked, batch])
            likelihoods = np.concatenate([likelihoods, self._said(batch, model)])
            fitted = ChannelClassifier(
                classes=self.classes, prior=self.prior, regularization=None if is_point else penalty
            ).fit(self.rows[asked], likelihoods, texts=self.rows, weights=self.pool.counts, moved=moved)
            model, penalty = fitted.model_, fitted.regularization_
            if is_point:
                found.append(model.leaders(model.decision_function(test)).astype(np.int64))
        return found

    def _said(self, batch: NDArray[np.int64], model: LinearModel | None) -> NDArray[np.float64]:
        truth = np.array([self._consensus(question) for question in batch])
        if self.event is None:
            certain: NDArray[np.float64] = np.eye(len(self.classes))[truth]
            return certain
        response = mechanism_of(self.event)
        kept = np.ones((len(batch), len(self.classes)), dtype=np.bool_)
        if self.event.uses_prior and model is not None:
            kept = response.kept(model.predict_proba(self.rows[batch]))
        together = np.ones(kept.shape)
        for _time in range(self.event.randomizations):
            together = together * response.likelihoods(response.release(truth, kept, rng=self.rng), kept)
        return together

    def _consensus(self, question: int) -> int:
        """Return what `overlap` people settle on, each of whom means one of the records behind the text."""
        meant = self.pool.answers[question]
        return plurality([int(meant[self.rng.integers(len(meant))]) for _person in range(self.overlap)], rng=self.rng)


class _Vectors:
    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._known: dict[str, NDArray[np.float32]] = {}

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if unknown := [text for text in dict.fromkeys(texts) if text not in self._known]:
            encoded = np.asarray(self._encode(unknown), dtype=np.float32)
            self._known |= dict(zip(unknown, encoded, strict=True))
        return np.stack([self._known[text] for text in texts])


def _rounds(label_counts: Sequence[int], round_size: int) -> list[tuple[int, bool]]:
    """Return the size of every round, and whether it ends at a number of labels that is looked at."""
    rounds: list[tuple[int, bool]] = []
    before = 0
    for count in label_counts:
        for start in range(before, count, round_size):
            size = min(round_size, count - start)
            rounds.append((size, start + size == count))
        before = count
    return rounds


def _points(
    task: SimulationTask, courses: Mapping[str, list[Course]], version_0: NDArray[np.intp]
) -> tuple[OutcomePoint, ...]:
    constant = np.full(len(task.test_labels), np.bincount(task.labels).argmax())
    still: dict[str, Any] = {
        "version_0": MeanAccuracy.over_seeds([version_0], task.test_labels),
        "constant": MeanAccuracy.over_seeds([constant], task.test_labels),
    }
    return tuple(
        OutcomePoint(labels=count, **still, **_reached(task, courses, place))
        for place, count in enumerate(task.label_counts)
    )


def _reached(task: SimulationTask, courses: Mapping[str, list[Course]], place: int) -> dict[str, Any]:
    return {
        name: MeanAccuracy.over_seeds([course[place] for course in found], task.test_labels)
        for name, found in courses.items()
    }


def _accounts(settings: CrowdSettings, task: SimulationTask) -> tuple[SimulatedAccount, ...]:
    gate, unit = settings.gate_cost(named=task.contributors is not None)
    answers = settings.answers_event(len(task.classes))
    cost = answers.cost()
    return (
        SimulatedAccount("gate", unit, gate.epsilon, gate.delta),
        SimulatedAccount("answers", answers.unit, cost.epsilon, cost.delta),
    )


def _notes(task: SimulationTask, settings: CrowdSettings, pools: Sequence[CrowdPool]) -> tuple[str, ...]:
    first = pools[0]
    notes: list[str] = []
    if first.assumed:
        notes.append(
            f"ASSUMED: the gate let only {first.passed:,} of {first.different:,} different texts out of "
            f"{task.n_records:,} records, and {task.label_counts[-1]:,} questions are asked. They were drawn from all "
            "different texts as if so many more records had been uploaded that each of them passed."
        )
    else:
        notes.append(f"The gate let {first.passed:,} of {first.different:,} different texts out.")
    if task.contributors is None and settings.values["privacy_unit"] == "contributor":
        notes.append("No contributors are named, so the gate ran for records.")
    notes.append(
        f"One label is one question, settled by {settings.overlap} simulated answers and said at random; all questions "
        f"and models together cost the answers' account once."
    )
    return tuple(notes)
