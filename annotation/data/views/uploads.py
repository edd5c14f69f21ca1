"""A look at an upload before it is one, and the bad rows of one that was."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from annotation.access import managed_project
from annotation.budget import charges
from annotation.budget.downloads import csv_response
from annotation.budget.spending import table_csv
from annotation.data import selectors
from annotation.data.forms import MappingForm, reading_of, reading_so_far
from annotation.data.readers.shapes import FileShape
from annotation.data.services import drafts, mappings
from annotation.data.services.charged_start import start_delta
from annotation.errors import FewWouldPass, InvalidUpload
from annotation.models import DatasetRole
from annotation.models.imports import UploadDraft
from annotation.people.identity import person_of
from annotation.wording import localized

BAD_ROW_COLUMNS = ("line", "column", "reason")


@login_required
@never_cache
def preview(request: HttpRequest, slug: str, draft_id: UUID) -> HttpResponse:
    """The first rows of a file as they would be read, which column is which, and the word to upload it."""
    project = managed_project(request, slug)
    draft = get_object_or_404(project.upload_drafts, pk=draft_id, owner=person_of(request))
    if request.method == "POST":
        return _decide(request, draft)
    shape = drafts.shape_of_draft(draft)
    form = MappingForm(project=project, role=draft.role, shape=shape, mapping=draft.mapping)
    return _page(request, draft, form, shape)


def _decide(request: HttpRequest, draft: UploadDraft) -> HttpResponse:
    """Upload the file, throw it away, or show it as the form says."""
    project = draft.project
    if "discard" in request.POST:
        drafts.discard_draft(draft=draft)
        messages.success(request, _("The file was thrown away."))
        return redirect("annotation:data", slug=project.slug)
    shape = drafts.shape_of_draft(draft)
    reading = reading_of(request.POST, shape)
    before = reading_so_far(draft.mapping, shape)
    if any(before[key] != value for key, value in reading.items()):
        return _read_anew(request, draft, shape, {key: value for key, value in reading.items() if value != ""})
    form = MappingForm(request.POST, project=project, role=draft.role, shape=shape, mapping=draft.mapping)
    if not form.is_valid():
        return _page(request, draft, form, shape)
    drafts.map_draft(draft=draft, mapping=form.mapping())
    if "upload" not in request.POST:
        return redirect("annotation:preview", slug=project.slug, draft_id=draft.pk)
    if not charges.is_agreed(request.POST, charges.upload_charge(project, draft.role)):
        form.add_error(None, _("Uploading is charged, at the price on the button. Nothing was uploaded yet."))
        return _page(request, draft, form, shape)
    try:
        drafts.upload_draft(draft=draft, by=person_of(request), confirmed="confirm_few" in request.POST)
    except FewWouldPass:
        form.add_error(None, _("Fewer texts would pass than a first model needs. Nothing was stored or charged."))
        return _page(request, draft, form, shape)
    except InvalidUpload as error:
        form.add_error(None, localized(str(error)))
        return _page(request, draft, form, shape)
    messages.success(request, _("Upload received; its rows are being read."))
    return redirect("annotation:data", slug=project.slug)


def _read_anew(request: HttpRequest, draft: UploadDraft, shape: FileShape, reading: dict[str, Any]) -> HttpResponse:
    """Read the file another way: its columns are others, so what was chosen among the old ones says nothing."""
    try:
        drafts.read_draft_as(draft=draft, reading=reading)
    except InvalidUpload as error:
        form = MappingForm(request.POST, project=draft.project, role=draft.role, shape=shape, mapping=draft.mapping)
        form.add_error(None, localized(str(error)))
        return _page(request, draft, form, shape)
    return redirect("annotation:preview", slug=draft.project.slug, draft_id=draft.pk)


def _page(request: HttpRequest, draft: UploadDraft, form: MappingForm, shape: FileShape) -> HttpResponse:
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
    """Return the columns of the file nobody will look at."""
    mapping = draft.mapping
    chosen = {value for key, value in mapping.items() if isinstance(value, str) and key not in mappings.READING_KEYS}
    used = chosen | {*mapping.get("features", {}).values(), *mapping.get("metadata", ())}
    return [name for name in columns if name and name not in used]


@login_required
@never_cache
def bad_rows(request: HttpRequest, slug: str, dataset_id: int) -> StreamingHttpResponse:
    """The bad rows of an upload as CSV: where and why, never what stood there."""
    project = managed_project(request, slug)
    found = get_object_or_404(selectors.uploads_of(project), pk=dataset_id)
    rows = ([row[name] for name in BAD_ROW_COLUMNS] for row in found.bad_row_report)
    return csv_response(table_csv(BAD_ROW_COLUMNS, rows), name=f"{project.slug}-bad-rows-{found.pk}")
