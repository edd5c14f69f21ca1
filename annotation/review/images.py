"""Images of questions for managers and reviewers."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from annotation import selectors
from annotation.models import Project
from annotation.people.identity import person_of
from annotation.questions.images import image_response
from annotation.questions.selectors import may_read_questions
from annotation.review import selectors as reviewing


def reviewed_image(request: HttpRequest, project: Project, query_id: int | None) -> HttpResponse:
    waiting = reviewing.queue_of(project, person_of(request)).select_related("record__dataset")
    return image_response(get_object_or_404(waiting, pk=query_id).record)


def readable_image(request: HttpRequest, project: Project, query_id: int | None) -> HttpResponse:
    asked = selectors.asked_questions(project).filter(emptied=False).select_related("record__dataset")
    query = get_object_or_404(asked, pk=query_id)
    return image_response(query.record if may_read_questions(project, request.user) else None)
