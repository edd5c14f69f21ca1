"""Predictions and suggestions of a released model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, Q
from numpy.typing import NDArray

from annotation.choices.plans import suggests
from annotation.models import Assignment, DataKind, Oracle, Project, Query, QueryState
from annotation.models.database import integer_table
from annotation.questions.services.spans import span_set_number
from annotation.selectors import asked_records
from dpal.spans.text import Span
from learner.errors import InputNotFitting, ReleaseBuried, not_released
from learner.features.base import Featurizer, featurizer_from_json
from learner.linear_model import LinearModel
from learner.models import ModelRelease, ReleaseState, Round
from learner.pools import attempts, features, selectors, starts
from learner.pools.configuration import featurizer_of, places_of_model
from learner.pools.keys import SUGGEST_CLASSES, attempt_key
from learner.pools.records import Examples
from learner.releases.artifacts.files import span_model
from learner.strategies.rows import ListedRows, Rows
from privacy.ledger import services as ledger
from privacy.mechanisms.randomness import SecureRandom
from privacy.wording import in_english

KEPT_RELEASES = 32


@dataclass(frozen=True, slots=True)
class Predictor:
    """Weights, featuriser and declared columns of one release; none of them ever changes."""

    model: LinearModel
    featurizer: Featurizer
    columns: frozenset[str] = frozenset()

    def predict(self, batch: Sequence[Any]) -> tuple[list[str] | list[list[str]], NDArray[np.float64]]:
        values = self.model.decision_function(self.featurizer.transform(batch))
        return self.model.named(values), self.model.probabilities(values)


def predict_records(
    *, release: ModelRelease, texts: Sequence[str] | None, rows: Sequence[dict[str, Any]] | None
) -> tuple[Predictor, list[str] | list[list[str]], NDArray[np.float64]]:
    """Predict texts, or rows of declared columns, whichever the project holds; say what predicted."""
    wanted = {DataKind.TEXT: ("texts", texts), DataKind.TABLE: ("rows", rows)}.get(DataKind(release.project.data_kind))
    if wanted is None:
        raise InputNotFitting(in_english("This route does not predict images; load model.onnx or weights.json."))
    name, batch = wanted
    if batch is None or (texts is not None and rows is not None):
        raise InputNotFitting(in_english("Send this project's records as {name} only.", name=name))
    if release.state == ReleaseState.CANDIDATE:
        raise not_released(release.version, release.held_back)
    # Asked of retired ones alone: a process that served it before would go on from memory.
    if release.state == ReleaseState.RETIRED and ModelRelease.objects.filter(pk=release.pk, weights={}).exists():
        raise ReleaseBuried("This release was deleted with its project; digests and guarantee remain.")
    predictor = _predictor(release.pk)
    if predictor.model.names_spans:
        raise InputNotFitting(in_english("This route finds no spans; use dpal.load(...).predict(texts)."))
    if rows is not None:
        refuse_undeclared_columns(rows, declared=predictor.columns)
    return predictor, *predictor.predict(batch)


def refuse_undeclared_columns(rows: Sequence[dict[str, Any]], *, declared: frozenset[str]) -> None:
    if any(key not in declared for row in rows for key in row):
        raise InputNotFitting(
            in_english("The declared columns are {columns}; others were sent.", columns=", ".join(sorted(declared)))
        )
    if any(isinstance(value, list | dict) for row in rows for value in row.values()):
        raise InputNotFitting(in_english("A cell is a text, a number, true, false or null."))


@lru_cache(maxsize=KEPT_RELEASES)
def _predictor(release_id: int) -> Predictor:
    weights, features = ModelRelease.objects.values_list("weights", "features").get(pk=release_id)
    columns = frozenset(column["name"] for column in features["parameters"].get("columns", ()))
    return Predictor(LinearModel.from_json(weights), featurizer_from_json(json.dumps(features)), columns)


BLOCK_ROWS = 65_536
PERCENT = 100


def suggest_for_round(chosen: Round, asked: Examples, *, applied_to: Rows | None = None) -> int:
    """Write suggestions beside the questions that a round opened, and beside checks without one; return how many."""
    project = chosen.project
    release = selectors.newest_release(project)
    among = len(asked.ids) if applied_to is None else len(applied_to)
    if suggests(project.settings) is None or not among:
        return 0
    # Before the first release the words about the classes say something, at epsilon 0.
    model = starts.described_model(project) if release is None else LinearModel.from_json(release.weights)
    if model is None:
        return 0
    if model.names_spans:
        # Of a secret block alone: its time would tell the coins.
        return 0 if applied_to is not None else _suggest_spans(project, model, chosen)
    X = features.stacked_features(asked.datasets, dimension=featurizer_of(project).dimension)
    order = np.argsort(asked.rows)
    leaders, percents = _applied(model, X, asked.rows[order], applied_to)
    source = "pk" if project.oracle == Oracle.CROWD else "record_id"
    opened = Query.objects.filter(project=project, round_number=chosen.number, state=QueryState.OPEN)
    # In an order that rests on nothing a table's rows have been through.
    pairs = integer_table(opened.order_by("pk").values_list("pk", source), columns=2)
    ids = asked.ids[order]
    by_id = np.argsort(ids)
    places = by_id[np.searchsorted(ids, pairs[:, 1], sorter=by_id)] if len(pairs) else pairs[:, 1]
    written = _store(project, _made(project, model, pairs[:, 0], leaders[places], percents[places]))
    written += _suggest_for_checks(project, model)
    if written and release is not None and project.oracle == Oracle.CROWD:
        _record(chosen, release, pairs[:, 0])
    return written


def _suggest_spans(project: Project, model: LinearModel, chosen: Round) -> int:
    """Suggest the spans that a model finds in the questions of a round and in checks, where it finds any."""
    asked = Q(round_number=chosen.number, state=QueryState.OPEN) | Q(state=QueryState.GOLD, gold__retired_at=None)
    waiting = Query.objects.filter(asked, project=project, suggested=None, emptied=False).order_by("pk")
    pairs = list(waiting.values_list("pk", "record"))
    records = asked_records(record for _pk, record in pairs)
    texts = [records[record].text or "" for _pk, record in pairs]
    now, made = project.renamed_classes, {}
    for (pk, _record), text, found in zip(pairs, texts, span_model(model).predict(texts), strict=True):
        if found:
            spans = [Span(one.start, one.end, now.get(one.type, one.type)) for one in found]
            percent = round(PERCENT * min(one.score for one in found))
            made[pk] = span_set_number(project, spans, text), percent
    return _store(project, made)


def only(among: Examples, ids: NDArray[np.int64]) -> Examples:
    wanted = np.isin(among.ids, ids)
    return Examples(among.ids[wanted], among.rows[wanted], among.datasets)


def _applied(
    model: LinearModel, X: NDArray[np.float32], wanted: NDArray[np.int64], rows: Rows | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the leading class of each wanted row and how sure the model is of it in percent, shape (n,) each."""
    rows = ListedRows(wanted) if rows is None else rows
    leaders, percents = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for block in rows.blocks(BLOCK_ROWS):
        values = model.decision_function(X[block])
        first, stop = np.searchsorted(wanted, [block[0], block[-1] + 1])
        places = np.searchsorted(block, wanted[first:stop])
        leaders.append(model.leaders(values)[places].astype(np.int64))
        percents.append(np.rint(PERCENT * model.probabilities(values).max(axis=1))[places].astype(np.int64))
        features.let_go_of_files(X)
    return np.concatenate(leaders), np.concatenate(percents)


