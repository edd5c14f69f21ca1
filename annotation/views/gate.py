"""Choosing the gate of a crowd project, by its price; managers only."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation import gate_plan
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.gate_forms import SMALLEST_DELTA, GateChoiceForm, GatePlanForm
from annotation.identity import person_of
from annotation.models import Dataset, DatasetRole, DatasetState, Oracle, Project
from annotation.presets import gate_event
from annotation.services import gate, gate_planning
from annotation.views.projects import managed_project
from annotation.wording import told
from privacy.accounting.cost import Cost
from privacy.planning import PAPER_KS, said_at_least
from privacy.survey import Frequencies


@login_required
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    """The gates at a price, and taking one over."""
    project = managed_project(request, slug)
    if project.oracle != Oracle.CROWD:
        raise Http404
    if request.method == "POST":
        return _take_over(request, project)
    price = _price_of(project)
    surveyed = list(_countable(project).order_by("pk"))
    start = {"epsilon": f"{price.epsilon:.6g}", "delta": f"{max(price.delta, SMALLEST_DELTA):.2g}", "source": ""}
    form = GatePlanForm(start | request.GET.dict(), project=project, uploads=surveyed)
    context: dict[str, Any] = {
        "project": project,
        "form": form,
        "gate": gate.gate_of(project),
        "price": price,
        "frozen": gate_planning.gate_is_frozen(project),
        "levels": gate_plan.levels(vars(project)),
        "paper_rows": gate_plan.paper_rows(),
        "paper_ks": PAPER_KS,
    }
    if not form.is_valid():
        return render(request, "annotation/gate.html", context, status=422)
    source = form.cleaned_data["source"]
    offers = form.offers
    upload = next((row for row in surveyed if str(row.pk) == source), None)
    frequencies = _frequencies(source, upload)
    shares = gate_plan.passing_shares(offers, frequencies) if frequencies else [None] * len(offers)
    rows = [{"offer": offer, "passing": passing} for offer, passing in zip(offers, shares, strict=True)]
    sampled, noisy = gate_plan.recommended([offer for offer in offers if not offer.is_threshold]), offers[-1]
    context |= {
        "rows": rows,
        "best": gate_plan.recommended(offers),
        "sampled": sampled,
        "noisy": noisy,
        "source": source,
        "upload": upload,
        "private": upload is not None and upload.role == DatasetRole.POOL,
        "side_by_side": [row["passing"] for row in rows if row["offer"] in (sampled, noisy) and row["passing"]],
        "frequencies": frequencies,
        "said": said_at_least(frequencies) if frequencies else [],
        "nothing_passes": frequencies is not None and max(row.texts for row in shares if row) < 1,
        "survey_job": None if upload is None or frequencies else gate_planning.survey_job(upload),
    }
    return render(request, "annotation/gate.html", context)


def _countable(project: Project) -> QuerySet[Dataset]:
    """Return the uploads that may be counted whole; private examples are for the training that was paid for alone."""
    ready = Dataset.objects.filter(project=project, state=DatasetState.READY)
    return ready.exclude(role=DatasetRole.CHARGED_START)


@login_required
@require_POST
def survey(request: HttpRequest, slug: str, dataset_id: int) -> HttpResponse:
    """Have a worker count a whole upload, and come back to its page."""
    project = managed_project(request, slug)
    found = get_object_or_404(_countable(project), pk=dataset_id)
    if project.oracle != Oracle.CROWD:
        raise Http404
    gate_planning.start_survey(dataset=found, owner=person_of(request))
    return redirect(f"{reverse('annotation:gate', args=[slug])}?source={found.pk}")


def _take_over(request: HttpRequest, project: Project) -> HttpResponse:
    form = GateChoiceForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("These numbers describe no gate."))
        return redirect("annotation:gate", slug=project.slug)
    try:
        gate_planning.choose_gate(project=project, settings=form.settings())
    except (ConfigurationFrozen, InvalidConfiguration) as refusal:
        messages.error(request, told(str(refusal)))
    else:
        messages.success(request, _("The project has this gate now."))
    return redirect("annotation:gate", slug=project.slug)


def _price_of(project: Project) -> Cost:
    assert project.gate_epsilon is not None
    return gate_event(gate.gate_of(project), project.gate_epsilon).cost()


def _frequencies(source: str, upload: Dataset | None) -> Frequencies | None:
    if upload is not None:
        return gate_planning.frequencies_of(upload)
    return gate_plan.synthetic_log() if source == GatePlanForm.SYNTHETIC else None
