"""A site of one view that does nothing: what Django itself costs. `benchmarks/predict.py` serves it beside ours."""

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], MIDDLEWARE=[], SECRET_KEY="of no use")
django.setup()


def bare(request: HttpRequest) -> HttpResponse:
    """Answer without looking."""
    return JsonResponse({"version": 1})


urlpatterns = [path("bare", bare)]
application = WSGIHandler()
