"""Forgetting a contributor, by a manager: who, what would happen, and then that it happens."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.data.services.forgetting import request_forgetting
from annotation.errors import ForgettingRefused
from annotation.models import UNFINISHED, Project
from annotation.models.retention import Forgetting
from annotation.people.identity import person_of
from learner.rounds.services.forgetting import preview_forgetting

SHOWN = 50


class ContributorForm(forms.Form):
    contributor = forms.CharField(
        max_length=500,
        label=gettext_lazy("Contributor"),
        help_text=gettext_lazy("Stored as a keyed hash only."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


@login_required
@never_cache
def forget(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, managed_project(request, slug), ContributorForm())


@login_required
@never_cache
@require_POST
def preview_forget(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug, closed_too=True)
    form = ContributorForm(request.POST)
    if not form.is_valid():
        return _page(request, project, form, status=422)
    name = form.cleaned_data["contributor"]
    try:
        preview = preview_forgetting(project=project, name=name)
    except ForgettingRefused as refusal:
        form.add_error("contributor", _(str(refusal)))
        return _page(request, project, form, status=422)
    return _page(request, project, form, preview=preview, contributor=name)


@login_required
@require_POST
def forget_now(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug, closed_too=True)
    form = ContributorForm(request.POST)
    if not form.is_valid():
        return _page(request, project, form, status=422)
    if request.POST.get("understood") != "yes":
        form.add_error(None, _("Confirm that you have read this."))
        return _page(request, project, form, status=422)
    try:
        request_forgetting(
            project=project, name=form.cleaned_data["contributor"], actor=person_of(request).get_username()
        )
    except ForgettingRefused as refusal:
        form.add_error("contributor", _(str(refusal)))
        return _page(request, project, form, status=422)
    messages.success(request, _("The contributor is being erased."))
    return redirect("learner:forget", slug=slug)


def _page(
    request: HttpRequest, project: Project, form: ContributorForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    asked = Forgetting.objects.filter(project=project).select_related("job").order_by("-pk")[:SHOWN]
    running = any(row.job.state in UNFINISHED for row in asked)
    context = {"project": project, "form": form, "asked": asked, "running": running, **more}
    return render(request, "learner/rounds/forget.html", context, status=status)
