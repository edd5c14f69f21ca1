"""Weights are made of noisy answers alone: while these are held, other rows and another number of them move nothing."""

from dataclasses import replace

import numpy as np
import pytest

from dpal.errors import NotGenuine
from dpal.recompute import recompute, recomputed
from dpal.recompute.charged import refuse_uncharged
from dpal.recompute.span_crf import span_start
from dpal.recompute.sums import NoisySums
from dpal.recompute.transcript import Transcript, Weights
from dpal.spans.features import N_FEATURES
from dpal.spans.text import Span
from learner.estimators import pick, randomized_answers, running_sums
from learner.estimators.label_sets import PrivateLabelSets
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.pick import PickedFit
from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.estimators.running_sums import RunningSums
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.span_crf import PrivateSpanCrf
from learner.estimators.sums import PrivateSums
from learner.features.span_tables import span_features
from learner.linear_model import LinearModel
from learner.papers.ghassemi_curves import PrivateHuberSVM
from privacy.accounting.events import (
    RandomizedAnswersEvent,
    RunningSumsEvent,
    SecretBlockEvent,
    SecretSampleEvent,
    StreamEvent,
)
from privacy.mechanisms import gradient_steps, sums
from privacy.mechanisms import pick as pick_mechanism
from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.session import Measurement, MeasuringSession
from tests.transcripts import charged

RELEASES = (DiscreteGaussian, DiscreteLaplace, EuclideanNoise)
PRIOR = LinearModel(np.linspace(-1, 1, 12).reshape(3, 4), np.zeros(3), ("a", "b", "c"), "softmax")
EARLIER = NoisySums(np.eye(5), np.ones((3, 5)), 2.0, 1.0)


class Streamed(RunningSums):
    """Two batches, the second of which is empty."""

    def fit(self, X, y):
        return self.start(4).update([(X, y)]).update([(X, y), (X[:0], y[:0])])


class Sets(PrivateLabelSets):
    def fit(self, X, y):
        return super().fit(X, np.eye(3, dtype=bool)[y])


class Chain(PrivateSpanCrf):
    """Texts whose first word is a number from the row and whose second is named after the label."""

    def fit(self, X, y):
        texts = [f"{row[0]:.1f} {self.types[label]}" for row, label in zip(X, y, strict=True)]
        spans = [(Span(text.index(" ") + 1, len(text), text.partition(" ")[2]),) for text in texts]
        return super().fit(texts, spans)


def chain(*, classes, **options):
    # With so little noise it is the number of texts that decides how long a step is.
    return Chain(200.0, types=[f"type{number}" for number in classes], features=span_features(), steps=4, **options)


PURE = {
    "objective": lambda **options: PrivateLogisticRegression(2.0, **options),
    "objective from a prior": lambda **options: PrivateLogisticRegression(2.0, prior=PRIOR, **options),
    "output": lambda **options: PrivateLogisticRegression(2.0, method="output", **options),
    "huber without intercept": lambda **options: PrivateHuberSVM(2.0, fit_intercept=False, **options),
    "sums": lambda **options: PrivateSums(20.0, delta=1e-6, moment_share=0.3, **options),
    "sums without moments": lambda **options: PrivateSums(2.0, delta=1e-6, moment_share=0.0, **options),
    "sums beside earlier ones": lambda **options: PrivateSums(2.0, earlier=EARLIER, own_weight=0.4, **options),
    "sums from a prior": lambda **options: PrivateSums(2.0, prior=PRIOR, **options),
    "label sets": lambda **options: Sets(20.0, delta=1e-6, labels_per_record=2, **options),
    "steps picked beside a model": lambda **options: PickedFit(PrivateSoftmaxSteps(2.0, steps=6, **options), PRIOR),
    "sums picked beside a model": lambda **options: PickedFit(PrivateSums(20.0, **options), PRIOR),
    "running sums": lambda **options: Streamed(20.0, delta=1e-6, updates=2, **options),
    "softmax steps": lambda **options: PrivateSoftmaxSteps(2.0, delta=1e-6, steps=6, **options),
    "span chain": chain,
    "span chain picked beside a model": lambda **options: chain(before=span_start(4, N_FEATURES), **options),
    "span chain with texts held out": lambda **options: chain(held_out_share=0.3, **options),
    "span chain picked and counted": lambda **options: chain(
        before=span_start(4, N_FEATURES), held_out_share=0.3, **options
    ),
    "softmax steps from a prior": lambda **options: PrivateSoftmaxSteps(2.0, steps=5, prior=PRIOR, **options),
    "softmax steps about no mean": lambda **options: PrivateSoftmaxSteps(2.0, steps=5, center_share=0.0, **options),
}


