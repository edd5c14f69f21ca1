"""Answers as files: written while they are sent, or sent as a worker wrote them."""

from typing import BinaryIO

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse

from annotation.data.services.label_files import FILE_KINDS, ExportFormat, export_labels
from annotation.models import Project
from annotation.models.exports import Export
from annotation.work.ranges import send_file
from annotation.work.services import files


def labels_response(project: Project, name: str, *, history: bool = False) -> StreamingHttpResponse:
    chosen = ExportFormat(name)
    pieces = export_labels(project=project, format=chosen, history=history)
    response = StreamingHttpResponse(pieces, content_type=FILE_KINDS[chosen].media_type)
    response["Content-Disposition"] = f'attachment; filename="{project.slug}-labels.{FILE_KINDS[chosen].ending}"'
    return response


def export_response(request: HttpRequest, export: Export) -> HttpResponse | StreamingHttpResponse:
    """Send a file that a worker wrote; there is none once its time is over or something in it was forgotten."""
    if not export.may_be_read:
        raise Http404
    kind = FILE_KINDS[ExportFormat(export.format)]

    def opener() -> BinaryIO:
        try:
            return files.open_stored(export.file, export.sha256, lambda path: path.open("rb"))
        except FileNotFoundError:
            # It was removed in this very moment.
            raise Http404 from None

    return send_file(
        request,
        opener,
        name=f"{export.project.slug}-labels.{kind.ending}",
        sha256=export.sha256,
        media_type=kind.media_type,
    )
