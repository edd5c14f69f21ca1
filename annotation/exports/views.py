"""A project's labels as a file, for its managers: written while it is sent, or by a worker."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from annotation.access import managed_project
from annotation.exports.downloads import export_response, labels_response
from annotation.exports.services import kept_files
from annotation.exports.services.label_files import FILE_KINDS, ExportFormat
from annotation.models import UNFINISHED
from annotation.models.exports import Export
from annotation.people.identity import person_of

SHOWN = 20


@login_required
@never_cache
def download_labels(request: HttpRequest, slug: str, format: str) -> StreamingHttpResponse:  # noqa: A002
    """Every answer of the project as it stands now, or with `?history=1` as it ever was."""
    project = managed_project(request, slug)
    if format not in list(ExportFormat):
        raise Http404
    return labels_response(project, format, history=request.GET.get("history") == "1")


@login_required
@never_cache
def label_files(request: HttpRequest, slug: str) -> HttpResponse:
    """Files that workers wrote or write; a POST has one more written."""
    project = managed_project(request, slug)
    chosen = request.POST.get("format", "")
    if chosen in list(ExportFormat):
        kept_files.start_export(
            project=project, owner=person_of(request), format=chosen, history=request.POST.get("history") == "1"
        )
        messages.success(request, _("The file is being written. You may go on meanwhile."))
        return redirect("annotation:exports", slug=project.slug)
    asked = list(Export.objects.filter(project=project).select_related("job", "project").order_by("-pk")[:SHOWN])
    context = {
        "project": project,
        "exports": [(export, FILE_KINDS[ExportFormat(export.format)].words) for export in asked],
        "running": any(export.job.state in UNFINISHED for export in asked),
        "formats": [(each.value, kind.words) for each, kind in FILE_KINDS.items()],
        "kept_days": settings.EXPORT_KEPT_DAYS,
    }
    part = "annotation/exports/_files.html" if request.headers.get("HX-Request") else "annotation/exports/files.html"
    return render(request, part, context, status=422 if request.method == "POST" else 200)


@login_required
@never_cache
def export_file(request: HttpRequest, slug: str, job_id: UUID) -> HttpResponse | StreamingHttpResponse:
    """A file that a worker wrote, whole or in part."""
    found = Export.objects.select_related("project")
    return export_response(request, get_object_or_404(found, project=managed_project(request, slug), job=job_id))
