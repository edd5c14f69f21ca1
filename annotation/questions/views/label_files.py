"""A project's labels as a file, for its managers."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.views.decorators.cache import never_cache

from annotation.access import managed_project
from annotation.questions.downloads import labels_response
from annotation.questions.services.label_export import ExportFormat


@login_required
@never_cache
def download_labels(request: HttpRequest, slug: str, format: str) -> StreamingHttpResponse:  # noqa: A002
    """Every answer of the project as it stands now, or with `?history=1` as it ever was."""
    project = managed_project(request, slug)
    if format not in list(ExportFormat):
        raise Http404
    return labels_response(project, format, history=request.GET.get("history") == "1")
