"""Applying a row of a plan: to a project as another version of its configuration, to a draft as if it were typed."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.choices.presets import PRESETS
from annotation.errors import InvalidConfiguration
from annotation.people.identity import person_of
from annotation.projects.forms.wizard import draft_form
from annotation.projects.services import opening
from annotation.projects.views.wizard import draft_of, keep_draft
from learner.errors import PlanOutdated
from learner.planning.draft_rows import draft_with
from learner.planning.plan_setups import FEWEST_RECORDS, MOST_RECORDS
from learner.planning.rows import planned_rows
from learner.planning.services import using


class RowForm(forms.Form):
    """Which row of which plan."""

    records = forms.IntegerField(min_value=FEWEST_RECORDS, max_value=MOST_RECORDS)
    fingerprint = forms.RegexField("^[0-9a-f]{64}$")
    number = forms.IntegerField(min_value=0, max_value=1000)


@require_POST
@login_required
def use_plan(request: HttpRequest, slug: str) -> HttpResponse:
    """Let the project have the settings of a row."""
    project = managed_project(request, slug)
    form = _read(request)
    using.use_row(project=project, actor=person_of(request), **form.cleaned_data)
    messages.success(request, _("Saved. The change and your name are in the history."))
    return redirect(f"{reverse('learner:plan', args=[slug])}?records={form.cleaned_data['records']}")


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def use_draft_plan(request: HttpRequest, preset: str) -> HttpResponse:
    """Let the steps of a new project have the settings of a row; nothing is opened."""
    if preset not in PRESETS:
        raise Http404
    form, draft = _read(request), draft_of(request, preset)
    records = form.cleaned_data.pop("records")
    typed = draft_form(PRESETS[preset], draft, assumed=True)
    if not typed.is_valid():
        raise InvalidConfiguration("These settings are no project yet, so nothing can be applied to them.")
    with opening.rehearsed_project(preset=preset, owner=person_of(request), **typed.project_values()) as project:
        planned = planned_rows(project, records)
    row = using.tried_row(planned, **form.cleaned_data)
    changed = draft_with(PRESETS[preset], draft, row.changes)
    if changed is None:
        raise PlanOutdated("The steps of a new project cannot have these settings.")
    keep_draft(request, preset, changed)
    messages.success(request, _("The steps have these settings now. Nothing is opened yet."))
    return redirect(f"{reverse('learner:draft_plan', args=[preset])}?records={records}")


def _read(request: HttpRequest) -> RowForm:
    form = RowForm(request.POST)
    if not form.is_valid():
        raise PlanOutdated("No such row was simulated.")
    return form
