"""The dashboard: where a project stands in numbers, plots with their numbers under them, files, and work in hand."""

from collections.abc import Mapping
from datetime import datetime, time
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.budget import presenters
from annotation.budget.downloads import csv_response
from annotation.budget.spending import table_csv
from annotation.choices.measures import measure_of
from annotation.models import UNFINISHED, Project
from annotation.people.identity import note_nothing, person_of
from annotation.work.polling import moving_page
from learner.access import managed_project_of, may_manage, project_of
from learner.charts import pages as page_charts
from learner.charts.geometry import Chart
from learner.dashboard import tables as dashboard
from learner.dashboard.reading import OUTSIDE, plain_rows, readable_table
from learner.dashboard.rows import ask_to_stop, found_work, start_once_more
from learner.pools import selectors
from learner.releases import evaluations as evaluation_selectors
from learner.releases import selectors as release_selectors

SHOWN_ROWS = 30
# Title and caption of each chart that is a file, too, as the page says them.
PICTURES = {
    "spending": (
        gettext_lazy("Epsilon spent over time"),
        gettext_lazy("Spent and reserved over time; limits are dashed."),
    ),
    "labels": (
        gettext_lazy("Answers and labels by day"),
        gettext_lazy("Answers and labels by day"),
    ),
    "releases": (
        gettext_lazy("%(measure)s by version"),
        gettext_lazy("%(measure)s on public data, with 95-percent intervals."),
    ),
}
Amounts = dict[str, list[tuple[datetime, float]]]


@login_required
@never_cache
def show(request: HttpRequest, slug: str) -> HttpResponse:
    project = project_of(request, slug)
    managing = may_manage(request, project)
    facts = (
        presenters.ledger_facts(project),
        release_selectors.release_facts(project),
        # How many answers there are is for those inside, and so is when that number moves.
        (selectors.question_counts(project), dashboard.answers_in_all(project)) if managing else (),
    )
    return moving_page(
        request,
        "learner/dashboard/dashboard.html",
        facts,
        lambda: _board(request, project, managing=managing),
    )


def _board(request: HttpRequest, project: Project, *, managing: bool) -> dict[str, Any]:
    names = [*OUTSIDE, "labels", "annotators"] if managing else OUTSIDE
    tables = {name: readable_table(request, project, name) for name in names}
    context = {
        "project": project,
        "may_manage": managing,
        "sheets": presenters.budget_sheets(project),
        "tables": {name: _shown(table) for name, table in tables.items()},
        "charts": _charts(project, tables),
        "hidden": dashboard.hides_answers(project),
    }
    return context | (_inside(project) if managing else {})


def _inside(project: Project) -> dict[str, Any]:
    votes, agreeing, _labels = dashboard.answers_in_all(project)
    return {
        "counts": selectors.question_counts(project),
        "agreement": 100 * agreeing / votes if votes else None,
        "report": getattr(project, "quality_report", None),
    } | _work(project)


def _shown(table: dashboard.Table) -> dict[str, Any]:
    return {"table": table, "rows": table.rows[-SHOWN_ROWS:], "more": max(0, len(table.rows) - SHOWN_ROWS)}


def _work(project: Project) -> dict[str, Any]:
    found = dashboard.work_of(project)
    return {"works": found, "running": any(each.row.state in UNFINISHED for each in found)}


@login_required
@never_cache
def work_list(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project_of(request, slug)
    return render(request, "learner/dashboard/_work.html", {"project": project} | _work(project))


@login_required
@never_cache
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    project = project_of(request, slug)
    table = readable_table(request, project, name)
    lines = table_csv([column.name for column in table.columns], plain_rows(table))
    return csv_response(lines, name=f"{project.slug}-{name}")


@login_required
def plot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    project = project_of(request, slug)
    if name not in PICTURES:
        raise Http404
    table = readable_table(request, project, name)
    if not table.rows:
        raise Http404
    title, caption = (str(said) % {"measure": measure_of(project)} for said in PICTURES[name])
    if name == "releases":
        chart = _release_chart(project)
    else:
        chart = _spending_chart(table) if name == "spending" else _labels_chart(table)
    return page_charts.picture_of(chart, title=title, caption=caption)


def _standing_amounts(table: dashboard.Table) -> tuple[Amounts, Amounts]:
    curves: Amounts = {}
    limits: Amounts = {}
    for account, when, spent, _left, limit in table.rows:
        here = timezone.localtime(when)
        curves.setdefault(account, []).append((here, spent))
        limits.setdefault(account, []).append((here, limit))
    return curves, limits


def _shares(table: dashboard.Table) -> dict[str, list[tuple[str, float]]]:
    shares: dict[str, list[tuple[str, float]]] = {}
    first = table.rows[0][1]
    for account, by, name, _operations, _epsilon, _rho, _delta, percent in table.rows:
        if by == first:
            shares.setdefault(account, []).append((name, percent))
    return shares


def _so_far(table: dashboard.Table) -> Amounts:
    here = timezone.get_current_timezone()
    days = [(datetime.combine(row[0], time(), tzinfo=here), row) for row in table.rows]
    agreed, so_far = 0, []
    for day, row in days:
        agreed += row[3]
        so_far.append((day, float(agreed)))
    return {_("Answers"): [(day, float(row[2])) for day, row in days], _("Labels agreed on"): so_far}


def _charts(project: Project, tables: Mapping[str, dashboard.Table]) -> dict[str, Any]:
    return {
        "spending": _spending_chart(tables["spending"]),
        "purposes": _shares(tables["purposes"]) if tables["purposes"].rows else {},
        "releases": _release_chart(project),
        "labels": _labels_chart(tables["labels"]) if "labels" in tables else None,
    }


def _spending_chart(table: dashboard.Table) -> Chart | None:
    spent, limits = _standing_amounts(table)
    return page_charts.history_chart(spent, up="ε", limits=limits)


def _labels_chart(table: dashboard.Table) -> Chart | None:
    return page_charts.history_chart(_so_far(table), up=_("so far"))


def _release_chart(project: Project) -> Chart | None:
    history = evaluation_selectors.accuracy_history(project, up_to=2**31 - 1)
    named = [(one.dataset, version, one) for version, one in history]
    return page_charts.accuracy_chart(named, measure=measure_of(project))


@require_POST
@login_required
def cancel(request: HttpRequest, slug: str, kind: str, key: str) -> HttpResponse:
    project = managed_project_of(request, slug)
    row = found_work(project, kind, key)
    if ask_to_stop(row, by=person_of(request)):
        messages.success(request, _("It stops at its next safe point. Reserved epsilon stays charged."))
    else:
        messages.warning(request, _("It has already ended."))
        note_nothing(request)
    return redirect("learner:dashboard", slug=slug)


@require_POST
@login_required
def retry(request: HttpRequest, slug: str, kind: str, key: str) -> HttpResponse:
    project = managed_project_of(request, slug)
    if start_once_more(found_work(project, kind, key), owner=person_of(request)) is None:
        messages.warning(request, _("There is nothing to restart."))
        note_nothing(request)
    else:
        messages.success(request, _("Restarted; its cost is reserved again."))
    return redirect("learner:dashboard", slug=slug)
