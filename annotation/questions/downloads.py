"""Answers, written while they are sent."""

from django.http import StreamingHttpResponse

from annotation.models import Project
from annotation.questions.services.label_export import ENDINGS, MEDIA_TYPES, ExportFormat, export_labels


def labels_response(project: Project, name: str, *, history: bool = False) -> StreamingHttpResponse:
    """Send a project's answers in the format called `name`."""
    chosen = ExportFormat(name)
    pieces = export_labels(project=project, format=chosen, history=history)
    response = StreamingHttpResponse(pieces, content_type=MEDIA_TYPES[chosen])
    response["Content-Disposition"] = f'attachment; filename="{project.slug}-labels.{ENDINGS[chosen]}"'
    return response
