"""The image of a question, for managers who read what questions show."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from annotation import selectors
from annotation.models import Project
from annotation.questions.images import image_response
from annotation.reports.selectors.waiting import may_read_questions


def readable_image(request: HttpRequest, project: Project, query_id: int | None) -> HttpResponse:
    """Answer with the image of a question of a project that the person manages, if they may read it."""
    asked = selectors.asked_questions(project).filter(emptied=False).select_related("record__dataset")
    query = get_object_or_404(asked, pk=query_id)
    return image_response(query.record if may_read_questions(project, request.user) else None)
