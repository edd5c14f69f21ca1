"""The site: settings, URLs, commands; makes the Celery application the default one for `send_task`."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in

from dpal_site.celery import app as celery_app

__all__ = ["SiteConfig", "celery_app"]


class SiteConfig(AppConfig):
    name = "dpal_site"

    def ready(self) -> None:
        from allauth.account.signals import password_reset  # noqa: PLC0415 - loads models

        from dpal_site.accounts import sessions  # noqa: PLC0415 - loads models
        from dpal_site.accounts.adapter import confirm_only_address  # noqa: PLC0415 - loads models
        from dpal_site.operations import deployment_checks as _checks  # noqa: F401, PLC0415 - registers them
        from dpal_site.operations import security  # noqa: PLC0415 - loads models

        password_reset.connect(confirm_only_address, dispatch_uid="dpal_site.accounts.adapter")
        user_logged_in.connect(sessions.note_login, dispatch_uid="dpal_site.accounts.sessions")
        sessions.end_others_with_a_new_factor()
        security.connect()
