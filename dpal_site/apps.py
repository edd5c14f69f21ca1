"""The site: settings, URLs, commands; makes the Celery application the default one for `send_task`."""

from django.apps import AppConfig

from dpal_site.celery import app as celery_app

__all__ = ["SiteConfig", "celery_app"]


class SiteConfig(AppConfig):
    """Application configuration of the site."""

    name = "dpal_site"