def records(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 3 * np.eye(3, 4)[y] + seed
    return X * rng.uniform(0.5, 0.999, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True), y


def weights_of(fitted):
    return np.concatenate([fitted.coef_.ravel(), fitted.intercept_])


def held_weights(make, first, second):
    """Fit to the first rows, then to the second under the very answers that mechanisms released of the first."""
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        for mechanism in RELEASES:

            def note(noise, values, *, release=mechanism.release, **options):
                kept.append(release(noise, values, **options))
                return kept[-1].copy()

            patch.setattr(mechanism, "release", note)
        before = weights_of(make().fit(*first))
    with pytest.MonkeyPatch.context() as patch:
        for mechanism in RELEASES:
            patch.setattr(mechanism, "release", lambda noise, values, **options: kept.pop(0).copy())
        after = weights_of(make().fit(*second))
    return before, after, kept


def is_pure(make):
    """Whether weights stay bit for bit as they are when rows, labels and their number change under held answers."""
    with pytest.MonkeyPatch.context() as patch:
        for user in (sums, running_sums):
            patch.setattr(user, "public_seed", lambda rng: Measurement("seed", 0.0, 0.0, np.arange(4.0)))
        return _is_pure(make)


def _is_pure(make):
    first = records(60, 1)
    for second in (records(60, 2), records(45, 1), records(0, 1)):
        try:
            before, after, left = held_weights(make, first, second)
        except IndexError:
            return False
        if left or not (before == after).all():
            return False
    fitted = make().fit(*first)
    again = recompute(Transcript.from_json(fitted.transcript_.to_json()))
    return bool((np.concatenate([again.coef.ravel(), again.intercept]) == weights_of(fitted)).all())


@pytest.mark.parametrize("name", PURE)
def test_weights_are_made_of_released_answers_alone(name):
    assert is_pure(lambda: PURE[name](classes=[0, 1, 2], random_state=3))


class Steps(PrivateSoftmaxSteps):
    """A copy in which a fault is planted."""

    def _queries(self, rows, labels, classes, event, rng):
        self.peeked_ = rows
        return super()._queries(rows, labels, classes, event, rng)


class RowCountInWeights(Steps):
    def fit(self, X, y):
        super().fit(X, y)
        self.coef_ = self.coef_ + 1e-3 * len(X)
        return self


class StepLengthOfTrueRows(Steps):
    def _learn(self, public, session):
        return super()._learn({**public, "row_norm": np.linalg.norm(self.peeked_, axis=1).mean()}, session)


class CentreOfTrueRows(Steps):
    def _learn(self, public, session):
        true = self.peeked_.mean(axis=0)

        class Peeking:
            def ask(self, query, *given):
                answer = session.ask(query, *given)
                return np.append(true * 60, answer[-1]) if query == "row_sum" else answer

        return super()._learn(public, Peeking())


class StopsEarlyOnRows(Steps):
    def _learn(self, public, session):
        return super()._learn({**public, "steps": public["steps"] - (len(self.peeked_) < 50)}, session)


def noisy_steps_without(name):
    """Return a copy of the mechanism that tells the count or the sum of rows as it is."""

    class Exact(gradient_steps.NoisySteps):
        def __init__(self, rows, event, *, rng):
            super().__init__(rows, event, rng=rng)
            setattr(self, name, float(len(rows)) if name == "count" else rows.sum(axis=0))

    return Exact


class ClassCountsWithoutNoise(PrivateSums):
    def _queries(self, rows, labels, classes, event, rng):
        queries, counts = super()._queries(rows, labels, classes, event, rng), np.bincount(labels, minlength=3)

        def class_sums():
            measured = queries["class_sums"]()
            measured.answer[:, -1] = self.intercept_scaling * counts
            return measured

        return {**queries, "class_sums": class_sums}


class RowSumWithoutNoise(PrivateSums):
    def _queries(self, rows, labels, classes, event, rng):
        queries = super()._queries(rows, labels, classes, event, rng)

        def class_sums():
            measured = queries["class_sums"]()
            measured.answer[0, :-1] = rows.sum(axis=0)
            return measured

        return {**queries, "class_sums": class_sums}


class RowCountInMinimisers(PrivateLogisticRegression):
    def fit(self, X, y):
        super().fit(X, y)
        self.coef_ = self.coef_ + 1e-3 * len(X)
        return self


class PeekingSums(Streamed):
    """A stream in which faults are planted."""

    def _release_queries(self, batches):
        self.peeked_ = batches[0][0]
        return super()._release_queries(batches)


class BatchSizeInRunningSums(PeekingSums):
    def _add_release(self, public, session):
        total = super()._add_release(public, session)
        total.current[-1] += 1e-3 * len(self.peeked_)
        return total


class RowLengthInRunningSums(PeekingSums):
    def _parameters(self):
        return {**super()._parameters(), "row_norm": 1.0 + np.linalg.norm(getattr(self, "peeked_", 0.0))}


class RunningSumsStopEarlyOnRows(PeekingSums):
    def _add_release(self, public, session):
        if len(self.peeked_) >= 50:
            return super()._add_release(public, session)
        return replace(self._total, place=self._total.place + 1)


class ExactRunningSums(PeekingSums):
    def _release_queries(self, batches):
        queries, (rows, labels) = super()._release_queries(batches), batches[0]

        def class_sums():
            measured = queries["class_sums"]()
            self._leak(measured.answer, rows, labels)
            return measured

        return {**queries, "class_sums": class_sums}


class RunningClassCountsWithoutNoise(ExactRunningSums):
    def _leak(self, answer, rows, labels):
        answer[:, -1] = self.intercept_scaling * np.bincount(labels, minlength=3)


class RunningRowSumWithoutNoise(ExactRunningSums):
    def _leak(self, answer, rows, labels):
        answer[0, :-1] = rows.sum(axis=0)


class PeekingPick(PickedFit):
    """A pick in which faults are planted."""

    def fit(self, X, y):
        self.peeked_ = X
        return super().fit(X, y)


class RowCountInPick(PeekingPick):
    def _pick(self, public, session):
        weights = super()._pick(public, session)
        weights.coef[:] += 1e-3 * len(self.peeked_)
        return weights


class BarOfTrueRows(PeekingPick):
    def _pick(self, public, session):
        return super()._pick({**public, "bar": 1e9 / (1 + len(self.peeked_)) ** 9}, session)


class PickStopsEarlyOnRows(PeekingPick):
    def _pick(self, public, session):
        if len(self.peeked_) >= 50:
            return super()._pick(public, session)
        return Weights(public["coef"], public["intercept"], public["multiclass"])


@pytest.mark.parametrize("fault", [ClassCountsWithoutNoise, RowSumWithoutNoise])
def test_sums_without_noise_are_found(fault):
    assert not is_pure(lambda: fault(2.0, classes=[0, 1, 2], random_state=3))


def test_a_pick_by_counts_without_noise_is_found(monkeypatch):
    exact = lambda right, event, *, rng: (right[1:] - right[0]).astype(float)  # noqa: E731
    monkeypatch.setattr(pick_mechanism, "release_counts", exact)
    monkeypatch.setattr(pick, "bar_of", lambda event, **_deviations: 1e-3)
    before = LinearModel(-PRIOR.coef, np.zeros(3), PRIOR.classes, "softmax")
    assert not is_pure(lambda: PickedFit(PrivateSums(20.0, classes=[0, 1, 2], random_state=3), before))


@pytest.mark.parametrize(
    "fault",
    [
        RowCountInMinimisers,
        BatchSizeInRunningSums,
        RowLengthInRunningSums,
        RunningSumsStopEarlyOnRows,
        RunningClassCountsWithoutNoise,
        RunningRowSumWithoutNoise,
    ],
)
def test_what_other_estimators_learn_beside_their_answers_is_found(fault):
    assert not is_pure(lambda: fault(2.0, classes=[0, 1, 2], random_state=3))


@pytest.mark.parametrize("fault", [RowCountInPick, BarOfTrueRows, PickStopsEarlyOnRows])
def test_what_a_pick_learns_beside_its_answers_is_found(fault):
    made = lambda kind: kind(PrivateSums(20.0, classes=[0, 1, 2], random_state=3), PRIOR)  # noqa: E731
    assert not is_pure(lambda: made(fault))
    assert is_pure(lambda: made(PeekingPick))


@pytest.mark.parametrize("fault", [RowCountInWeights, StepLengthOfTrueRows, CentreOfTrueRows, StopsEarlyOnRows])
def test_what_an_estimator_learns_beside_its_answers_is_found(fault):
    assert not is_pure(lambda: fault(2.0, steps=6, classes=[0, 1, 2], random_state=3))
    assert is_pure(lambda: Steps(2.0, steps=6, classes=[0, 1, 2], random_state=3))


@pytest.mark.parametrize("name", ["count", "row_sum"])
def test_an_answer_of_steps_without_noise_is_found(name, monkeypatch):
    monkeypatch.setattr(gradient_steps, "NoisySteps", noisy_steps_without(name))
    assert not is_pure(lambda: PURE["softmax steps"](classes=[0, 1, 2], random_state=3))


def models_of_responses(fit):
    """Fit to two sets of answers under the same responses."""
    rng = np.random.default_rng(20_261_129)
    rows, answers, said = rng.normal(size=(60, 4)), rng.integers(3, size=60), rng.integers(3, size=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RandomizedResponse, "release", lambda self, classes, kept, *, rng: said)
        return [fit(rows, each) for each in (answers, np.zeros_like(answers))]


def answering(kind=RandomizedAnswersClassifier):
    return kind(RandomizedAnswersEvent(2.0, 3, randomizations=2), classes=[0, 1, 2])


def test_models_of_responses_are_made_of_these_alone():
    here, there = models_of_responses(lambda rows, answers: answering().fit(rows, answers))
    assert (weights_of(here) == weights_of(there)).all()
    again = recompute(Transcript.from_json(here.transcript_.to_json()))
    assert (again.coef == here.coef_).all()
    assert (again.intercept == here.intercept_).all()


class PeekingAnswers(RandomizedAnswersClassifier):
    """Answers among which faults are planted."""

    def fit(self, X, y):
        self.peeked_ = np.bincount(y, minlength=3)
        return super().fit(X, y)


class ClassCountsInWeights(PeekingAnswers):
    def _learn(self, public, session):
        found = super()._learn(public, session)
        found.intercept[:] += 1e-3 * self.peeked_
        return found


class AnswersAsTheyAre(PeekingAnswers):
    def _said(self, truth, rng):
        super()._said(truth, rng)
        return self._measured(np.eye(3)[truth] + 0.1)


class PenaltyOfTrueAnswers(PeekingAnswers):
    def _learn(self, public, session):
        return super()._learn({**public, "regularization": 1.0 + self.peeked_[0]}, session)


class StopsEarlyOnAnswers(PeekingAnswers):
    def _learn(self, public, session):
        found = super()._learn(public, session)
        return found if self.peeked_.all() else Weights(0 * found.coef, 0 * found.intercept)


@pytest.mark.parametrize("fault", [ClassCountsInWeights, AnswersAsTheyAre, PenaltyOfTrueAnswers, StopsEarlyOnAnswers])
def test_what_a_model_of_responses_learns_beside_them_is_found(fault):
    here, there = models_of_responses(lambda rows, answers: answering(fault).fit(rows, answers))
    assert not (weights_of(here) == weights_of(there)).all()


def test_responses_given_before_are_read_through_a_session_alone(monkeypatch):
    asked = []

    class Watched(MeasuringSession):
        def ask(self, query, *public):
            asked.append(query)
            return super().ask(query, *public)

    monkeypatch.setattr(randomized_answers, "MeasuringSession", Watched)
    fitted = answering().fit_responses(np.eye(3), np.eye(3) + 0.1)
    assert asked == [one.query for one in fitted.transcript_.answers] == ["responses"]
    with pytest.raises(ValueError, match="likelihoods must be finite"):
        answering().fit_responses(np.eye(3), np.zeros((3, 3)))


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["from nothing", "from a prior"])
def test_a_model_of_no_response_is_recomputed(prior):
    fitted = RandomizedAnswersClassifier(None, classes=[0, 1, 2], prior=prior)
    fitted.fit_responses(np.zeros((0, 4)), np.zeros((0, 3)), texts=np.eye(4), weights=np.ones(4))
    again = recompute(Transcript.from_json(fitted.transcript_.to_json()))
    assert (again.coef == fitted.coef_).all()
    assert again.coef.shape == (3, 4)


