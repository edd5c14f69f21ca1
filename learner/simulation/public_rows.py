"""Labelled public rows that a plan is simulated on: of a project, or of the draft of one."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from annotation.choices.presets import PRESETS
from annotation.data.services import mappings, uploads
from annotation.models import Dataset, DatasetRole, DatasetState, Oracle, Project, Record
from annotation.models.imports import OpeningDraft
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services import drafts, opening
from learner.models.planning import PlanSimulation
from learner.pools import features, starts
from learner.pools.configuration import counted_places, featurizer_of, learned_classes
from learner.simulation.curves import PublicRows, pool_rows
from learner.simulation.setup import Setup

# Fewer rows say little, and more only take longer.
FEWEST_ROWS, MOST_ROWS = 30, 4000
TEST: Final = DatasetRole.PUBLIC_TEST


def read_public(simulation: PlanSimulation) -> PublicRows | None:
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


def _of_project(project: Project) -> PublicRows | None:
    rows, labels = [], []
    for dataset in Dataset.objects.filter(project=project, role=TEST, state=DatasetState.READY).order_by("pk"):
        known = Record.objects.filter(dataset=dataset, label__isnull=False).order_by("row_number")
        table = np.array(list(known.values_list("row_number", "label")[:MOST_ROWS]), dtype=np.int64).reshape(-1, 2)
        rows.append(np.asarray(features.open_features(dataset)[table[:, 0]]))
        labels.append(counted_places(project, table[:, 1]))
    return _public(project, rows, labels)


def _of_draft(draft: OpeningDraft) -> PublicRows | None:
    form = draft_form(PRESETS[draft.preset], draft.typed)
    if drafts.PUBLIC not in draft.files or not form.is_valid():
        return None
    with opening.rehearsed_project(preset=draft.preset, owner=draft.owner, **form.project_values()) as project:
        mapping = drafts.mapping_of(draft, drafts.PUBLIC, crowd=project.oracle == Oracle.CROWD)
        layout = mappings.layout_of(project, TEST, mapping)
        rows, labels = [], []
        with draft.public.open() as file:
            upload = uploads.open_upload(file, draft.files[drafts.PUBLIC]["name"], layout)
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


def _public(project: Project, rows: list[Any], labels: list[NDArray[np.int64]]) -> PublicRows | None:
    if sum(map(len, labels)) < FEWEST_ROWS:
        return None
    X = np.concatenate(rows)[:MOST_ROWS].astype(np.float32)
    y = np.concatenate(labels)[:MOST_ROWS]
    if len(np.unique(y)) < 2 or y.max() >= len(learned_classes(project)):
        return None
    if starts.why_no_version_zero(project):
        return PublicRows(X, y)
    model = starts.version_zero_of(project)
    return PublicRows(X, y, model.leaders(model.decision_function(X.astype(np.float64))).astype(np.int64))
