"""Limits: changing one, asking a second manager, approving or refusing, and the setting that asks for them."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.budget import budget_levels, presenters
from annotation.budget.forms import AloneForm, LimitForm
from annotation.budget.words import typed_words
from annotation.models import Dataset, DatasetRole
from annotation.models.limits import LimitRequest, RequestState
from annotation.people.identity import note_nothing, person_of
from annotation.people.services import limits
from privacy.accounting.units import atto_spendable, nano_spendable
from privacy.ledger.selectors import guarantee

SHOWN = 50


@login_required
def change_limit(request: HttpRequest, slug: str, account_id: int) -> HttpResponse:
    """Give an account a new limit, with a reason that stays; a higher one may have to wait for a second manager."""
    project = managed_project(request, slug)
    account = get_object_or_404(presenters.statement_accounts(project), pk=account_id)
    now = guarantee(account)
    initial = {
        "epsilon_limit": typed_words(account.epsilon_limit_nano, 9),
        "delta_limit": typed_words(account.delta_limit_atto, 18),
    }
    form = LimitForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        asked = limits.change_limit(project=project, account=account, actor=person_of(request), **form.limits())
        if asked is None:
            messages.success(request, _("The limit is changed; the ledger says by whom and why."))
            return redirect("annotation:budget", slug=slug)
        messages.info(request, _("Another manager has to approve this. Nothing has changed yet."))
        return redirect("annotation:limit_requests", slug=slug)
    rows = sum(Dataset.objects.filter(project=project, role=DatasetRole.POOL).values_list("row_count", flat=True))
    budget_levels.say_consequences(form, delta=now.delta_limit)
    context = {
        "project": project,
        "account": account,
        "guarantee": now,
        "form": form,
        "meaning": budget_levels.plain_meaning(now.epsilon_limit, now.delta_limit),
        "advice": budget_levels.delta_advice(now.delta_limit, rows) if rows else "",
    }
    return render(request, "annotation/budget/change_limit.html", context, status=422 if form.errors else 200)


@login_required
def limit_requests(request: HttpRequest, slug: str) -> HttpResponse:
    """What waits for a second manager, what became of the rest, and whether one is needed."""
    project = managed_project(request, slug)
    limits.expire_requests()
    found = LimitRequest.objects.filter(project=project).select_related(
        "account", "requested_by", "decided_by", "appointee"
    )
    rows: list[dict[str, Any]] = [
        {
            "request": one,
            "own": one.requested_by_id == request.user.pk,
            "epsilon": None if one.epsilon_limit_nano is None else nano_spendable(one.epsilon_limit_nano),
            "delta": None if one.delta_limit_atto is None else atto_spendable(one.delta_limit_atto),
        }
        for one in found.order_by("-pk")[:SHOWN]
    ]
    context = {
        "project": project,
        "waiting": [row for row in rows if row["request"].state == RequestState.OPEN],
        "decided": [row for row in rows if row["request"].state != RequestState.OPEN],
        "form": AloneForm(),
        "days": limits.LIFETIME.days,
    }
    return render(request, "annotation/budget/limit_requests.html", context)


@login_required
@require_POST
def decide_limit(request: HttpRequest, slug: str, request_id: int) -> HttpResponse:
    """Approve, refuse or withdraw."""
    project = managed_project(request, slug)
    get_object_or_404(LimitRequest, pk=request_id, project=project)
    if request.POST.get("decision") == "approve":
        limits.approve_request(request_id=request_id, of=project, actor=person_of(request))
        messages.success(request, _("Approved and done; the ledger names both of you."))
    else:
        limits.refuse_request(request_id=request_id, of=project, actor=person_of(request))
        messages.success(request, _("Nothing was changed."))
    return redirect("annotation:limit_requests", slug=slug)


@login_required
@require_POST
def second_manager(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for a second manager from now on, or ask one to give that up."""
    project = managed_project(request, slug)
    if not project.second_manager:
        limits.demand_second_manager(project=project)
        messages.success(request, _("From now on a higher limit needs a second manager."))
        return redirect("annotation:limit_requests", slug=slug)
    form = AloneForm(request.POST)
    if form.is_valid():
        limits.ask_to_decide_alone(project=project, actor=person_of(request), **form.cleaned_data)
        messages.info(request, _("Another manager has to approve this. Nothing has changed yet."))
    else:
        messages.error(request, _("Say why."))
        note_nothing(request)
    return redirect("annotation:limit_requests", slug=slug)
