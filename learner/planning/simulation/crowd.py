"""A crowd's project on labelled public data: gate, questions, answers said at random, training under that channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.choices.consensus import plurality
from learner.estimators.adaptation import adapt_to_texts
from learner.estimators.channel import ChannelClassifier
from learner.estimators.version_zero import Encode, word_directions
from learner.features.static_encoder import StaticEncoder
from learner.linear_model import LinearModel
from learner.planning.simulation.crowd_pool import CrowdPool, crowd_pool
from learner.planning.simulation.crowd_settings import CrowdSettings
from learner.planning.simulation.outcome import MeanAccuracy, Outcome, OutcomePoint, SimulatedAccount
from learner.planning.simulation.task import SimulationTask
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.random import RandomChoice
from privacy.mechanisms.randomized_response import ResponseMechanism, mechanism_of
from privacy.mechanisms.randomness import SimulationRandom

# Between two points the penalty of the last one is kept; this one before the first.
FIRST_PENALTY = 3.0

# Predictions for the test records at every number of labels.
Course = list[NDArray[np.int64]]


def simulate_crowd(task: SimulationTask, *, encode: Encode | None = None, prior: LinearModel | None = None) -> Outcome:
    """Play a crowd's project from its gate to its models, beside what it must beat.

    Parameters
    ----------
    task : Task
        Labelled public texts, and settings over those of the preset.
    encode : callable, optional
        Features of normalised texts, by a public encoder; by default the one that ships with the program.
    prior : LinearModel, optional
        Version 0, at epsilon 0; by default what the names and descriptions of the classes say through the encoder.

    Returns
    -------
    Outcome
        One label is one settled question, whatever the overlap. What no gate lets out today is assumed to pass, and
        the notes and the JSON say so.

    Raises
    ------
    ValueError
        If a setting is unknown or out of range, the records are no texts, or there are fewer different texts than
        labels.
    """
    settings = CrowdSettings.of(task.settings)
    if task.rows is not None:
        raise ValueError("only texts can pass a gate, so a crowd is shown nothing else")
    encode = StaticEncoder(normalizer=settings.values["normalizer"]).transform if encode is None else encode
    prior = word_directions(task.classes, task.descriptions, encode) if prior is None else prior
    test = np.asarray(encode(settings.normalized(task.test_texts)), dtype=np.float32)
    pools = [crowd_pool(task, settings, seed=seed) for seed in range(task.seeds)]
    vectors = _Vectors(encode)
    courses: dict[str, list[Course]] = {"project": [], "random": [], "no_privacy": []}
    for seed, pool in enumerate(pools):
        rows = vectors.of(pool.texts)
        for name, found in courses.items():
            play = _CrowdPlay(task, settings, pool, rows, test, prior, SimulationRandom(1_000_003 * seed + len(found)))
            found.append(play.course(chosen=name != "random", private=name != "no_privacy"))
    return Outcome(
        accounts=_accounts(settings, task),
        points=_points(task, courses, np.array(prior.leaders(prior.decision_function(test)))),
        notes=_notes(task, settings, pools),
        gate=pools[0].to_json(),
    )


@dataclass(frozen=True, slots=True)
class _CrowdPlay:
    """One seed of one way to run the project."""

    task: SimulationTask
    settings: CrowdSettings
    pool: CrowdPool
    rows: NDArray[np.float32]
    test: NDArray[np.float32]
    prior: LinearModel
    rng: SimulationRandom

    def course(self, *, chosen: bool, private: bool) -> Course:
        """Ask, settle, say and learn until the last number of labels; `chosen` at random otherwise."""
        event = self.settings.answers_event(len(self.task.classes))
        response = mechanism_of(event)
        strategy = self.settings.strategy(private=private) if chosen else RandomChoice()
        left, asked = np.arange(len(self.rows)), np.empty(0, dtype=np.int64)
        likelihoods = np.empty((0, len(self.task.classes)))
        moved = adapt_to_texts(self.prior, self.rows, self.pool.counts)
        model, penalty, found = moved, FIRST_PENALTY, []
        for size, is_point in _rounds(self.task.label_counts, self.settings.round_size):
            spread = {"counts": self.pool.counts, "asked": asked} if isinstance(strategy, ClusteredUncertainty) else {}
            batch = strategy.query(self.rows, left, model, size, self.rng, **spread)
            left, asked = np.setdiff1d(left, batch, assume_unique=True), np.concatenate([asked, batch])
            said = self._said(batch, model, response if private else None, times=event.randomizations)
            likelihoods = np.concatenate([likelihoods, said])
            fitted = ChannelClassifier(
                classes=self.task.classes, prior=self.prior, regularization=None if is_point else penalty
            ).fit(self.rows[asked], likelihoods, texts=self.rows, weights=self.pool.counts, moved=moved)
            model, penalty = fitted.model_, fitted.regularization_
            if is_point:
                found.append(model.leaders(model.decision_function(self.test)).astype(np.int64))
        return found

    def _said(
        self, batch: NDArray[np.int64], model: LinearModel, response: ResponseMechanism | None, *, times: int
    ) -> NDArray[np.float64]:
        """Settle each question by its own answers and return the likelihoods of what is said of it."""
        truth = np.array([self._consensus(question) for question in batch])
        if response is None:
            certain: NDArray[np.float64] = np.eye(len(self.task.classes))[truth]
            return certain
        kept = np.ones((len(batch), len(self.task.classes)), dtype=np.bool_)
        if self.settings.uses_prior:
            kept = response.kept(model.predict_proba(self.rows[batch]))
        together = np.ones(kept.shape)
        for _time in range(times):
            together = together * response.likelihoods(response.release(truth, kept, rng=self.rng), kept)
        return together

    def _consensus(self, question: int) -> int:
        """Return what `overlap` people settle on, each of whom means one of the records behind the text."""
        meant = self.pool.answers[question]
        return plurality(
            [int(meant[self.rng.integers(len(meant))]) for _person in range(self.settings.overlap)], rng=self.rng
        )


class _Vectors:
    """Features of texts, each encoded once over all seeds."""

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
        OutcomePoint(
            labels=count,
            **still,
            **_reached(task, courses, place),
        )
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