def test_a_transcript_that_was_changed_is_refused():
    fitted = PURE["softmax steps"](classes=[0, 1, 2], random_state=3).fit(*records(60, 1))
    weights = LinearModel(fitted.coef_, fitted.intercept_, ("a", "b", "c"), "softmax").to_json()
    transcript, privacy = charged(fitted.transcript_, fitted.privacy_event_)
    body = transcript.to_json()
    assert recomputed(body, weights, privacy) == 0.0
    last_bit = {**weights, "coef": np.nextafter(fitted.coef_, np.inf).tolist()}
    assert 0.0 < recomputed(body, last_bit, privacy) < 1e-12
    answers = body["answers"]
    changed = [
        {**body, "answers": answers[:-1]},
        {**body, "answers": [*answers, answers[-1]]},
        {**body, "answers": [answers[1], answers[0], *answers[2:]]},
        {**body, "answers": [{**answers[0], "answer": {**answers[0]["answer"], "data": "AAAAAA=="}}, *answers[1:]]},
        {**body, "answers": [{**answers[0], "answer": {}}, *answers[1:]]},
        {**body, "parameters": {"values": {}}},
        {**body, "program": "another"},
        {**body, "schema": "dpal-transcript/0"},
        {},
    ]
    for each in changed:
        with pytest.raises(NotGenuine):
            recomputed(each, weights, privacy)
    with pytest.raises(NotGenuine, match="another shape"):
        recomputed(body, {**weights, "coef": weights["coef"][:2]}, privacy)


