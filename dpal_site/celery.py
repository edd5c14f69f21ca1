"""The Celery application; tasks are found in each app's `tasks.py`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")

app = Celery("dpal")
# Celery remembers the current application for one thread only; web requests run in others.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
