"""The privacy app: the ledger, the mechanisms and their accounting."""

from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    """Registers the ledger's two tables; the app has no pages of its own."""

    name = "privacy"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Privacy ledger"
