"""Pages of the planner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.choices.preset import Preset
from annotation.choices.presets import PRESETS
from annotation.errors import InvalidConfiguration
from annotation.gates.comparison import SYNTHETIC_RECORDS, SYNTHETIC_TEXTS
from annotation.models import UNFINISHED, Arrival, Project
from annotation.people.identity import note_nothing, person_of
from annotation.projects.forms.opening import ChoosingForm
from annotation.projects.forms.wizard import as_sent, draft_form, step_of
from annotation.projects.services import opening
from annotation.projects.views.opening import draft_of, keep_draft
from learner.charts import pages as page_charts
from learner.charts.geometry import Chart
from learner.errors import PlanOutdated
from learner.models.planning import PlanSimulation
from learner.simulation import estimates, plan_setups, services
from learner.simulation.plan_setups import FEWEST_RECORDS, MOST_RECORDS, Purchase
from learner.simulation.rows import PRICES, PlannedRows, planned_rows, shown_rows, unreached
from learner.simulation.setup import Setup

DATA_WORDS = {
    "digits": gettext_lazy("scikit-learn's handwritten digits"),
    "made_up": gettext_lazy("made-up clouds of the declared dimension"),
}


class PlanForm(forms.Form):
    """How many records to plan for."""

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
    planned: PlannedRows | None = None
    hints: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Records it is made for."""
        return int(self.form.cleaned_data["records"])


@login_required
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    """What the budget buys as the project is configured, and a simulation of how good its models become."""
    project = managed_project(request, slug)
    made = plan_of(project, request.POST or request.GET)
    if request.method == "POST" and made.planned is not None:
        return _simulate(request, made, project=project, page=reverse("learner:plan", args=[slug]))
    context = {"project": project, "use": reverse("learner:use_plan", args=[slug])}
    context |= _context(made, "learner:plan_plot", slug)
    return render(request, "learner/simulation/plan.html", context, status=200 if made.purchase else 422)


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def draft_plan(request: HttpRequest, preset: str) -> HttpResponse:
    """What the budget typed so far would buy: the project is opened, asked, and taken back before anybody sees it."""
    if preset not in PRESETS:
        raise Http404
    form = draft_form(PRESETS[preset], draft_of(request, preset), assumed=True)
    if not form.is_valid():
        wrong = [
            {"step": step_of(name), "label": form[name].label, "errors": errors}
            for name, errors in form.errors.items()
            if name in form.fields
        ]
        context: dict[str, Any] = {"preset": PRESETS[preset], "wrong": wrong, "other_errors": form.non_field_errors()}
        return render(request, "learner/simulation/draft_plan.html", context, status=422)
    settings = form.project_values()
    with opening.rehearsed_project(preset=preset, owner=person_of(request), **settings) as project:
        made = plan_of(project, request.POST or request.GET)
    if request.method == "POST" and made.planned is not None:
        return _simulate(request, made, project=None, page=reverse("learner:draft_plan", args=[preset]))
    context = {"preset": PRESETS[preset], "use": reverse("learner:use_draft_plan", args=[preset])}
    context |= _context(made, "learner:draft_plan_plot", preset)
    for row in context.get("compared", ()):
        row["usable"] &= can_be_typed(form, row["changes"])
    return render(request, "learner/simulation/draft_plan.html", context, status=200 if made.purchase else 422)


@login_required
def plan_plot(request: HttpRequest, slug: str, fingerprint: str) -> HttpResponse:
    """A simulation as a picture."""
    managed_project(request, slug)
    return _picture(fingerprint)


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def draft_plan_plot(request: HttpRequest, preset: str, fingerprint: str) -> HttpResponse:
    """A simulation for a project that is not opened yet, as a picture; it is about nobody."""
    if preset not in PRESETS:
        raise Http404
    return _picture(fingerprint)


def plan_of(project: Project, data: QueryDict) -> Plan:
    """Count what the project's accounts buy for as many records as are named, or as many as one may expect."""
    typed = {"records": data.get("records", max(plan_setups.FEWEST_RECORDS, plan_setups.default_records(project)))}
    form = PlanForm(typed, arrival=project.arrival)
    if not form.is_valid():
        return Plan(form)
    records = form.cleaned_data["records"]
    planned = planned_rows(project, records)
    purchase = plan_setups.purchase_of(project, records)
    hints = estimates.answer_hints(project, min(purchase.labels, records))
    return Plan(form, purchase, planned, tuple(hints))


def _simulate(request: HttpRequest, made: Plan, *, project: Project | None, page: str) -> HttpResponse:
    planned = made.planned
    assert planned is not None
    if planned.setup.can_be_simulated:
        services.start_simulation(
            project=project, setup=planned.setup, epsilon=planned.epsilon, owner=person_of(request)
        )
        messages.info(request, _("The simulation is on its way; nothing private is read and nothing is charged."))
    else:
        note_nothing(request)
    return redirect(f"{page}?records={made.records}")


def _context(made: Plan, plot_page: str, key: str) -> dict[str, Any]:
    """Return what the page shows of a plan and of its simulation, if there is one."""
    planned = made.planned
    if planned is None:
        return {"form": made.form}
    fingerprint = services.fingerprint_of(planned.setup, planned.epsilon)
    setup = replace(planned.setup, alternatives=())
    simulation = PlanSimulation.objects.select_related("job").filter(fingerprint=fingerprint).first()
    return {
        "form": made.form,
        "purchase": made.purchase,
        "hints": made.hints,
        "sizes": (SYNTHETIC_RECORDS, SYNTHETIC_TEXTS),
        "setup": setup,
        "epsilon": planned.epsilon,
        "simulation": simulation,
        "simulating": simulation is not None and simulation.job is not None and simulation.job.state in UNFINISHED,
        "accuracy_plot": reverse(plot_page, args=[key, fingerprint]),
        **_shown(simulation, setup),
        "accuracy_chart": _chart(_shown(simulation, setup)),
        "fingerprint": fingerprint,
        "why_not": planned.why_not,
        "left_out": planned.left_out,
        "compared": shown_rows(planned, simulation),
        "not_reached": unreached(planned, simulation),
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
    """Return the numbers of a result as tables and pictures show them."""
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
        "rows": setup.simulated_records,
    }


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
    services.use_row(project=project, actor=person_of(request), **form.cleaned_data)
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
    row = services.tried_row(planned, **form.cleaned_data)
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


def can_be_typed(form: ChoosingForm, changes: Mapping[str, Any]) -> bool:
    """Say whether the steps ask for all that a row changes; prices follow from the rest."""
    return changes.keys() - {*PRICES} <= form.fields.keys()


def draft_with(preset: Preset, draft: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a draft with exactly the settings of a row, None where its steps would make others of them."""
    typed = {name: as_sent(value) for name, value in changes.items()}
    free = {name: value for name, value in {**draft, **typed}.items() if name not in PRICES}
    for wanted in (free, {**draft, **typed}):
        form = draft_form(preset, wanted, assumed=True)
        if form.is_valid():
            values = form.project_values()
            if all(values.get(name) == value for name, value in changes.items()):
                return wanted
    return None
