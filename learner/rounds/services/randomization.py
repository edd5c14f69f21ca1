"""Randomised responses to answers: paid once before anybody is asked, drawn once each, stored as they are drawn."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from django.db import transaction
from django.db.models import Count
from numpy.typing import NDArray

from annotation.choices.label_types.base import Settles
from annotation.models import Label, Project, Query
from annotation.questions.selectors import label_type
from learner.errors import NotEnoughLabels
from learner.estimators.adaptation import adapt_to_texts
from learner.linear_model import LinearModel
from learner.models import TrainingRun
from learner.models.answers import AnswerSeries, RandomizedLabel
from learner.pools import answers as answer_selectors
from learner.pools import attempts, features, records, selectors, starts
from learner.pools.configuration import answers_event_of, featurizer_of
from learner.pools.keys import attempt_key
from privacy.ledger import services as ledger
from privacy.ledger.faults import fault_point
from privacy.ledger.models import LedgerEntry
from privacy.mechanisms.randomness import SecureRandom

# Of a large gate output the texts said most often tell where the classes lie; more of them change nothing.
MOST_TEXTS = 20_000


def pay_for_answers(project: Project) -> LedgerEntry | None:
    """Charge all answers of a project, once and before the first is asked for; None where they are not randomised."""
    event = answers_event_of(project)
    if event is None:
        return None
    assert project.labels_account is not None
    series, _ = AnswerSeries.objects.get_or_create(project=project)
    attempts.pay_whole(
        series,
        account=project.labels_account,
        event=event,
        purpose="all answers, questions and models",
        subject="answers",
        of=event.to_json(),
    )
    return answer_selectors.series_entry(project)


def say_answers(run: TrainingRun) -> None:
    """Say at random what the settled questions' answers agree on, each question once for the answers it has now."""
    project = run.project
    paid = answer_selectors.series_entry(project)
    if paid is None:
        raise NotEnoughLabels("Nothing was asked yet.")
    datasets = list(records.pool_datasets(project))
    X = features.stacked_features(datasets, dimension=featurizer_of(project).dimension)
    model = prior_of(project, X)
    with transaction.atomic():
        # Whoever takes an answer back locks this row first, too, so no answer moves under the draw.
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        waiting = answer_selectors.unsaid_questions(locked)
        examples = records.gate_examples(locked, waiting)
        questions = list(
            Query.objects.filter(pk__in=examples.ids.tolist())
            .annotate(responses=Count("randomized_labels"))
            .order_by("pk")
        )
        if not questions:
            return
        rng = SecureRandom()
        agreed = _agreed(project, questions, rng)
        kept = _kept(locked, model, X[examples.rows])
        said = answer_selectors.response_of(locked).release(agreed, kept, rng=rng)
        entry = ledger.record_post_processing(
            account=paid.account,
            parent=paid,
            operation="randomised answers",
            purpose="say the answers to questions at random",
            subject=attempts.attempt_subject(run),
            output_digest=_digest(questions, said),
            key=attempt_key(run, run.attempt, part="answers"),
        )
        RandomizedLabel.objects.bulk_create(
            [
                RandomizedLabel(
                    project=locked,
                    query=question,
                    number=question.responses + 1,
                    answers=question.overlap,
                    said=int(response),
                    kept=np.flatnonzero(classes).tolist(),
                    entry=entry,
                )
                for question, response, classes in zip(questions, said, kept, strict=True)
            ]
        )
        fault_point("answers_said")


def prior_of(project: Project, X: NDArray[np.float32]) -> LinearModel | None:
    """Return what is known of the classes without this round's answers: the last release, else words and texts."""
    newest = selectors.newest_release(project)
    if newest is not None:
        return LinearModel.from_json(newest.weights)
    words = starts.word_prior(project)
    if words is None:
        return None
    texts, counts = gate_features(project, X)
    return adapt_to_texts(words, texts, counts) if len(texts) else words


def gate_features(project: Project, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the features of what passed the gate and how often each was said; of many, those said most often."""
    counts = answer_selectors.gate_counts(project)
    rows = np.sort(np.argsort(-counts, kind="stable")[:MOST_TEXTS])
    return np.ascontiguousarray(X[rows]), counts[rows]


def _agreed(project: Project, questions: Sequence[Query], rng: SecureRandom) -> NDArray[np.int64]:
    """Return what the answers to each question come to, by coins where there are several; shape (n,)."""
    given = Label.objects.filter(query__in=questions, superseded_at=None, choice__isnull=False).order_by("pk")
    votes: dict[int, list[int]] = defaultdict(list)
    for query_id, choice in given.values_list("query_id", "choice"):
        if choice is not None:
            votes[query_id].append(choice)
    kind = label_type(project)
    # No other type of label is chosen with a randomiser.
    assert isinstance(kind, Settles)
    return np.array([kind.settled(votes[question.pk], rng=rng) for question in questions], dtype=np.int64)


def _kept(project: Project, model: LinearModel | None, rows: NDArray[np.float32]) -> NDArray[np.bool_]:
    event = answers_event_of(project)
    everything = np.ones((len(rows), len(project.classes)), dtype=np.bool_)
    if model is None or event is None or not event.uses_prior:
        return everything
    return answer_selectors.response_of(project).kept(model.predict_proba(rows))


def _digest(questions: Sequence[Query], said: NDArray[np.int64]) -> str:
    """Return what the ledger keeps of responses; engineers read them, so nothing here is secret."""
    pairs = [[question.pk, int(response)] for question, response in zip(questions, said, strict=True)]
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
