"""Pages of the gate of a crowd project: choosing one by its price, and sending an upload through again."""

import math
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.budget import charges
from annotation.choices.gates import first_event, gate_choice
from annotation.choices.policies import labels_of_first_model
from annotation.data import selectors as data_selectors
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.gates import comparison
from annotation.gates import services as gates
from annotation.gates.forms import GateChoiceForm, GatePlanForm
from annotation.models import DatasetRole, Oracle, PrivacyUnit, Project
from annotation.people.identity import note_nothing, person_of
from annotation.wording import localized
from privacy.gate.planning import plan_source, said_at_least


@login_required
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    if project.oracle != Oracle.CROWD:
        raise Http404
    if request.method == "POST":
        return _take_over(request, project)
    price = charges.run_charge(project)
    surveyed = list(gates.countable_uploads(project).order_by("pk"))
    delta = max(price.delta, comparison.SMALLEST_DELTA)
    start = {"epsilon": f"{price.epsilon:.6g}", "delta": f"{delta:.2g}", "source": ""}
    form = GatePlanForm(start | request.GET.dict(), project=project, uploads=surveyed)
    context: dict[str, Any] = {
        "project": project,
        "form": form,
        "gate": gate_choice(project.settings),
        "price": price,
        "whole": first_event(project.settings).cost(),
        "frozen": gates.gate_is_frozen(project),
        "levels": comparison.levels(project.settings),
    }
    if not form.is_valid():
        return render(request, "annotation/gates/gate.html", context, status=422)
    source = form.cleaned_data["source"]
    offers = form.offers
    upload, frequencies = form.upload(), form.frequencies()
    shares = comparison.passing_shares(offers, frequencies) if frequencies else [None] * len(offers)
    rows = [{"offer": offer, "passing": passing} for offer, passing in zip(offers, shares, strict=True)]
    best_of_each = comparison.best_of_each(offers)
    context |= {
        "rows": rows,
        "best": comparison.recommended(offers),
        "recommendation": comparison.advice_on(offers),
        "best_of_each": best_of_each,
        "source": source,
        "numbers": form.numbers,
        "window": _window(form),
        "wanted": labels_of_first_model(project.settings),
        "experts_url": reverse("annotation:new_project"),
        "upload": upload,
        "private": upload is not None and upload.role == DatasetRole.POOL,
        "side_by_side": [row["passing"] for row in rows if row["offer"] in best_of_each and row["passing"]],
        "frequencies": frequencies,
        "said": said_at_least(frequencies) if frequencies else [],
        "nothing_passes": frequencies is not None and max(row.texts for row in shares if row) < 1,
        "survey_job": None if upload is None or frequencies else gates.survey_job(upload),
    }
    return render(request, "annotation/gates/gate.html", context)


@login_required
@require_POST
def survey(request: HttpRequest, slug: str, dataset_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    found = get_object_or_404(gates.countable_uploads(project), pk=dataset_id)
    if project.oracle != Oracle.CROWD:
        raise Http404
    gates.start_survey(dataset=found, owner=person_of(request))
    return redirect(f"{reverse('annotation:gate', args=[slug])}?source={found.pk}")


def _take_over(request: HttpRequest, project: Project) -> HttpResponse:
    form = GateChoiceForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("These numbers describe no gate."))
        note_nothing(request)
        return redirect("annotation:gate", slug=project.slug)
    try:
        gates.choose_gate(project=project, settings=form.settings())
    except (ConfigurationFrozen, InvalidConfiguration) as refusal:
        messages.error(request, localized(str(refusal)))
        note_nothing(request)
    else:
        messages.success(request, _("Saved."))
    return redirect("annotation:gate", slug=project.slug)


def _window(form: GatePlanForm) -> float | None:
    if form.numbers is None:
        return None
    contributor = form.project.privacy_unit == PrivacyUnit.CONTRIBUTOR
    planned = plan_source(
        form.numbers,
        epsilon=form.cleaned_data["epsilon"],
        delta=form.cleaned_data["delta"],
        unit="contributor" if contributor else "record",
        texts_per_contributor=form.project.texts_per_contributor if contributor else None,
        wanted=labels_of_first_model(form.project.settings),
    )
    return None if math.isinf(planned.window) else planned.window


@login_required
@require_POST
def start_gate(request: HttpRequest, slug: str, dataset_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    found = get_object_or_404(data_selectors.uploads_of(project), pk=dataset_id)
    if not charges.is_agreed(request.POST, charges.upload_charge(project, found.role, found)):
        messages.error(request, _("The price changed. Nothing was charged."))
        note_nothing(request)
    elif gates.start_gate(dataset=found, owner=person_of(request)) is None:
        messages.error(request, _("This upload already went through the gate, or is in it."))
        note_nothing(request)
    return redirect("annotation:data", slug=slug)
