"""What a budget buys, before anything is spent: counted, and simulated on data that is about nobody."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.identity import person_of
from annotation.views.projects import managed_project
from learner import plan_setups, plots
from learner.planning import MOST_ROWS, TEST_ROWS, Setup
from learner.planning_models import PlanSimulation
from learner.services import planning

SVG = "image/svg+xml"
DATA_WORDS = {
    "digits": gettext_lazy("scikit-learn's handwritten digits"),
    "made_up": gettext_lazy("made-up clouds of the declared dimension"),
}


class PlanForm(forms.Form):
    """How many records to plan for."""

    records = forms.IntegerField(
        min_value=20,
        max_value=10**8,
        label=gettext_lazy("Records to plan for"),
        help_text=gettext_lazy("Of an upload, or texts that pass the gate. Your own guess: no upload is looked at."),
    )


@login_required
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    """What the budget buys as the project is configured, and a simulation of how good its models become."""
    project = managed_project(request, slug)
    data = request.POST or request.GET
    form = PlanForm({"records": data.get("records", max(20, plan_setups.default_records(project)))})
    if not form.is_valid():
        return render(request, "learner/plan.html", {"project": project, "form": form}, status=422)
    records = form.cleaned_data["records"]
    setup, epsilon = plan_setups.setup_of(project, records), plan_setups.total_epsilon(project)
    if request.method == "POST":
        if setup.can_be_simulated:
            planning.start_simulation(project=project, setup=setup, epsilon=epsilon, owner=person_of(request))
            messages.info(request, _("The simulation is on its way; nothing private is read and nothing is charged."))
        return redirect(f"{reverse('learner:plan', args=[slug])}?records={records}")
    simulation = PlanSimulation.objects.select_related("job").filter(
        fingerprint=planning.fingerprint_of(setup, epsilon)
    )
    context = {
        "project": project,
        "form": form,
        "purchase": plan_setups.purchase_of(project, records),
        "sizes": plan_setups.synthetic_sizes(),
        "setup": setup,
        "epsilon": epsilon,
        "simulation": simulation.first(),
        **_shown(simulation.first(), setup),
    }
    return render(request, "learner/plan.html", context)


@login_required
def plan_plot(request: HttpRequest, slug: str, kind: str, fingerprint: str) -> HttpResponse:
    """A simulation as a picture."""
    managed_project(request, slug)
    found = get_object_or_404(PlanSimulation, fingerprint=fingerprint, result__isnull=False)
    setup = Setup.from_json(found.setup)
    shown = _shown(found, setup)
    if kind == "accuracy":
        words = _("Mean over simulations, with the worst and the best; the page has the numbers.")
        curves = {curve["name"]: curve["points"] for curve in shown["curves"]}
        drawn = plots.simulation_plot(
            curves,
            title=_("Simulated accuracy by labels"),
            words=words,
            axis_names=(_("labels"), _("simulated accuracy")),
        )
        return HttpResponse(drawn, content_type=SVG)
    if kind != "split" or not shown["splits"]:
        raise Http404
    words = _("Accuracy of the last model for each way to divide the same ε; the page has the numbers.")
    drawn = plots.split_plot(
        shown["splits"],
        axis_names=(shown["axis"], _("simulated accuracy")),
        title=_("Dividing the budget between choosing and training"),
        words=words,
    )
    return HttpResponse(drawn, content_type=SVG)


def _shown(simulation: PlanSimulation | None, setup: Setup) -> dict[str, Any]:
    """Return the numbers of a result as tables and pictures show them."""
    if simulation is None or simulation.result is None:
        return {"curves": [], "splits": []}
    result = simulation.result
    secret = setup.first_rate is not None
    return {
        "curves": [
            {"key": key, "name": str(DATA_WORDS[key]), "points": points}
            for key, points in result["curves"].items()
            if points
        ],
        "splits": result["splits"],
        "axis": _("rate of the first block") if secret else _("share of choosing"),
        "seeds": result["seeds"],
        "rows": min(MOST_ROWS, setup.records),
        "test_rows": TEST_ROWS,
        "secret": secret,
    }
