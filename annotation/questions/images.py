"""The image of a question, for who holds it or held it."""

from django.http import Http404, HttpResponse

from annotation import selectors
from annotation.data.services.pictures import ImageAhead, image_ahead, shown_image
from annotation.models import Assignment, Query, Record

IMAGE_ANSWER = {
    "description": "In colour as WebP where a picture is kept, else in grey as PNG",
    "content": {"image/webp": {}, "image/png": {}},
}


def held_image(assignment: Assignment) -> HttpResponse:
    query = assignment.query
    if query.record_id is None or query.emptied:
        raise Http404
    return image_response(selectors.asked_records([query.record_id])[query.record_id])


def size_ahead(query: Query) -> ImageAhead:
    height, width = query.project.image_height or 0, query.project.image_width or 0
    assert query.record is not None
    return image_ahead(query.record, height=height, width=width, most_bytes=0)


def image_response(record: Record | None) -> HttpResponse:
    if record is None or not record.dataset.pixels:
        raise Http404
    image = shown_image(record)
    return HttpResponse(image.content, content_type=image.content_type)
