"""Uploading pools and public test sets, and how each upload went."""

import json
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.budget import charges
from annotation.budget.label_budget import LabelBudget
from annotation.budget.label_budget import label_budget as budget_of_labels
from annotation.data import selectors
from annotation.data.forms import TableForm, UploadForm
from annotation.data.services import bad_rows, datasets, drafts, mappings, tables
from annotation.errors import InvalidUpload
from annotation.gates import comparison
from annotation.gates.services import runs
from annotation.models import Arrival, Dataset, DatasetRole, Project, WorkState
from annotation.people.identity import note_nothing, person_of
from annotation.tables.cells import MAXIMUM_TEXT_LENGTH
from annotation.wording import localized
from annotation.work.polling import moving_page


@login_required
def data(request: HttpRequest, slug: str) -> HttpResponse:
    """The uploads of a project, and one more."""
    project = managed_project(request, slug)
    form = UploadForm(request.POST or None, request.FILES or None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            return _receive(request, project, form)
        except InvalidUpload as error:
            field = error.args[0].partition(":")[0]
            form.add_error(field if field in form.fields else "file", localized(str(error)))
    return _page(request, project, form, TableForm(project=project))


@login_required
@require_POST
def register_table(request: HttpRequest, slug: str) -> HttpResponse:
    """Take a table as a pool where it lies, once the price on the button was agreed to."""
    project = managed_project(request, slug)
    form = TableForm(request.POST, project=project)
    if form.is_valid():
        if not charges.is_agreed(request.POST, charges.upload_charge(project, DatasetRole.POOL)):
            form.add_error(None, _("The price is another one than stood on the button. Nothing was charged."))
            return _page(request, project, UploadForm(project=project), form)
        values = form.cleaned_data
        try:
            tables.register_table(
                project=project,
                address=values["address"],
                text=values["text_column"],
                contributor=values.get("contributor_column"),
                snapshot=values["snapshot_id"],
                registered_by=person_of(request),
            )
        except InvalidUpload as error:
            form.add_error(None, localized(str(error)))
        else:
            messages.success(request, _("Table registered; the ends of its files are being read."))
            return redirect("annotation:data", slug=project.slug)
    return _page(request, project, UploadForm(project=project), form)


def _page(request: HttpRequest, project: Project, form: UploadForm, table: TableForm) -> HttpResponse:
    labels = budget_of_labels(project)
    if form.errors or table.errors:
        return render(request, "annotation/data/data.html", _shown(request, project, form, table, labels), status=422)
    return moving_page(
        request, "annotation/data/data.html", labels, lambda: _shown(request, project, form, table, labels)
    )


def _shown(
    request: HttpRequest, project: Project, form: UploadForm, table: TableForm, labels: LabelBudget
) -> dict[str, Any]:
    context = {"project": project, "form": form, "labels": labels} | _uploads(project)
    context |= {"megabytes": settings.UPLOAD_MAX_BYTES // 1_000_000, "characters": MAXIMUM_TEXT_LENGTH}
    context["many_answers"] = selectors.has_answers(project, settings.EXPORT_PREPARED_FROM)
    context |= {"listed": bad_rows.BAD_ROWS_KEPT, "kept_hours": drafts.KEPT_HOURS}
    if project.arrival == Arrival.STREAM:
        context |= _stream(request, project)
    if settings.POOL_SOURCES and tables.may_register(project):
        context["table"] = table
    return context


def _receive(request: HttpRequest, project: Project, form: UploadForm) -> HttpResponse:
    """Keep the file for a look at its first rows, or take it as it is."""
    file, values = form.cleaned_data["file"], form.cleaned_data
    asked = {"role": values["role"], "bad_rows": values["bad_rows"], "start_epsilon": values.get("start_epsilon")}
    person = person_of(request)
    charge = charges.upload_charge(project, values["role"])
    if "look" in request.POST or not charges.is_agreed(request.POST, charge):
        draft = drafts.keep_draft(
            project=project, file=file, name=file.name, owner=person, reading=form.reading(), **asked
        )
        if "look" not in request.POST:
            messages.info(request, _("This upload is charged. Its price stands on the button; nothing is paid yet."))
        return redirect("annotation:preview", slug=project.slug, draft_id=draft.pk)
    mapping = form.named() | form.reading()
    if not form.named():
        shape = mappings.look_at(file, file.name, form.reading())
        mapping = mappings.suggested_mapping(project=project, role=values["role"], shape=shape, reading=form.reading())
    confirmed = "confirm_few" in request.POST
    datasets.receive_upload(
        project=project, file=file, name=file.name, mapping=mapping, uploaded_by=person, confirm_few=confirmed, **asked
    )
    messages.success(request, _("Upload received; its rows are being read."))
    return redirect("annotation:data", slug=project.slug)


def _stream(request: HttpRequest, project: Project) -> dict[str, Any]:
    """Return how many records came, which is public, and how to post more."""
    example = {"records": [selectors.example_record(project)]}
    return {
        "slots": selectors.slots_of(project),
        "posting_url": request.build_absolute_uri(reverse("api:post_records", args=[project.slug])),
        "example": json.dumps(example, ensure_ascii=False),
    }


def _in_progress(upload: Dataset) -> bool:
    return any(job is not None and job.finished_at is None for job in (upload.job, upload.gate_job))


def _uploads(project: Project) -> dict[str, Any]:
    uploads = list(selectors.uploads_of(project))
    nothing_passed = any(run.passed_count == 0 for upload in uploads for run in upload.gate_runs.all())
    charge = charges.upload_charge(project, DatasetRole.POOL)
    run = charges.run_charge(project) if charge else None
    for upload in uploads:
        if upload.gate_job is not None and upload.gate_job.state == WorkState.FAILED:
            upload.again = charges.upload_charge(project, upload.role, upload)
            upload.again_agreed = charges.token_of(upload.again) if upload.again else ""
    return {
        "charge": charge,
        "agreed": charges.token_of(charge) if charge else "",
        "gate_epsilon": run.epsilon if run else 0,
        "gate_delta": max(run.delta, comparison.SMALLEST_DELTA) if run else 0,
        "gates": comparison.gates_like(project.settings) if nothing_passed else None,
        "uploads": uploads,
        "running": any(_in_progress(upload) for upload in uploads),
        "nothing_passed": nothing_passed,
        "gate_url": reverse("annotation:gate", args=[project.slug]),
    }


@login_required
def uploads(request: HttpRequest, slug: str) -> HttpResponse:
    """The list of uploads alone, fetched again while something is running."""
    project = managed_project(request, slug)
    return render(request, "annotation/data/_uploads.html", {"project": project} | _uploads(project))


@login_required
@require_POST
def start_gate(request: HttpRequest, slug: str, dataset_id: int) -> HttpResponse:
    """Send an upload through the gate again after an attempt that failed."""
    project = managed_project(request, slug)
    found = get_object_or_404(selectors.uploads_of(project), pk=dataset_id)
    if not charges.is_agreed(request.POST, charges.upload_charge(project, found.role, found)):
        messages.error(request, _("The price is another one than stood on the button. Nothing was charged."))
        note_nothing(request)
    elif runs.start_gate(dataset=found, owner=person_of(request)) is None:
        messages.error(request, _("This upload has gone through the gate, or is in it."))
        note_nothing(request)
    return redirect("annotation:data", slug=slug)


@login_required
def dataset(request: HttpRequest, slug: str, dataset_id: int) -> HttpResponse:
    """One upload and its bad rows."""
    project = managed_project(request, slug)
    found = get_object_or_404(selectors.uploads_of(project), pk=dataset_id)
    return render(request, "annotation/data/dataset.html", {"project": project, "dataset": found})
