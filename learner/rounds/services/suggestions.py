"""What the newest released model takes the questions of a round for, written beside them before anybody is asked.

Post-processing of a release: in front of a crowd it is applied to gate output, in a trusted project to records that its
annotators see anyway, who alone read what comes of it. A coin of its own, drawn from nothing else, leaves a declared
share of questions without one. Hidden checks get theirs by the same rule, so that none is known by having none.
"""

import secrets

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from annotation.choices.suggestions import suggests
from annotation.models import Oracle, Project, Query, QueryState
from learner import selectors
from learner.configuration.classes import places_of_model
from learner.configuration.pool import featurizer_of
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round
from learner.pools import selectors as pool_selectors
from learner.pools.selectors import Examples
from learner.pools.services import features
from learner.strategies.rows import ListedRows, Rows
from learner.work.keys import attempt_key
from learner.work.purposes import SUGGEST_CLASSES
from learner.work.services import attempts
from privacy.services import ledger
from privacy.wording import as_message

BLOCK_ROWS = 65_536
PERCENT = 100
# Whoever was asked without one must never be counted as asked with one, so nothing that was leased before gets one.
STORE = """
UPDATE annotation_query query
SET suggested = made.suggested, suggested_percent = made.percent, suggestion_shown = made.shown
FROM unnest(%(ids)s::bigint[], %(suggested)s::int[], %(percent)s::int[], %(shown)s::bool[])
    AS made (id, suggested, percent, shown)
WHERE query.id = made.id AND query.project_id = %(project)s AND query.suggested IS NULL AND NOT query.emptied
  AND (query.state = 'gold' OR query.state = 'open' AND NOT EXISTS (
      SELECT 1 FROM annotation_assignment held WHERE held.query_id = query.id))
"""


def suggest_for_round(chosen: Round, asked: Examples, *, applied_to: Rows | None = None) -> int:
    """Write suggestions beside the questions a round has just opened, and beside checks without one; return how many.

    Call it in the transaction that opens the questions. `applied_to` are the rows the model is applied to if not those
    asked about alone: of a secret choice all it was made from, so that how long it takes tells nothing.
    """
    project = chosen.project
    release = selectors.newest_release(project)
    among = len(asked.ids) if applied_to is None else len(applied_to)
    if suggests(project.settings) is None or release is None or not among:
        return 0
    model = LinearModel.from_json(release.weights)
    X = features.stacked_features(asked.datasets, dimension=featurizer_of(project).dimension)
    order = np.argsort(asked.rows)
    leaders, percents = _applied(model, X, asked.rows[order], applied_to)
    source = "pk" if project.oracle == Oracle.CROWD else "record_id"
    opened = Query.objects.filter(project=project, round_number=chosen.number, state=QueryState.OPEN)
    # In an order that rests on nothing a table's rows have been through.
    pairs = pool_selectors.integer_table(opened.order_by("pk").values_list("pk", source), columns=2)
    ids = asked.ids[order]
    by_id = np.argsort(ids)
    places = by_id[np.searchsorted(ids, pairs[:, 1], sorter=by_id)] if len(pairs) else pairs[:, 1]
    written = _store(project, model, pairs[:, 0], leaders[places], percents[places])
    written += _suggest_for_checks(project, model)
    if written and project.oracle == Oracle.CROWD:
        _record(chosen, release, pairs[:, 0])
    return written


def only(among: Examples, ids: NDArray[np.int64]) -> Examples:
    """Return the examples with these ids."""
    wanted = np.isin(among.ids, ids)
    return Examples(among.ids[wanted], among.rows[wanted], among.datasets)


def _applied(
    model: LinearModel, X: NDArray[np.float32], wanted: NDArray[np.int64], rows: Rows | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the leading class of each wanted row and how sure the model is of it in percent, shape (n,) each.

    Those wanted are in increasing order, and all are among `rows`, which the model is applied to a block at a time.
    """
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
    """Give checks in use that have no suggestion theirs: texts through the featuriser, records by their features."""
    waiting = Query.objects.filter(
        project=project, state=QueryState.GOLD, suggested=None, emptied=False, gold__retired_at=None
    )
    written = 0
    texts = list(waiting.filter(record=None).values_list("pk", "text"))
    if texts:
        X = np.asarray(featurizer_of(project).transform([text for _pk, text in texts]), dtype=np.float32)
        leaders, percents = _applied(model, X, np.arange(len(texts), dtype=np.int64))
        written += _store(project, model, np.array([pk for pk, _text in texts], dtype=np.int64), leaders, percents)
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
        written += _store(project, model, np.array([query.pk for query in queries], dtype=np.int64), leaders, percents)
    return written


def _store(
    project: Project,
    model: LinearModel,
    ids: NDArray[np.int64],
    leaders: NDArray[np.int64],
    percents: NDArray[np.int64],
) -> int:
    choice = suggests(project.settings)
    assert choice is not None
    coin, written = secrets.SystemRandom(), 0
    places = places_of_model(project, model.classes)
    with connection.cursor() as cursor:
        for start in range(0, len(ids), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            values = {
                "project": project.pk,
                "ids": ids[part].tolist(),
                "suggested": places[leaders[part]].tolist(),
                "percent": percents[part].tolist(),
                "shown": [coin.random() >= choice.blind_share for _id in ids[part]],
            }
            cursor.execute(STORE, values)
            written += int(cursor.rowcount)
    return written


def _record(chosen: Round, release: ModelRelease, ids: NDArray[np.int64]) -> None:
    """Write into the ledger that what strangers are shown descends from a release and from nothing else."""
    parent = release.entry
    ledger.record_post_processing(
        account=parent.account,
        parent=parent,
        operation=as_message("suggestions"),
        purpose=SUGGEST_CLASSES,
        subject=attempts.attempt_subject(chosen),
        output_digest=attempts.asked_digest(chosen, ids),
        key=attempt_key(chosen, chosen.attempt, part="suggestions"),
    )
