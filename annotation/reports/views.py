"""What annotators report, for managers: questions nobody gets further with, and what is said about others."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.models import Query
from annotation.people.identity import person_of
from annotation.reports.forms import FLAGS, SKIP_REASONS
from annotation.reports.selectors import waiting
from annotation.reports.services import reporting, setting_aside


@login_required
def reported(request: HttpRequest, slug: str) -> HttpResponse:
    """Questions nobody gets further with, and what annotators say about others."""
    project = managed_project(request, slug)
    context = {
        "project": project,
        "set_aside": waiting.questions_set_aside(project, request.user),
        "others": waiting.reports_on_others(project),
        "readable": waiting.may_read_questions(project, request.user),
        "reasons": SKIP_REASONS | FLAGS,
    }
    return render(request, "annotation/reports/reported.html", context)


@login_required
@require_POST
def decide(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    """Have a question asked again, or leave it out for good."""
    project = managed_project(request, slug)
    change = (
        setting_aside.ask_set_aside_again
        if request.POST.get("decision") == "ask"
        else setting_aside.leave_out_set_aside
    )
    try:
        change(project=project, query_id=query_id, user=person_of(request))
    except Query.DoesNotExist as absent:
        raise Http404 from absent
    return redirect("annotation:reported", slug=slug)


@login_required
@require_POST
def resolve(request: HttpRequest, slug: str, report_id: int) -> HttpResponse:
    """Take a report off the list."""
    project = managed_project(request, slug)
    report = get_object_or_404(project.reports, pk=report_id)
    reporting.resolve_report(project=project, report_id=report.pk, user=person_of(request))
    return redirect("annotation:reported", slug=slug)
