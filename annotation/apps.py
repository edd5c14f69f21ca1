"""Application configuration."""

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    """Application configuration of `annotation`."""

    name = "annotation"
