"""The page of a crowd project's ranked pool: what waits, in which order, and what the answers may still cost."""

from dataclasses import dataclass

import numpy as np
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from numpy.typing import NDArray

from annotation.access import managed_project
from annotation.budget.label_budget import label_budget, questions_left
from annotation.models import Oracle, Query, Selection
from learner.linear_model import LinearModel
from learner.pools import records, selectors, starts
from learner.pools.configuration import strategy_choice_of, strategy_of
from learner.rounds.services.selection import ranked_texts
from learner.strategies.uncertainty import Uncertainty

SHOWN_EXAMPLES = 20
# What a page has time to rank; a round ranks any number.
RANKED_ON_PAGE = 20_000
CONFIDENCE_EDGES = np.linspace(0.0, 1.0, 11)


@dataclass(frozen=True, slots=True)
class Ranked:
    query: Query
    uncertainty: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Number of texts the model is this sure of; `low` and `high` in percent."""

    low: int
    high: int
    texts: int


@login_required
def ranked_pool(request: HttpRequest, slug: str) -> HttpResponse:
    """Texts that passed the gate and wait, most uncertain first, and what is left of the budget; managers only."""
    project = managed_project(request, slug)
    if project.oracle != Oracle.CROWD:
        raise Http404
    candidates = records.waiting_texts(project)
    model = selectors.newest_release(project)
    context = {
        "project": project,
        "labels": label_budget(project),
        "questions_left": questions_left(project),
        "waiting": len(candidates.ids),
        "model": model,
    }
    strategy = selectors.next_strategy(project)
    again = strategy == Selection.REPEAT_VOTES
    context["order"] = strategy_choice_of(project, "" if again else strategy).order
    chooser = strategy_of(project, strategy)
    context["scores"] = chooser.needs_model
    few = 0 < len(candidates.ids) <= RANKED_ON_PAGE
    if isinstance(chooser, Uncertainty) and few and not again:
        weights = LinearModel.from_json(model.weights) if model else starts.start_model(project)
        if weights is not None:
            ids, doubts, confidence = ranked_texts(project, candidates, strategy=chooser, model=weights)
            context |= {"ranked": _first(ids, doubts, confidence), "bins": _bins(confidence)}
    return render(request, "learner/rounds/ranked_pool.html", context)


def _first(*columns: NDArray[np.generic]) -> list[Ranked]:
    rows = list(zip(*(column[:SHOWN_EXAMPLES].tolist() for column in columns), strict=True))
    found = Query.objects.in_bulk([pk for pk, _doubt, _sure in rows])
    return [Ranked(found[pk], unsure, 100 * sure) for pk, unsure, sure in rows if pk in found]


def _bins(confidence: NDArray[np.float64]) -> list[Bin]:
    counts, edges = np.histogram(confidence, bins=CONFIDENCE_EDGES)
    percent = np.rint(100 * edges).astype(int).tolist()
    rows = zip(percent, percent[1:], counts.tolist(), strict=False)
    return [Bin(low, high, texts) for low, high, texts in rows if texts]
