"""Names of what models are measured by."""

from django.utils.translation import gettext

from annotation.choices.label_types.catalogue import label_class
from annotation.models import Project


def measure_of(project: Project) -> str:
    return gettext(label_class(project.question_kind).measure)
