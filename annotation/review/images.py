"""The image of a question that waits for review."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from annotation.models import Project
from annotation.people.identity import person_of
from annotation.questions.images import image_response
from annotation.review import selectors as reviewing


def reviewed_image(request: HttpRequest, project: Project, query_id: int | None) -> HttpResponse:
    """Answer with the image of a question of a project that waits for the person's review."""
    waiting = reviewing.queue_of(project, person_of(request)).select_related("record__dataset")
    return image_response(get_object_or_404(waiting, pk=query_id).record)
