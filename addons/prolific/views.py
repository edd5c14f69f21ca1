"""Pages of studies on Prolific: the account, all studies of a project, and one with its submissions."""

from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from addons.prolific import selectors
from addons.prolific.errors import StudyRefused
from addons.prolific.forms import AccountForm, BonusForm, StudyForm, VerdictForm
from addons.prolific.models import CrowdStudy, PlatformAccount, StudyStep, VerdictKind
from addons.prolific.services import accounts, bonuses
from addons.prolific.services import studies as service
from annotation.access import managed_project
from annotation.models import Oracle, Project
from annotation.people.identity import person_of
from annotation.wording import localized


@login_required
@never_cache
def studies(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = StudyForm(request.POST or None, initial={"name": project.name})
    if request.method == "POST" and form.is_valid():
        try:
            study = service.open_study(project=project, owner=person_of(request), **form.values())
        except StudyRefused as refusal:
            _add_refusal(form, refusal)
        else:
            messages.success(request, _("Saved."))
            return redirect("prolific:study", slug=slug, study_id=study.pk)
    return _page(request, project, form=form)


@sensitive_post_parameters("token")
@login_required
@never_cache
@require_POST
def connect_platform(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    if "forget" in request.POST:
        accounts.disconnect_account(project=project)
        messages.success(request, _("Removed."))
        return redirect("prolific:studies", slug=slug)
    form = AccountForm(request.POST)
    if not form.is_valid():
        return _page(request, project, account_form=form)
    accounts.connect_account(project=project, actor=person_of(request), **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("prolific:studies", slug=slug)


@login_required
@never_cache
def study(request: HttpRequest, slug: str, study_id: int) -> HttpResponse:
    return _study_page(request, _found(request, slug, study_id))


@login_required
@require_POST
def change_study(request: HttpRequest, slug: str, study_id: int) -> HttpResponse:
    found = _found(request, slug, study_id)
    do = request.POST.get("do", "")
    if do in StudyStep.values:
        service.want_step(study=found, step=StudyStep(do))
        messages.success(request, _("Prolific is being asked."))
    elif do == "approve":
        number = service.approve_complete(study=found, actor=person_of(request))
        words = ngettext("%(n)d participation is being approved.", "%(n)d participations are being approved.", number)
        messages.success(request, words % {"n": number})
    elif do == "look":
        service.follow_soon(found)
        messages.success(request, _("Prolific is being asked."))
    elif do == "forget":
        service.forget_people(study=found)
        messages.success(request, _("Removed."))
    else:
        raise StudyRefused("Nothing here has this name.")
    return redirect("prolific:study", slug=slug, study_id=study_id)


@login_required
@require_POST
def judge_submission(request: HttpRequest, slug: str, study_id: int) -> HttpResponse:
    found = _found(request, slug, study_id)
    form = VerdictForm(request.POST, open_ones=_open_ones(selectors.rows_of(found)))
    if form.is_valid():
        values = form.cleaned_data
        try:
            service.judge(
                submission=found.submissions.get(pk=values["submission"]),
                kind=VerdictKind(values["kind"]),
                message=values["message"],
                category=values["category"],
                actor=person_of(request),
            )
        except StudyRefused as refusal:
            _add_refusal(form, refusal)
        else:
            messages.success(request, _("Prolific is being asked."))
            return redirect("prolific:study", slug=slug, study_id=study_id)
    return _study_page(request, found, verdict_form=form)


@login_required
@require_POST
def give_bonuses(request: HttpRequest, slug: str, study_id: int) -> HttpResponse:
    found = _found(request, slug, study_id)
    form = BonusForm(request.POST)
    if form.is_valid():
        try:
            bonuses.give_bonuses(
                study=found,
                key=form.cleaned_data["key"],
                cents_by_name=form.cleaned_data["amounts"],
                actor=person_of(request),
            )
        except StudyRefused as refusal:
            _add_refusal(form, refusal)
        else:
            messages.success(request, _("The bonuses are being paid."))
            return redirect("prolific:study", slug=slug, study_id=study_id)
    return _study_page(request, found, bonus_form=form)


@login_required
@require_POST
def settle_bonuses(request: HttpRequest, slug: str, study_id: int) -> HttpResponse:
    found = _found(request, slug, study_id)
    bonuses.settle_unclear(study=found, came=request.POST.get("came") == "yes")
    messages.success(request, _("Saved."))
    return redirect("prolific:study", slug=slug, study_id=study_id)


def _found(request: HttpRequest, slug: str, study_id: int) -> CrowdStudy:
    return get_object_or_404(
        CrowdStudy.objects.select_related("project", "link"), pk=study_id, project=managed_project(request, slug)
    )


def _add_refusal(form: Form, refusal: StudyRefused) -> None:
    form.add_error(refusal.field if refusal.field in form.fields else None, localized(refusal.args[0]))


def _open_ones(rows: list[selectors.SubmissionRow]) -> list[tuple[int, str]]:
    return [
        (row.submission.pk, f"{row.submission.pk} {row.participant.user.username if row.participant else ''}".strip())
        for row in rows
        if row.is_open
    ]


def _page(request: HttpRequest, project: Project, **forms: Form) -> HttpResponse:
    account = PlatformAccount.objects.filter(project=project).first()
    sheets = selectors.studies_of(project)
    context: dict[str, Any] = {
        "project": project,
        "account": account,
        "currency": project.currency or (account.currency if account else ""),
        "sheets": sheets,
        "money": selectors.money_of(project, sheets),
        "is_allowed": bool(settings.PROLIFIC_URL),
        "is_crowd": project.oracle == Oracle.CROWD,
        "form": StudyForm(initial={"name": project.name}),
        "account_form": AccountForm(initial={"fee_percent": account.fee_percent if account else None}),
    } | forms
    wrong = any(form.errors for form in forms.values())
    return render(request, "prolific/studies.html", context, status=422 if wrong else 200)


def _study_page(request: HttpRequest, found: CrowdStudy, **forms: Form) -> HttpResponse:
    rows = selectors.rows_of(found)
    account = PlatformAccount.objects.filter(project=found.project_id).first()
    context: dict[str, Any] = {
        "project": found.project,
        "study": found,
        "sheet": selectors.sheet_of_study(found),
        "rows": rows,
        "approvable": sum(row.may_be_approved for row in rows),
        "account": account,
        "currency": found.project.currency or (account.currency if account else ""),
        "money": selectors.money_of(found.project),
        "bonus_sheets": found.bonus_sheets.order_by("-created_at").prefetch_related("lines"),
        "verdict_form": VerdictForm(open_ones=_open_ones(rows)),
        "bonus_form": BonusForm(initial={"key": uuid4()}),
    } | forms
    wrong = any(form.errors for form in forms.values())
    return render(request, "prolific/study.html", context, status=422 if wrong else 200)
