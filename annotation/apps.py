"""Application configuration."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.declared import ASKED, annotation_choices


class AnnotationConfig(AppConfig):
    """Application configuration of `annotation`."""

    name = "annotation"

    def ready(self) -> None:
        """Let every migration end with the database knowing which choices there are."""
        from annotation.projects.services.known_choices import note_choices  # noqa: PLC0415  # optional

        for kind, base in ASKED.items():
            CATALOGUE.require(kind, base)
        CATALOGUE.add_source(annotation_choices)
        post_migrate.connect(note_choices, sender=self)
