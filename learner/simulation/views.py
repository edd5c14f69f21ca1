"""Pages of the planner."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.access import managed_project
from annotation.choices.presets import PRESETS
from annotation.gates.comparison import SYNTHETIC_RECORDS, SYNTHETIC_TEXTS
from annotation.models import Arrival, Project
from annotation.models.imports import OpeningDraft
from annotation.people.identity import note_nothing, person_of
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services import opening
from learner.charts import pages as page_charts
from learner.charts.geometry import Chart
from learner.models.planning import PlanSimulation
from learner.simulation import estimates, plan_setups, services
from learner.simulation.forecast import Forecast, forecast_of
from learner.simulation.plan_setups import total_epsilon
from learner.simulation.setup import Setup

DATA_WORDS = {
    "public": gettext_lazy("the public file"),
    "digits": gettext_lazy("public digits"),
    "made_up": gettext_lazy("synthetic data"),
}


class PlanForm(forms.Form):
    records = forms.IntegerField(
        min_value=plan_setups.FEWEST_RECORDS,
        max_value=plan_setups.MOST_RECORDS,
        label=gettext_lazy("Records to plan for"),
        help_text=gettext_lazy("Your estimate; no record is read."),
    )

    def __init__(self, *args: Any, arrival: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if arrival == Arrival.STREAM:
            self.fields["records"].help_text = _("Your estimate; no record is read.")


@login_required
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    """Use of the budget as the project is configured, and a simulation of how good its models become."""
    project = managed_project(request, slug)
    form, forecast = plan_of(project, request.POST or request.GET)
    if request.method == "POST" and forecast is not None:
        page = reverse("learner:plan", args=[slug])
        return _simulate(request, forecast, total_epsilon(project), project=project, page=page)
    context = {"project": project} | _context(form, forecast, project, "learner:plan_plot", slug)
    return render(request, "learner/simulation/plan.html", context, status=200 if forecast else 422)


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def draft_plan(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    """Use of the budget typed so far: the project is opened, asked, and rolled back."""
    draft = _draft_of(request, draft_id)
    typed = draft_form(PRESETS[draft.preset], draft.typed, assumed=True)
    if not typed.is_valid():
        return render(request, "learner/simulation/draft_plan.html", {"draft": draft, "wrong": typed}, status=422)
    with opening.rehearsed_project(preset=draft.preset, owner=draft.owner, **typed.project_values()) as project:
        form, forecast = plan_of(project, request.POST or request.GET, draft)
        context = {"draft": draft} | _context(form, forecast, project, "learner:draft_plan_plot", draft.pk)
        epsilon = total_epsilon(project)
    if request.method == "POST" and forecast is not None:
        page = reverse("learner:draft_plan", args=[draft.pk])
        return _simulate(request, forecast, epsilon, project=None, page=page, draft=draft)
    return render(request, "learner/simulation/draft_plan.html", context, status=200 if forecast else 422)


@login_required
def plan_plot(request: HttpRequest, slug: str, fingerprint: str) -> HttpResponse:
    managed_project(request, slug)
    return _picture(fingerprint)


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def draft_plan_plot(request: HttpRequest, draft_id: UUID, fingerprint: str) -> HttpResponse:
    """A simulation for a project that is not opened yet, as a picture; it is about nobody."""
    _draft_of(request, draft_id)
    return _picture(fingerprint)


def plan_of(project: Project, data: QueryDict, draft: OpeningDraft | None = None) -> tuple[PlanForm, Forecast | None]:
    """Return the forecast of as many records as are named, or of those that are there or may be expected."""
    if "records" not in data:
        forecast = forecast_of(project, draft=draft)
        return PlanForm(initial={"records": forecast.records}, arrival=project.arrival), forecast
    form = PlanForm(data, arrival=project.arrival)
    if not form.is_valid():
        return form, None
    return form, forecast_of(project, records=form.cleaned_data["records"], draft=draft)


def _simulate(
    request: HttpRequest,
    forecast: Forecast,
    epsilon: float,
    *,
    project: Project | None,
    page: str,
    draft: OpeningDraft | None = None,
) -> HttpResponse:
    # The opening page asks by itself while somebody reads it, which is no act of theirs.
    by_itself = "HX-Request" in request.headers
    if not forecast.can_be_simulated or by_itself:
        note_nothing(request)
    if forecast.can_be_simulated:
        assert forecast.setup is not None
        services.start_simulation(
            project=project,
            setup=forecast.setup,
            epsilon=epsilon,
            owner=person_of(request),
            draft=draft,
            public=forecast.public,
        )
        if not by_itself:
            messages.info(request, _("The simulation is running; it reads nothing private and is free."))
    return redirect(f"{page}?records={forecast.records}" if "records" in request.POST else page)


def _context(
    form: PlanForm, forecast: Forecast | None, project: Project, plot_page: str, key: object
) -> dict[str, Any]:
    if forecast is None:
        return {"form": form}
    simulation, setup = forecast.simulation, forecast.setup
    simulated = setup.label_counts[-1:] if setup is not None else []
    shown = _shown(simulation)
    return {
        "form": form,
        "forecast": forecast,
        "may_plan": True,
        "hints": estimates.answer_hints(project, sum(simulated)),
        "sizes": (SYNTHETIC_RECORDS, SYNTHETIC_TEXTS),
        "setup": setup,
        "accuracy_plot": reverse(plot_page, args=[key, simulation.fingerprint]) if simulation else "",
        **shown,
        "accuracy_chart": _chart(shown),
    }


def _chart(shown: Mapping[str, Any]) -> Chart | None:
    curves = [(curve["name"], curve["points"]) for curve in shown["curves"]]
    plain = [
        (_("%(data)s, without privacy") % {"data": curve["name"]}, curve["plain"])
        for curve in shown["curves"]
        if curve["plain"]
    ]
    return page_charts.simulation_chart(curves, beside=plain, across=_("Labels"), measure=shown["measure"])


def _picture(fingerprint: str) -> HttpResponse:
    found = get_object_or_404(PlanSimulation, fingerprint=fingerprint, result__isnull=False)
    is_f1 = Setup.from_json(found.setup).finds_spans
    title = _("Simulated entity F1 by labels") if is_f1 else _("Simulated accuracy by labels")
    return page_charts.picture_of(_chart(_shown(found)), title=title)


def _shown(simulation: PlanSimulation | None) -> Mapping[str, Any]:
    if simulation is None or simulation.result is None:
        return {"curves": [], "measure": ""}
    result, setup = simulation.result, Setup.from_json(simulation.setup)
    plain = result.get("plain", {})
    return {
        "curves": [
            {"name": str(DATA_WORDS[key]), "points": points, "plain": plain.get(key, [])}
            for key, points in result["curves"].items()
            if points
        ],
        "seeds": result["seeds"],
        "recommendation": estimates.recommendation(result),
        "rows": setup.simulated_records,
        "measure": _("Entity F1") if setup.finds_spans else _("Accuracy"),
    }


def _draft_of(request: HttpRequest, draft_id: UUID) -> OpeningDraft:
    return get_object_or_404(OpeningDraft, pk=draft_id, owner=person_of(request))
