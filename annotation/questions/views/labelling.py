"""Pages of labelling for managers: settings, label budget, reports; and the end of a crowd's participation."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from annotation import selectors
from annotation.access import managed_project
from annotation.budget.label_budget import label_budget as budget_of_labels
from annotation.budget.label_budget import label_budget_forecast
from annotation.models import Project, Query
from annotation.models.joining import CrowdParticipant
from annotation.people.identity import note_nothing, person_of
from annotation.people.views import SESSION_KEY
from annotation.questions.forms import FLAGS, SKIP_REASONS, CommentForm, LabelBudgetForm, LabellingForm
from annotation.questions.selectors import (
    count_for_managers,
    may_read_questions,
    questions_set_aside,
    reply_refusal,
    reports_on_others,
)
from annotation.questions.services import flags
from annotation.questions.services.labelling import (
    answers_of,
    complete,
    is_done,
    own_participation,
    set_label_budget,
    set_labelling,
)


@login_required
def labelling(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = LabellingForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        set_labelling(project=project, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("annotation:labelling", slug=slug)
    context = {"project": project, "form": form, "waiting": count_for_managers(project)}
    return render(request, "annotation/questions/labelling.html", context, status=422 if form.errors else 200)


@login_required
def label_budget(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = LabelBudgetForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        set_label_budget(project=project, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("annotation:data", slug=slug)
    context = {
        "project": project,
        "form": form,
        "labels": budget_of_labels(project),
        "forecast": label_budget_forecast(project),
    }
    return render(request, "annotation/questions/label_budget.html", context, status=422 if form.errors else 200)


@login_required
@never_cache
def crowd_done(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(selectors.projects_of(request.user), slug=slug)
    participant = own_participation(
        participant_id=request.session.get(SESSION_KEY), user=person_of(request), project=project
    )
    context = {
        "project": project,
        "participant": participant,
        "is_complete": complete(participant=participant),
        "answers": answers_of(participant),
    }
    return render(request, "annotation/questions/crowd_done.html", context)


def end_of_task(request: HttpRequest, project: Project) -> HttpResponse | None:
    if SESSION_KEY not in request.session:
        return None
    participants = CrowdParticipant.objects.select_related("link")
    participant = participants.filter(pk=request.session[SESSION_KEY], link__project=project).first()
    if participant is None or not is_done(participant):
        return None
    page = reverse("annotation:crowd_done", args=[project.slug])
    return HttpResponseClientRedirect(page) if request.htmx else redirect(page)  # type: ignore[attr-defined]


@login_required
def reported(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    context = {
        "project": project,
        "set_aside": questions_set_aside(project, request.user),
        "others": reports_on_others(project),
        "readable": may_read_questions(project, request.user),
        "reasons": SKIP_REASONS | FLAGS,
        "writes_nobody": reply_refusal(project),
    }
    return render(request, "annotation/questions/reported.html", context)


@login_required
@require_POST
def decide(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    change = flags.ask_set_aside_again if request.POST.get("decision") == "ask" else flags.leave_out_set_aside
    try:
        change(project=project, query_id=query_id, user=person_of(request))
    except Query.DoesNotExist as absent:
        raise Http404 from absent
    return redirect("annotation:reported", slug=slug)


@login_required
@require_POST
def resolve(request: HttpRequest, slug: str, report_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    report = get_object_or_404(project.reports, pk=report_id)
    form = CommentForm(request.POST)
    if "reply" not in request.POST:
        flags.resolve_report(project=project, report_id=report.pk, user=person_of(request))
    elif form.is_valid():
        flags.reply(project=project, report_id=report.pk, text=form.cleaned_data["comment"], author=person_of(request))
        messages.success(request, _("Sent."))
    else:
        messages.error(request, str(next(iter(form.errors.values()))[0]))
        note_nothing(request)
    if "question" in request.POST:
        return redirect("annotation:question", slug=slug, query_id=report.query_id)
    return redirect("annotation:reported", slug=slug)
