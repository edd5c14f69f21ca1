"""Files that are written while they are sent."""

from django.http import StreamingHttpResponse

from annotation import sheets
from annotation.models import Project
from annotation.services.label_export import ENDINGS, MEDIA_TYPES, ExportFormat, export_labels
from annotation.services.statement_file import statement_json


def labels_response(project: Project, name: str, *, history: bool = False) -> StreamingHttpResponse:
    """Send a project's answers in the format called `name`."""
    chosen = ExportFormat(name)
    pieces = export_labels(project=project, format=chosen, history=history)
    response = StreamingHttpResponse(pieces, content_type=MEDIA_TYPES[chosen])
    response["Content-Disposition"] = f'attachment; filename="{project.slug}-labels.{ENDINGS[chosen]}"'
    return response


def statement_response(project: Project) -> StreamingHttpResponse:
    """Send every entry of a project's accounts with the audit's verdict, as an auditor checks them."""
    pieces = statement_json(project, list(sheets.accounts_of(project)))
    response = StreamingHttpResponse(pieces, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{project.slug}-statement.json"'
    return response
