"""Settings of a project that can no longer change, with the reason."""

from django.utils.translation import gettext as _

from annotation.choices.catalogue import CATALOGUE, parameter_names
from annotation.models import Arrival, Dataset, Job, Oracle, Project, Query, WorkState
from annotation.selectors import FIXED, is_charged
from privacy.choices import Kind

# A stream pays once for all of these.
PAID_BY_STREAMS = ("selection", "features", "training")
ROW_SETTINGS = ("data_kind", "columns", "image_height", "image_width", "image_colours")


def frozen_settings(project: Project) -> dict[str, str]:
    frozen: dict[str, str] = {}
    if Query.objects.filter(project=project).exists():
        frozen |= dict.fromkeys(("classes", "question_kind"), _("People are asked with it."))
    rows = Dataset.objects.filter(project=project)
    if project.arrival == Arrival.STREAM:
        rows = rows.filter(row_count__gt=0)
    if rows.exists():
        frozen |= dict.fromkeys(ROW_SETTINGS, _("Records were read under it."))
    coming = Job.objects.filter(project=project, kind="gate").exclude(state=WorkState.FAILED)
    if project.oracle == Oracle.CROWD and coming.exists():
        frozen |= dict.fromkeys(_gate_settings(), _("An upload goes through this gate."))
    if is_charged(project):
        names = [*FIXED, "features_epsilon"]
        if project.oracle == Oracle.CROWD:
            names += _gate_settings()
        frozen |= dict.fromkeys(names, _("Something was paid for: the guarantee that was given rests on this value."))
        going_on = _("What was paid for goes on under this value.")
        frozen = dict.fromkeys(_going_on(project), going_on) | frozen
    return frozen


def _gate_settings() -> list[str]:
    return [Kind.GATE.key, *parameter_names(Kind.GATE), "privacy_unit"]


def _going_on(project: Project) -> list[str]:
    """Name the settings of choices that what was paid for goes on under; of a stream, those of every choice."""
    stream = project.arrival == Arrival.STREAM
    names: list[str] = []
    for choice in CATALOGUE.chosen(project.settings):
        if choice.stays or (stream and choice.kind.section in PAID_BY_STREAMS):
            names += [choice.kind.key, *(each.name for each in choice.parameters())]
    return [name for name in names if name]
