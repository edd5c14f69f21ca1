"""Application configuration."""

from django.apps import AppConfig
from django.db.models.signals import m2m_changed, post_delete, post_migrate, pre_delete

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.declared import ASKED, annotation_choices


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        from django.contrib.auth.models import Group, User  # noqa: PLC0415  # tables are known by now

        from annotation import signals  # noqa: PLC0415  # as above
        from annotation.gates.services import start_gate_of_pool  # noqa: PLC0415  # as above
        from annotation.people.services import members  # noqa: PLC0415  # as above
        from annotation.projects.services.known_choices import note_choices  # noqa: PLC0415  # optional
        from annotation.questions.services.span_files import number_spans  # noqa: PLC0415  # as above

        for kind, base in ASKED.items():
            CATALOGUE.require(kind, base)
        CATALOGUE.add_source(annotation_choices)
        signals.pool_stored.connect(start_gate_of_pool)
        signals.spans_read.connect(number_spans)
        post_migrate.connect(note_choices, sender=self)
        m2m_changed.connect(members.follow_places, sender=User.groups.through)
        pre_delete.connect(members.before_group_ends, sender=Group)
        post_delete.connect(members.after_group_ended, sender=Group)
