"""What was spent on what, what is left, and changing a limit."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation import selectors, sheets
from annotation.identity import person_of
from annotation.models import Role
from annotation.project_forms import LimitForm
from annotation.views.projects import managed_project
from privacy.selectors import guarantee
from privacy.services import ledger


@login_required
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    """Limits, spending and the statement of a project's accounts."""
    allowed = selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER))
    project = get_object_or_404(allowed, slug=slug)
    may_change = selectors.projects_of(request.user, roles=(Role.MANAGER,)).filter(pk=project.pk).exists()
    context = {
        "project": project,
        "sheets": sheets.detailed_sheets(project, compose="compose" in request.GET),
        "may_change": may_change,
    }
    return render(request, "annotation/budget.html", context)


@login_required
def change_limit(request: HttpRequest, slug: str, account_id: int) -> HttpResponse:
    """Give an account a new limit, with a reason that stays."""
    project = managed_project(request, slug)
    account = get_object_or_404(sheets.accounts_of(project), pk=account_id)
    now = guarantee(account)
    initial = {"epsilon_limit": now.epsilon_limit, "delta_limit": now.delta_limit}
    form = LimitForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        ledger.change_limit(account=account, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("The limit is changed; the ledger says by whom and why."))
        return redirect("annotation:budget", slug=slug)
    context = {"project": project, "account": account, "guarantee": now, "form": form}
    return render(request, "annotation/change_limit.html", context, status=422 if form.errors else 200)
