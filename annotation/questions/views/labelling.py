"""How a project labels, for its managers: settings, and what annotators report."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.models import Query
from annotation.people.identity import person_of
from annotation.questions import report_selectors
from annotation.questions.forms.labelling import LabellingForm
from annotation.questions.forms.labels import FLAGS, SKIP_REASONS
from annotation.questions.services import reports, setting_aside
from annotation.questions.services.labelling import set_labelling


@login_required
def labelling(request: HttpRequest, slug: str) -> HttpResponse:
    """How questions are handed out and answered."""
    project = managed_project(request, slug)
    form = LabellingForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        set_labelling(project=project, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("Saved. Annotators notice it at their next question."))
        return redirect("annotation:labelling", slug=slug)
    context = {"project": project, "form": form, "waiting": report_selectors.count_for_managers(project)}
    return render(request, "annotation/questions/labelling.html", context, status=422 if form.errors else 200)


@login_required
def reported(request: HttpRequest, slug: str) -> HttpResponse:
    """Questions nobody gets further with, and what annotators say about others."""
    project = managed_project(request, slug)
    context = {
        "project": project,
        "set_aside": report_selectors.questions_set_aside(project, request.user),
        "others": report_selectors.reports_on_others(project),
        "readable": report_selectors.may_read_questions(project, request.user),
        "reasons": SKIP_REASONS | FLAGS,
    }
    return render(request, "annotation/questions/reported.html", context)


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
    reports.resolve_report(project=project, report_id=report.pk, user=person_of(request))
    return redirect("annotation:reported", slug=slug)
