"""Configuration of the Django app."""

from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    name = "privacy.ledger"
    label = "privacy"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Privacy ledger"
