"""Labelled public rows that a plan is simulated on: of a project, or of the draft of one."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from annotation.choices.presets import PRESETS
from annotation.data.services import mappings, uploads
from annotation.models import Dataset, DatasetRole, DatasetState, Oracle, Project, Record
from annotation.models.imports import OpeningDraft
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services import drafts, opening
from annotation.questions.selectors import marks_spans, spans_of
from dpal.spans.text import Span, read
from learner.estimators.version_zero import enough_examples
from learner.models.planning import PlanSimulation
from learner.pools import features, starts
from learner.pools.configuration import (
    charges_answers,
    counted_places,
    estimator_choice_of,
    featurizer_of,
    learned_classes,
    words_about_classes,
)
from learner.simulation.curves import PublicRows, pool_rows
from learner.simulation.setup import Setup
from learner.simulation.spans import PublicSpans

# Fewer rows say little, and more only take longer.
FEWEST_ROWS, MOST_ROWS = 30, 4000
TEST: Final = DatasetRole.PUBLIC_TEST


def read_public(simulation: PlanSimulation) -> PublicRows | PublicSpans | None:
    """Return the rows of the public file that a simulation was asked for; None where there are too few.

    Rows that are drawn again and again say nothing of further labels, so the pool holds the first model's without.
    """
    counts = Setup.from_json(simulation.setup).label_counts
    found = None
    if simulation.draft is not None:
        found = _of_draft(simulation.draft)
    elif simulation.project is not None:
        found = _of_project(simulation.project)
    return found if found is not None and counts and pool_rows(found) >= counts[0] else None


def public_sets(project: Project) -> QuerySet[Dataset]:
    return Dataset.objects.filter(project=project, role=TEST, state=DatasetState.READY).order_by("pk")


def _of_project(project: Project) -> PublicRows | PublicSpans | None:
    if marks_spans(project):
        known = Record.objects.filter(dataset__in=public_sets(project), label__isnull=False)
        numbered = list(known.order_by("dataset", "row_number").values_list("text", "label")[:MOST_ROWS])
        named = spans_of(project, [number or 0 for _text, number in numbered])
        return _public_spans(project, [(text or "", named[number or 0]) for text, number in numbered])
    rows, labels = [], []
    for dataset in public_sets(project):
        known = Record.objects.filter(dataset=dataset, label__isnull=False).order_by("row_number")
        table = np.array(list(known.values_list("row_number", "label")[:MOST_ROWS]), dtype=np.int64).reshape(-1, 2)
        rows.append(np.asarray(features.open_features(dataset)[table[:, 0]]))
        labels.append(counted_places(project, table[:, 1]))
    return _public(project, rows, labels)


def _of_draft(draft: OpeningDraft) -> PublicRows | PublicSpans | None:
    form = draft_form(PRESETS[draft.preset], draft.typed)
    if drafts.PUBLIC not in draft.files or not form.is_valid():
        return None
    with opening.rehearsed_project(preset=draft.preset, owner=draft.owner, **form.project_values()) as project:
        mapping = drafts.mapping_of(draft, drafts.PUBLIC, crowd=project.oracle == Oracle.CROWD)
        layout = mappings.layout_of(project, TEST, mapping)
        rows, labels = [], []
        with draft.public.open() as file:
            upload = uploads.open_upload(file, draft.files[drafts.PUBLIC]["name"], layout)
            if layout.spans:
                pairs = (
                    pair
                    for batch in upload.batches()
                    for pair in zip(batch.texts or (), batch.labels or (), strict=True)
                )
                return _public_spans(project, [(text, read(str(label))) for text, label in islice(pairs, MOST_ROWS)])
            for values, places in _labelled(upload.batches()):
                rows.append(featurizer_of(project).transform(values))
                labels.append(places)
                if sum(map(len, labels)) >= MOST_ROWS:
                    break
        return _public(project, rows, labels)


def _labelled(batches: Iterator[Any]) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    for batch in batches:
        values = next(each for each in (batch.pixels, batch.texts, batch.payloads) if each is not None)
        kept = [place for place, label in enumerate(batch.labels or ()) if label is not None]
        if kept:
            chosen = values[kept] if isinstance(values, np.ndarray) else [values[place] for place in kept]
            yield chosen, np.array([batch.labels[place] for place in kept], dtype=np.int64)


def _public_spans(project: Project, rows: Sequence[tuple[str, tuple[Span, ...]]]) -> PublicSpans | None:
    if len(rows) < FEWEST_ROWS:
        return None
    texts, spans = zip(*rows, strict=True)
    return PublicSpans(texts, spans, tuple(learned_classes(project)), starts.described_spans(project))


def _public(project: Project, rows: list[Any], labels: list[NDArray[np.int64]]) -> PublicRows | None:
    if sum(map(len, labels)) < FEWEST_ROWS:
        return None
    X = np.concatenate(rows)[:MOST_ROWS].astype(np.float32)
    y = np.concatenate(labels)[:MOST_ROWS]
    if len(np.unique(y)) < 2 or y.max() >= len(learned_classes(project)):
        return None
    if starts.why_no_version_zero(project):
        return PublicRows(X, y)
    choice = estimator_choice_of(project)
    return PublicRows(
        X,
        y,
        version_0=starts.version_zero_of(project),
        start=starts.word_prior(project) if choice.learns_responses else starts.described_prior(project),
        has_examples=enough_examples(learned_classes(project), words_about_classes(project)),
        picks=choice.picks,
        of_answers=charges_answers(project),
    )
