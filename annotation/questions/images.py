"""The image of a question, for who holds it, and managers who read what questions show."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from annotation import selectors
from annotation.models import Assignment, Project, Query, Record
from annotation.pictures.services.showing import ImageAhead, image_ahead, shown_image
from annotation.reports.selectors.waiting import may_read_questions

IMAGE_ANSWER = {
    "description": "In colour as WebP where a picture is kept, else in grey as PNG",
    "content": {"image/webp": {}, "image/png": {}},
}


def held_image(assignment: Assignment) -> HttpResponse:
    """Answer with the image of a question that somebody holds or held; of an emptied one nothing is shown.

    Its grey values lie in their file until a job has written it anew.
    """
    query = assignment.query
    return image_response(None if query.record_id is None or query.emptied else selectors.asked_record(query))


def readable_image(request: HttpRequest, project: Project, query_id: int | None) -> HttpResponse:
    """Answer with the image of a question of a project that the person manages, if they may read it."""
    asked = selectors.asked_questions(project).filter(emptied=False).select_related("record__dataset")
    query = get_object_or_404(asked, pk=query_id)
    return image_response(query.record if may_read_questions(project, request.user) else None)


def size_ahead(query: Query) -> ImageAhead:
    """Return how large the image of a question is, so that its page keeps a place for it."""
    height, width = query.project.image_height or 0, query.project.image_width or 0
    assert query.record is not None
    return image_ahead(query.record, height=height, width=width, most_bytes=0)


def image_response(record: Record | None) -> HttpResponse:
    """Answer with the image that a record is, if it is one."""
    if record is None or not record.dataset.pixels:
        raise Http404
    image = shown_image(record)
    return HttpResponse(image.content, content_type=image.content_type)
