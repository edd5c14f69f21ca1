"""What the newest released model takes the questions of a round for, written beside them before anybody is asked.

Post-processing of a release: in front of a crowd it is applied to gate output, in a trusted project to records that its
annotators see anyway, who alone read what comes of it. A coin of its own, drawn from nothing else, leaves a declared
share of questions without one. Hidden checks get theirs by the same rule, so that none is known by having none.
"""

import secrets
from collections.abc import Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from annotation.choices.suggestions import suggests
from annotation.models import Oracle, Project, Query, QueryState
from learner import selectors
from learner.configuration.pool import featurizer_of
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round
from learner.pools.selectors import Examples
from learner.pools.services import features
from learner.work.keys import key_of
from learner.work.services import attempts
from privacy.services import ledger

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


def suggest_for_round(chosen: Round, among: Examples) -> int:
    """Write suggestions beside the questions a round has just opened, and beside checks without one; return how many.

    Call it in the transaction that opens the questions. `among` are the examples the model is applied to: those of the
    round, or of a secret choice all it was made from, so that how long it takes tells nothing.
    """
    project = chosen.project
    release = selectors.newest_release(project)
    if suggests(project.settings) is None or release is None or not len(among.ids):
        return 0
    model = LinearModel.from_json(release.weights)
    X = features.stacked_features(among.datasets, dimension=featurizer_of(project).dimension)
    leaders, percents = _applied(model, X, among.rows)
    source = "pk" if project.oracle == Oracle.CROWD else "record_id"
    asked = Query.objects.filter(project=project, round_number=chosen.number, state=QueryState.OPEN)
    pairs = np.array(list(asked.values_list("pk", source)), dtype=np.int64).reshape(-1, 2)
    order = np.argsort(among.ids)
    places = order[np.searchsorted(among.ids, pairs[:, 1], sorter=order)] if len(pairs) else pairs[:, 1]
    written = _store(project, pairs[:, 0].tolist(), leaders[places], percents[places])
    written += _suggest_for_checks(project, model)
    if written and project.oracle == Oracle.CROWD:
        _record(chosen, release, pairs[:, 0])
    return written


def only(among: Examples, ids: NDArray[np.int64]) -> Examples:
    """Return the examples with these ids."""
    wanted = np.isin(among.ids, ids)
    return Examples(among.ids[wanted], among.rows[wanted], among.datasets)


def _applied(
    model: LinearModel, X: NDArray[np.float32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the leading class of each row and how sure the model is of it in percent, shape (n,) each."""
    leaders, percents = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for start in range(0, len(rows), BLOCK_ROWS):
        values = model.decision_function(X[rows[start : start + BLOCK_ROWS]])
        leaders.append(model.leaders(values).astype(np.int64))
        percents.append(np.rint(PERCENT * model.probabilities(values).max(axis=1)).astype(np.int64))
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
        written += _store(project, [pk for pk, _text in texts], leaders, percents)
    found = waiting.filter(record__isnull=False).select_related("record__dataset__project")
    by_dataset: dict[int, list[Query]] = {}
    for query in found:
        assert query.record is not None
        by_dataset.setdefault(query.record.dataset_id, []).append(query)
    for queries in by_dataset.values():
        records = [query.record for query in queries if query.record is not None]
        X = features.open_features(records[0].dataset)
        leaders, percents = _applied(model, X, np.array([record.row_number for record in records], dtype=np.int64))
        written += _store(project, [query.pk for query in queries], leaders, percents)
    return written


def _store(project: Project, ids: Sequence[int], leaders: NDArray[np.int64], percents: NDArray[np.int64]) -> int:
    choice = suggests(project.settings)
    assert choice is not None
    coin = secrets.SystemRandom()
    values = {
        "project": project.pk,
        "ids": list(ids),
        "suggested": leaders.tolist(),
        "percent": percents.tolist(),
        "shown": [coin.random() >= choice.blind_share for _id in ids],
    }
    with connection.cursor() as cursor:
        cursor.execute(STORE, values)
        return int(cursor.rowcount)


def _record(chosen: Round, release: ModelRelease, ids: NDArray[np.int64]) -> None:
    """Write into the ledger that what strangers are shown descends from a release and from nothing else."""
    parent = release.entry
    ledger.record_post_processing(
        account=parent.account,
        parent=parent,
        operation="suggestions",
        purpose=f"suggest classes of version {release.version} in round {chosen.number}",
        subject=attempts.subject_of(chosen),
        output_digest=attempts.digest_of(chosen, ids),
        key=key_of(chosen, chosen.attempt, part="suggestions"),
    )