def _suggest_for_checks(project: Project, model: LinearModel) -> int:
    waiting = Query.objects.filter(
        project=project, state=QueryState.GOLD, suggested=None, emptied=False, gold__retired_at=None
    )
    written = 0
    texts = list(waiting.filter(record=None).values_list("pk", "text"))
    if texts:
        X = np.asarray(featurizer_of(project).transform([text for _pk, text in texts]), dtype=np.float32)
        leaders, percents = _applied(model, X, np.arange(len(texts), dtype=np.int64))
        ids = np.array([pk for pk, _text in texts], dtype=np.int64)
        written += _store(project, _made(project, model, ids, leaders, percents))
    found = (
        waiting.filter(record__isnull=False).select_related("record__dataset__project").order_by("record__row_number")
    )
    by_dataset: dict[int, list[Query]] = {}
    for query in found.select_related("record__dataset__project"):
        assert query.record is not None
        by_dataset.setdefault(query.record.dataset_id, []).append(query)
    for queries in by_dataset.values():
        records = [query.record for query in queries if query.record is not None]
        X = features.open_features(records[0].dataset)
        leaders, percents = _applied(model, X, np.array([record.row_number for record in records], dtype=np.int64))
        ids = np.array([query.pk for query in queries], dtype=np.int64)
        written += _store(project, _made(project, model, ids, leaders, percents))
    return written


def _made(
    project: Project,
    model: LinearModel,
    ids: NDArray[np.int64],
    leaders: NDArray[np.int64],
    percents: NDArray[np.int64],
) -> dict[int, tuple[int, int]]:
    named = places_of_model(project, model.classes)[leaders]
    return dict(zip(ids.tolist(), zip(named.tolist(), percents.tolist(), strict=True), strict=True))


def _store(project: Project, made: Mapping[int, tuple[int, int]]) -> int:
    """Store what is suggested with each question, and how sure the model is of it in percent; return how many."""
    choice = suggests(project.settings)
    assert choice is not None
    coin = SecureRandom()
    # Whoever was asked without one must never be counted as asked with one, so nothing that was leased before gets one.
    leased = Assignment.objects.filter(query=OuterRef("pk"))
    free = Q(state=QueryState.GOLD) | Q(~Exists(leased), state=QueryState.OPEN)
    wanting = Query.objects.filter(free, project=project, suggested=None, emptied=False, pk__in=list(made))
    queries = list(wanting.select_for_update(no_key=True, of=("self",)).order_by("pk").only("pk"))
    for query in queries:
        query.suggested, query.suggested_percent = made[query.pk]
        query.suggestion_shown = coin.random() >= choice.blind_share
    Query.objects.bulk_update(queries, ["suggested", "suggested_percent", "suggestion_shown"], batch_size=1000)
    return len(queries)


def _record(chosen: Round, release: ModelRelease, ids: NDArray[np.int64]) -> None:
    parent = release.entry
    ledger.record_post_processing(
        account=parent.account,
        parent=parent,
        operation="suggestions",
        purpose=SUGGEST_CLASSES,
        subject=attempts.attempt_subject(chosen),
        output_digest=attempts.asked_digest(chosen, ids),
        key=attempt_key(chosen, chosen.attempt, part="suggestions"),
    )
