"""The page of class shares: what was released, and what can be asked for at which price."""

from dataclasses import astuple

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from annotation.budget.downloads import csv_response
from annotation.budget.spending import table_csv
from annotation.people.identity import person_of
from annotation.work.polling import moving_page
from learner.access import may_manage, project_of
from learner.models import Grouping
from learner.pools.selectors import version_number
from learner.releases.selectors import thresholds_of
from learner.shares import selectors, services

SHOWN = 10
COLUMNS = (
    *("count", "block", "group", "class", "percent", "low", "high"),
    *("labels_alone", "labels_low", "labels_high", "model_alone", "moved"),
)


@login_required
def show(request: HttpRequest, slug: str) -> HttpResponse:
    project = project_of(request, slug)
    if request.method == "POST":
        if not may_manage(request, project):
            raise PermissionDenied(_("Only a manager can do this."))
        named = selectors.grouping_named(project, request.POST.get("grouping", ""))
        block = version_number(request.POST.get("block") or "")
        if named is None or not block:
            raise Http404
        grouping, column = named
        actor = person_of(request)
        services.ask_shares(project=project, block=block, grouping=grouping, column=column, actor=actor)
        messages.success(request, _("The records are being counted."))
        return redirect("learner:shares", slug=slug)
    by = request.GET.get("by", "")
    grouping, column = selectors.grouping_named(project, by) or (Grouping.WHOLE, "")
    points = wanted_points(request.GET.get("points", ""))
    reports = list(selectors.reports_of(project)[:SHOWN])
    return moving_page(
        request,
        "learner/shares/shares.html",
        [(report.number, report.state) for report in reports],
        lambda: {
            "project": project,
            "reports": [
                (report, rows, selectors.axis_top(rows), thresholds_of(report))
                for report in reports
                for rows in (selectors.share_rows(report),)
            ],
            "refusal": selectors.refusal(project),
            "offers": selectors.offers(project, grouping=grouping, column=column),
            "series": selectors.series_price(project),
            "grouping": f"{grouping}:{column}" if column else grouping,
            "groupings": selectors.grouping_choices(project),
            "points": points,
            "needs": selectors.needs(project, points=points) if points else [],
            "may_ask": may_manage(request, project) and not selectors.is_busy(project),
        },
    )


def wanted_points(typed: str) -> float | None:
    """Return a half width in points, None where none was typed."""
    try:
        points = float(typed)
    except ValueError:
        return None
    return points if 0 < points <= 50 else None


@login_required
def download(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    project = project_of(request, slug)
    rows = (
        (report.number, report.block.block, *astuple(row))
        for report in selectors.reports_of(project)
        for row in selectors.share_rows(report)
    )
    return csv_response(table_csv(COLUMNS, rows), name=f"{project.slug}-shares")
