"""Pages of hidden checks, annotators' statistics, agreement and payment."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project
from annotation.budget.downloads import csv_response
from annotation.models import Membership, Project, Query, QueryState, Role
from annotation.models.quality import GoldQuery, PauseReason
from annotation.people.identity import note_nothing, person_of
from annotation.questions.images import image_response
from annotation.questions.selectors.answers import answer_name, label_type
from annotation.questions.selectors.checks import checks_in_use
from annotation.questions.services import checks as gold
from annotation.questions.services import labelling
from annotation.review.forms import ChecksForm, QualityForm
from annotation.review.selectors import quality as presenters
from annotation.review.selectors.quality import machine_sheet
from annotation.review.selectors.reviewing import drawn_reviews, waiting_for_review
from annotation.review.services import agreement as comparing
from annotation.review.suggestion_effect import effect_of
from annotation.work.polling import moving_page

CHECKS_AT_ONCE = 50


@login_required
def quality(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = QualityForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        labelling.set_quality(project=project, actor=person_of(request), **form.values())
        messages.success(request, _("Saved."))
        return redirect("annotation:quality", slug=slug)
    if form.errors:
        return render(request, "annotation/review/quality.html", _shown(project, form), status=422)
    return moving_page(
        request, "annotation/review/quality.html", presenters.quality_facts(project), lambda: _shown(project, form)
    )


def _shown(project: Project, form: QualityForm) -> dict[str, Any]:
    people = presenters.annotators_work(project)
    return {
        "project": project,
        "form": form,
        "checks_form": ChecksForm(project=project),
        "people": [(sheet, gold.is_warned(project, sheet.checks)) for sheet in people],
        "checks": GoldQuery.objects.filter(query__project=project, retired_at=None).count(),
        "coefficient": _(label_type(project).coefficient.label),
        "report": getattr(project, "quality_report", None),
        "waiting": waiting_for_review(project).count(),
        "drawn": drawn_reviews(project),
        "effect": effect_of(project),
        "machine": machine_sheet(project),
    }


@login_required
@require_POST
def add_checks(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = ChecksForm(request.POST, project=project)
    if form.is_valid():
        added = gold.add_public_checks(project=project, owner=person_of(request), **form.cleaned_data)
        messages.success(request, ngettext("%(n)d check was added.", "%(n)d checks were added.", added) % {"n": added})
    else:
        messages.error(request, _("Choose a public upload with labels."))
        note_nothing(request)
    return redirect("annotation:quality", slug=slug)


@login_required
@never_cache
def checks(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    found = checks_in_use(project)
    rows = [
        {
            "check": check,
            "right": check.answered - check.wrong,
            "known": answer_name(project, check.choice),
            "question": selectors.shown_of(
                project, check.query, image_url=reverse("annotation:check_image", args=[slug, check.query_id])
            ),
        }
        for check in found[:CHECKS_AT_ONCE]
    ]
    context = {"project": project, "rows": rows, "left": max(0, found.count() - CHECKS_AT_ONCE)}
    return render(request, "annotation/review/checks.html", context)


@login_required
@never_cache
def check_image(request: HttpRequest, slug: str, query_id: int) -> HttpResponse:
    found = Query.objects.filter(project=managed_project(request, slug), state=QueryState.GOLD)
    return image_response(get_object_or_404(found.select_related("record__dataset"), pk=query_id).record)


@login_required
@require_POST
def retire_check(request: HttpRequest, slug: str, check_id: int) -> HttpResponse:
    gold.retire_check(check=get_object_or_404(GoldQuery, pk=check_id, query__project=managed_project(request, slug)))
    messages.success(request, _("The check is retired. Answers to it count against nobody."))
    return redirect("annotation:checks", slug=slug)


@login_required
@require_POST
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    comparing.start_report(project=managed_project(request, slug), owner=person_of(request))
    return redirect("annotation:quality", slug=slug)


@login_required
@require_POST
def set_pause(request: HttpRequest, slug: str, membership_id: int) -> HttpResponse:
    members = Membership.objects.filter(project=managed_project(request, slug), role=Role.ANNOTATOR)
    membership = get_object_or_404(members, pk=membership_id)
    if request.POST.get("state") == "paused":
        gold.pause_member(membership=membership, reason=PauseReason.MANAGER)
    else:
        gold.resume_member(membership=membership)
    return redirect("annotation:quality", slug=slug)


@login_required
@never_cache
def own_statistics(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(selectors.projects_of(request.user, roles=(Role.ANNOTATOR,)), slug=slug)
    own = presenters.own_statistics(project=project, user=person_of(request))
    context = {"project": project, "own": own, "is_warned": gold.is_warned(project, own.sheet.checks)}
    return render(request, "annotation/review/own_statistics.html", context)


@login_required
def payments(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    return csv_response(presenters.payments_csv(managed_project(request, slug)), name=f"{slug}-payments")


@login_required
def opinions(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    return csv_response(presenters.opinions_csv(managed_project(request, slug)), name=f"{slug}-opinions")
