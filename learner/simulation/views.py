"""Pages of the planner."""

from collections.abc import Mapping
from dataclasses import dataclass
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
from annotation.models import UNFINISHED, Arrival, Project
from annotation.models.imports import OpeningDraft
from annotation.people.identity import note_nothing, person_of
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services import opening
from learner.charts import pages as page_charts
from learner.charts.geometry import Chart
from learner.models.planning import PlanSimulation
from learner.simulation import estimates, plan_setups, services
from learner.simulation.plan_setups import Purchase
from learner.simulation.setup import Setup

DATA_WORDS = {
    "digits": gettext_lazy("scikit-learn's handwritten digits"),
    "made_up": gettext_lazy("made-up clouds of the declared dimension"),
}


class PlanForm(forms.Form):
    records = forms.IntegerField(
        min_value=plan_setups.FEWEST_RECORDS,
        max_value=plan_setups.MOST_RECORDS,
        label=gettext_lazy("Records to plan for"),
        help_text=gettext_lazy("Of an upload, or texts that pass the gate. Your own guess: no upload is looked at."),
    )

    def __init__(self, *args: Any, arrival: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if arrival == Arrival.STREAM:
            self.fields["records"].help_text = _("That arrive one by one. Your own guess: no record is looked at.")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a project's accounts buy for so many records, as plain values; `purchase` is None for no such number."""

    form: PlanForm
    purchase: Purchase | None = None
    setup: Setup | None = None
    epsilon: float = 0.0
    hints: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        return int(self.form.cleaned_data["records"])


@login_required
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    """What the budget buys as the project is configured, and a simulation of how good its models become."""
    project = managed_project(request, slug)
    made = plan_of(project, request.POST or request.GET)
    if request.method == "POST" and made.setup is not None:
        return _simulate(request, made, project=project, page=reverse("learner:plan", args=[slug]))
    context = {"project": project}
    context |= _context(made, "learner:plan_plot", slug)
    return render(request, "learner/simulation/plan.html", context, status=200 if made.purchase else 422)


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def draft_plan(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    """What the budget typed so far would buy: the project is opened, asked, and taken back before anybody sees it."""
    draft = _draft_of(request, draft_id)
    form = draft_form(PRESETS[draft.preset], draft.typed, assumed=True)
    if not form.is_valid():
        return render(request, "learner/simulation/draft_plan.html", {"draft": draft, "wrong": form}, status=422)
    with opening.rehearsed_project(preset=draft.preset, owner=draft.owner, **form.project_values()) as project:
        made = plan_of(project, request.POST or request.GET)
    page = reverse("learner:draft_plan", args=[draft.pk])
    if request.method == "POST" and made.setup is not None:
        return _simulate(request, made, project=None, page=page)
    context: dict[str, Any] = {"draft": draft} | _context(made, "learner:draft_plan_plot", draft.pk)
    return render(request, "learner/simulation/draft_plan.html", context, status=200 if made.purchase else 422)


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


def plan_of(project: Project, data: QueryDict) -> Plan:
    typed = {"records": data.get("records", max(plan_setups.FEWEST_RECORDS, plan_setups.default_records(project)))}
    form = PlanForm(typed, arrival=project.arrival)
    if not form.is_valid():
        return Plan(form)
    records = form.cleaned_data["records"]
    purchase = plan_setups.purchase_of(project, records)
    hints = estimates.answer_hints(project, min(purchase.labels, records))
    setup, epsilon = plan_setups.setup_of(project, records), plan_setups.total_epsilon(project)
    return Plan(form, purchase, setup, epsilon, tuple(hints))


def _simulate(request: HttpRequest, made: Plan, *, project: Project | None, page: str) -> HttpResponse:
    setup = made.setup
    assert setup is not None
    if setup.can_be_simulated:
        services.start_simulation(project=project, setup=setup, epsilon=made.epsilon, owner=person_of(request))
        messages.info(request, _("The simulation is on its way; nothing private is read and nothing is charged."))
    else:
        note_nothing(request)
    return redirect(f"{page}?records={made.records}")


def _context(made: Plan, plot_page: str, key: object) -> dict[str, Any]:
    setup = made.setup
    if setup is None:
        return {"form": made.form}
    fingerprint = services.fingerprint_of(setup, made.epsilon)
    simulation = PlanSimulation.objects.select_related("job").filter(fingerprint=fingerprint).first()
    return {
        "form": made.form,
        "purchase": made.purchase,
        "hints": made.hints,
        "sizes": (SYNTHETIC_RECORDS, SYNTHETIC_TEXTS),
        "setup": setup,
        "epsilon": made.epsilon,
        "simulation": simulation,
        "simulating": simulation is not None and simulation.job is not None and simulation.job.state in UNFINISHED,
        "accuracy_plot": reverse(plot_page, args=[key, fingerprint]),
        **_shown(simulation, setup),
        "accuracy_chart": _chart(_shown(simulation, setup)),
    }


def _chart(shown: Mapping[str, Any]) -> Chart | None:
    curves = [(curve["name"], curve["points"]) for curve in shown["curves"]]
    plain = [
        (_("%(data)s, without privacy") % {"data": curve["name"]}, curve["plain"])
        for curve in shown["curves"]
        if curve["plain"]
    ]
    return page_charts.simulation_chart(curves, beside=plain, across=_("labels"))


def _picture(fingerprint: str) -> HttpResponse:
    found = get_object_or_404(PlanSimulation, fingerprint=fingerprint, result__isnull=False)
    chart = _chart(_shown(found, Setup.from_json(found.setup)))
    return page_charts.picture_of(chart, title=_("Simulated accuracy by labels"))


def _shown(simulation: PlanSimulation | None, setup: Setup) -> Mapping[str, Any]:
    if simulation is None or simulation.result is None:
        return {"curves": []}
    result = simulation.result
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
    }


def _draft_of(request: HttpRequest, draft_id: UUID) -> OpeningDraft:
    return get_object_or_404(OpeningDraft, pk=draft_id, owner=person_of(request))
