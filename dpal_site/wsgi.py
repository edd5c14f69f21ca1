"""WSGI entry point for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
application = get_wsgi_application()
# Every view is imported now: else the first visitor of each process waits for it, long where the machine is busy.
assert get_resolver().reverse_dict
