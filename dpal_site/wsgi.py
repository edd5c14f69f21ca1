"""WSGI entry point of the web server."""

import os
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
application: "WSGIApplication" = get_wsgi_application()
if settings.LABEL_PROCESS_URL:
    from dpal_site.operations.label_pages import LabelFront  # needs the applications to be loaded

    application = LabelFront(application, settings.LABEL_PROCESS_URL)
# Every view is imported now: else the first visitor of each process waits for it, long where the machine is busy.
assert get_resolver().reverse_dict
