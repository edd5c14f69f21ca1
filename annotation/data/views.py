"""Pages of a project's data: uploads, a look at a file before it is one, labels as files, retention."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.budget import charges
from annotation.budget.downloads import csv_response
from annotation.budget.label_budget import LabelBudget
from annotation.budget.label_budget import label_budget as budget_of_labels
from annotation.budget.spending import table_csv
from annotation.data import selectors
from annotation.data.downloads import export_response, labels_response
from annotation.data.forms import KINDS, MappingForm, RetentionForm, TableForm, UploadForm, reading_of, reading_so_far
from annotation.data.services import datasets, drafts, exports, mappings, registered
from annotation.data.services import retention as retention_service
from annotation.data.services.charged_start import start_delta
from annotation.data.services.label_files import FILE_KINDS, ExportFormat, formats_of
from annotation.errors import FewWouldPass, InvalidUpload
from annotation.models import UNFINISHED, Arrival, Dataset, DatasetRole, Project, WorkState
from annotation.models.exports import Export
from annotation.models.imports import UploadDraft
from annotation.people.identity import person_of
from annotation.wording import localized
from annotation.work.polling import moving_page
from dpal.reading.cells import MAXIMUM_TEXT_LENGTH
from dpal.reading.rows import BAD_ROWS_KEPT
from dpal.reading.shapes import FileShape

BAD_ROW_COLUMNS = ("line", "column", "reason")


@login_required
def data(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = UploadForm(request.POST or None, request.FILES or None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            return _receive(request, project, form)
        except InvalidUpload as error:
            field = error.args[0].partition(":")[0]
            form.add_error(field if field in form.fields else "file", localized(str(error)))
    return _data_page(request, project, form, TableForm(project=project))


@login_required
@require_POST
def register_table(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = TableForm(request.POST, project=project)
    if form.is_valid():
        if not charges.is_agreed(request.POST, charges.upload_charge(project, DatasetRole.POOL)):
            form.add_error(None, _("The price changed. Nothing was charged."))
            return _data_page(request, project, UploadForm(project=project), form)
        values = form.cleaned_data
        try:
            registered.register_table(
                project=project,
                address=values["address"],
                text=values["text_column"],
                contributor=values.get("contributor_column"),
                snapshot=values.get("snapshot_id"),
                registered_by=person_of(request),
            )
        except InvalidUpload as error:
            form.add_error(None, localized(str(error)))
        else:
            messages.success(request, _("Saved."))
            return redirect("annotation:data", slug=project.slug)
    return _data_page(request, project, UploadForm(project=project), form)


def _data_page(request: HttpRequest, project: Project, form: UploadForm, table: TableForm) -> HttpResponse:
    labels = budget_of_labels(project)
    if form.errors or table.errors:
        return render(request, "annotation/data/data.html", _shown(request, project, form, table, labels), status=422)
    return moving_page(
        request, "annotation/data/data.html", labels, lambda: _shown(request, project, form, table, labels)
    )


def _shown(
    request: HttpRequest, project: Project, form: UploadForm, table: TableForm, labels: LabelBudget
) -> dict[str, Any]:
    context = {"project": project, "form": form, "labels": labels} | _uploads(project, request)
    context |= {"megabytes": settings.UPLOAD_MAX_BYTES // 1_000_000, "characters": MAXIMUM_TEXT_LENGTH}
    context["many_answers"] = selectors.has_answers(project, settings.EXPORT_PREPARED_FROM)
    context |= {"listed": BAD_ROWS_KEPT, "kept_hours": drafts.KEPT_HOURS}
    if project.arrival == Arrival.STREAM:
        context |= _stream(request, project)
    if settings.POOL_SOURCES and registered.may_register(project):
        context["table"] = table
    return context


def _receive(request: HttpRequest, project: Project, form: UploadForm) -> HttpResponse:
    file, values = form.cleaned_data["file"], form.cleaned_data
    asked = {"role": values["role"], "bad_rows": values["bad_rows"], "start_epsilon": values.get("start_epsilon")}
    person = person_of(request)
    charge = charges.upload_charge(project, values["role"])
    if "look" in request.POST or not charges.is_agreed(request.POST, charge):
        draft = drafts.keep_draft(
            project=project, file=file, name=file.name, owner=person, reading=form.reading(), **asked
        )
        if "look" not in request.POST:
            messages.info(request, _("This is charged; the price is on the button."))
        return redirect("annotation:preview", slug=project.slug, draft_id=draft.pk)
    mapping = form.named() | form.reading()
    if not form.named():
        shape = mappings.look_at(file, file.name, form.reading())
        mapping = mappings.suggested_mapping(project=project, role=values["role"], shape=shape, reading=form.reading())
    confirmed = "confirm_few" in request.POST
    datasets.receive_upload(
        project=project, file=file, name=file.name, mapping=mapping, uploaded_by=person, confirm_few=confirmed, **asked
    )
    messages.success(request, _("Upload received."))
    return redirect("annotation:data", slug=project.slug)


def _stream(request: HttpRequest, project: Project) -> dict[str, Any]:
    example = {"records": [selectors.example_record(project)]}
    return {
        "slots": selectors.slots_of(project),
        "posting_url": request.build_absolute_uri(reverse("api:post_records", args=[project.slug])),
        "example": json.dumps(example, ensure_ascii=False),
    }


def _in_progress(upload: Dataset) -> bool:
    return any(job is not None and job.finished_at is None for job in (upload.job, upload.gate_job))


def _uploads(project: Project, request: HttpRequest) -> dict[str, Any]:
    uploads = list(selectors.uploads_of(project))
    nothing_passed = any(run.passed_count == 0 for upload in uploads for run in upload.gate_runs.all())
    charge = charges.upload_charge(project, DatasetRole.POOL)
    first = {one.upload_digest: one.pk for one in sorted(uploads, key=lambda one: -one.pk) if one.upload_digest}
    elsewhere = selectors.same_files_elsewhere(project, person_of(request))
    for upload in uploads:
        upload.elsewhere = elsewhere.get(upload.upload_digest, ()) if upload.role == DatasetRole.POOL else ()
        upload.repeats = first.get(upload.upload_digest, upload.pk) != upload.pk
        if upload.gate_job is not None and upload.gate_job.state == WorkState.FAILED:
            upload.again = charges.upload_charge(project, upload.role, upload)
            upload.again_agreed = charges.token_of(upload.again) if upload.again else ""
    return {
        "charge": charge,
        "agreed": charges.token_of(charge) if charge else "",
        "uploads": uploads,
        "running": any(_in_progress(upload) for upload in uploads),
        "nothing_passed": nothing_passed,
        "gate_url": reverse("annotation:gate", args=[project.slug]),
    }


@login_required
def uploads(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    return render(request, "annotation/data/_uploads.html", {"project": project} | _uploads(project, request))


@login_required
def dataset(request: HttpRequest, slug: str, dataset_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    found = get_object_or_404(selectors.uploads_of(project), pk=dataset_id)
    return render(request, "annotation/data/dataset.html", {"project": project, "dataset": found})


@login_required
@never_cache
def preview(request: HttpRequest, slug: str, draft_id: UUID) -> HttpResponse:
    project = managed_project(request, slug)
    draft = get_object_or_404(project.upload_drafts, pk=draft_id, owner=person_of(request))
    if request.method == "POST":
        return _decide(request, draft)
    shape = drafts.shape_of_draft(draft)
    form = MappingForm(project=project, role=draft.role, shape=shape, mapping=draft.mapping)
    return _preview_page(request, draft, form, shape)


def _decide(request: HttpRequest, draft: UploadDraft) -> HttpResponse:
    project = draft.project
    if "discard" in request.POST:
        drafts.discard_draft(draft=draft)
        messages.success(request, _("Removed."))
        return redirect("annotation:data", slug=project.slug)
    shape = drafts.shape_of_draft(draft)
    reading = reading_of(request.POST, shape)
    before = reading_so_far(draft.mapping, shape)
    if any(before[key] != value for key, value in reading.items()):
        return _read_anew(request, draft, shape, {key: value for key, value in reading.items() if value != ""})
    form = MappingForm(request.POST, project=project, role=draft.role, shape=shape, mapping=draft.mapping)
    if not form.is_valid():
        return _preview_page(request, draft, form, shape)
    drafts.map_draft(draft=draft, mapping=form.mapping())
    if "upload" not in request.POST:
        return redirect("annotation:preview", slug=project.slug, draft_id=draft.pk)
    if not charges.is_agreed(request.POST, charges.upload_charge(project, draft.role)):
        form.add_error(None, _("This is charged; the price is on the button."))
        return _preview_page(request, draft, form, shape)
    try:
        drafts.upload_draft(draft=draft, by=person_of(request), confirmed="confirm_few" in request.POST)
    except FewWouldPass:
        form.add_error(None, _("Fewer texts would pass than the first model needs. Nothing was stored or charged."))
        return _preview_page(request, draft, form, shape)
    except InvalidUpload as error:
        form.add_error(None, localized(str(error)))
        return _preview_page(request, draft, form, shape)
    messages.success(request, _("Upload received."))
    return redirect("annotation:data", slug=project.slug)


def _read_anew(request: HttpRequest, draft: UploadDraft, shape: FileShape, reading: dict[str, Any]) -> HttpResponse:
    try:
        drafts.read_draft_as(draft=draft, reading=reading)
    except InvalidUpload as error:
        form = MappingForm(request.POST, project=draft.project, role=draft.role, shape=shape, mapping=draft.mapping)
        form.add_error(None, localized(str(error)))
        return _preview_page(request, draft, form, shape)
    return redirect("annotation:preview", slug=draft.project.slug, draft_id=draft.pk)


def _preview_page(request: HttpRequest, draft: UploadDraft, form: MappingForm, shape: FileShape) -> HttpResponse:
    charge = charges.upload_charge(draft.project, draft.role)
    context: dict[str, Any] = {
        "charge": charge,
        "start_delta": start_delta(draft.project, draft.start_epsilon) if draft.start_epsilon else 0.0,
        "agreed": charges.token_of(charge) if charge else "",
        "project": draft.project,
        "draft": draft,
        "form": form,
        "role": DatasetRole(draft.role).label,
        "passed_over": _passed_over(draft, shape.columns),
    }
    try:
        context["preview"] = drafts.preview_draft(draft)
        context["forecast"] = drafts.forecast_draft(draft)
    except InvalidUpload as error:
        context["problem"] = localized(str(error))
    return render(request, "annotation/data/preview.html", context, status=422 if form.errors else 200)


def _passed_over(draft: UploadDraft, columns: Sequence[str]) -> list[str]:
    mapping = draft.mapping
    chosen = {value for key, value in mapping.items() if isinstance(value, str) and key not in mappings.READING_KEYS}
    used = chosen | {*mapping.get("features", {}).values(), *mapping.get("metadata", ())}
    return [name for name in columns if name and name not in used]


@login_required
@never_cache
def bad_rows(request: HttpRequest, slug: str, dataset_id: int) -> StreamingHttpResponse:
    project = managed_project(request, slug)
    found = get_object_or_404(selectors.uploads_of(project), pk=dataset_id)
    rows = ([row[name] for name in BAD_ROW_COLUMNS] for row in found.bad_row_report)
    return csv_response(table_csv(BAD_ROW_COLUMNS, rows), name=f"{project.slug}-bad-rows-{found.pk}")


SHOWN = 20


@login_required
@never_cache
def download_labels(request: HttpRequest, slug: str, format: str) -> StreamingHttpResponse:  # noqa: A002
    project = managed_project(request, slug)
    if format not in list(ExportFormat):
        raise Http404
    return labels_response(project, format, history=request.GET.get("history") == "1")


@login_required
@never_cache
def label_files(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    chosen = request.POST.get("format", "")
    if chosen in list(ExportFormat):
        exports.start_export(
            project=project, owner=person_of(request), format=chosen, history=request.POST.get("history") == "1"
        )
        messages.success(request, _("The file is being written."))
        return redirect("annotation:exports", slug=project.slug)
    asked = list(Export.objects.filter(project=project).select_related("job", "project").order_by("-pk")[:SHOWN])
    context = {
        "project": project,
        "exports": [(export, FILE_KINDS[ExportFormat(export.format)].words) for export in asked],
        "running": any(export.job.state in UNFINISHED for export in asked),
        "formats": [(each.value, kind.words) for each, kind in formats_of(project).items()],
        "kept_days": settings.EXPORT_KEPT_DAYS,
    }
    part = (
        "annotation/data/exports/_files.html"
        if request.headers.get("HX-Request")
        else "annotation/data/exports/files.html"
    )
    return render(request, part, context, status=422 if request.method == "POST" else 200)


@login_required
@never_cache
def export_file(request: HttpRequest, slug: str, job_id: UUID) -> HttpResponse | StreamingHttpResponse:
    found = Export.objects.select_related("project")
    return export_response(request, get_object_or_404(found, project=managed_project(request, slug), job=job_id))


@login_required
def retention(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    form = RetentionForm(request.POST or None, retention=retention_service.retention_of(project))
    if request.method == "POST" and form.is_valid():
        retention_service.set_retention(project=project, actor=person_of(request).get_username(), **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("annotation:retention", slug=slug)
    due = [(KINDS[row.kind][0], row) for row in retention_service.what_is_due(project)]
    context = {"project": project, "form": form, "due": due}
    return render(request, "annotation/data/retention.html", context, status=422 if form.errors else 200)