def charged_as_released(name):
    fitted = PURE[name](classes=[0, 1, 2], random_state=3)
    priced = fitted if hasattr(fitted, "event_for") else fitted.estimator
    event = priced.event_for() if isinstance(priced, PrivateSpanCrf) else priced.event_for(4)
    return charged(fitted.fit(*records(60, 1)).transcript_, event)


@pytest.mark.parametrize("name", PURE)
def test_answers_are_held_against_the_event_that_was_charged(name):
    transcript, privacy = charged_as_released(name)
    refuse_uncharged(transcript, privacy)
    for place, (query, sensitivity, scale, answer) in enumerate(transcript.answers):
        for other in (
            (query, sensitivity * 0.5 + (query == "seed"), scale, answer),
            (query, sensitivity * 2 + (query == "seed"), scale, answer),
            (query, sensitivity, scale * 0.99 - (query == "seed"), answer),
            ("another", sensitivity, scale, answer),
            ("seed", 0.0, 0.0, answer + 0.5),
        ):
            answers = [*transcript.answers[:place], other, *transcript.answers[place + 1 :]]
            with pytest.raises(NotGenuine):
                refuse_uncharged(replace(transcript, answers=answers), privacy)


def test_a_draw_with_more_weight_on_the_counts_than_was_charged_is_refused():
    fitted = PickedFit(PrivateLogisticRegression(2.0, classes=[0, 1, 2], random_state=3), PRIOR)
    event = fitted.event_for(4)
    transcript, privacy = charged(fitted.fit(*records(60, 1)).transcript_, event)
    refuse_uncharged(transcript, privacy)
    *others, (query, sensitivity, scale, answer) = transcript.answers
    assert (query, event.noise) == ("right_answers", "exponential")
    with pytest.raises(NotGenuine, match="less noise"):
        refuse_uncharged(replace(transcript, answers=[*others, (query, sensitivity, 1.01 * scale, answer)]), privacy)


@pytest.mark.parametrize("name", [name for name in PURE if name != "running sums"])
def test_no_more_answers_are_released_than_were_charged(name):
    transcript, privacy = charged_as_released(name)
    answers = [*transcript.answers, *(each for each in transcript.answers if each[0] != "seed")]
    with pytest.raises(NotGenuine, match="more answers"):
        refuse_uncharged(replace(transcript, answers=answers), privacy)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda event: SecretSampleEvent(event, 0.2),
        lambda event: SecretBlockEvent.next_of(None, event, block=1, rates=(0.2, 0.3)),
        lambda event: StreamEvent(1.0, 1.0, RunningSumsEvent(event, 2, (), ()), True),
    ],
)
def test_what_samples_blocks_and_streams_release_is_held_against_what_they_run(wrap):
    fitted = PURE["sums"](classes=[0, 1, 2], random_state=3).fit(*records(60, 1))
    refuse_uncharged(*charged(fitted.transcript_, wrap(fitted.privacy_event_)))
    noisier = replace(fitted.privacy_event_, class_sigma=2 * fitted.privacy_event_.class_sigma)
    with pytest.raises(NotGenuine, match="less noise"):
        refuse_uncharged(*charged(fitted.transcript_, wrap(noisier)))


def test_responses_are_held_against_their_law_or_are_no_secret():
    fitted = answering().fit_responses(np.eye(3), np.eye(3) + 0.1)
    refuse_uncharged(*charged(fitted.transcript_, fitted.answers))
    with pytest.raises(NotGenuine, match="less noise"):
        refuse_uncharged(*charged(fitted.transcript_, RandomizedAnswersEvent(1.0, 3)))
    open_answers = RandomizedAnswersClassifier(None, classes=[0, 1, 2]).fit_responses(np.eye(3), np.eye(3))
    refuse_uncharged(open_answers.transcript_, {"entries": []})


def test_an_entry_that_is_not_of_the_release_pays_for_nothing():
    transcript, privacy = charged_as_released("sums")
    line = privacy["entries"][0]
    for entries in ([], [{**line, "id": "pool #3"}], [{**line, "kind": "gaussian"}]):
        with pytest.raises(NotGenuine, match="not among those of its release"):
            refuse_uncharged(transcript, {"entries": entries})
    with pytest.raises(NotGenuine, match="more answers"):
        refuse_uncharged(replace(transcript, charged=None), privacy)
