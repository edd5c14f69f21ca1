"""Which settings of a project are fixed by now, and why."""

from django.utils.translation import gettext as _

from annotation.history import FIXED, is_charged
from annotation.models import Arrival, Dataset, Job, Oracle, Project, Query, Selection, WorkState

GATE_SETTINGS = (
    "gate_kind",
    "gate_k",
    "gate_sampling_rate",
    "gate_epsilon",
    "gate_delta",
    "gate_floor",
    "texts_per_contributor",
    "normalizer",
    "privacy_unit",
)
# A series of rounds goes on under the numbers it was opened with.
SERIES_SETTINGS = (
    "selection",
    "selection_rate",
    "selection_epsilon",
    "screen_high",
    "screen_low",
    "screen_reach",
    "exposures",
    "exponential_threshold",
    "half_angle",
)
# Those `annotation_project_stream_fixed` keeps.
STREAM_SETTINGS = (
    *SERIES_SETTINGS,
    "screen_shrinks",
    "update_policy",
    "window_length",
    "window_denominator",
    "window_hours",
    "estimator",
    "noise_sigma",
    "expected_answers",
    "step_size",
    "weight_radius",
    "average_iterates",
    "training_epsilon",
    "training_delta",
)
ROW_SETTINGS = ("data_kind", "columns", "image_height", "image_width")
FREE_SELECTIONS = (Selection.RANDOM, Selection.UNCERTAINTY)


def frozen_settings(project: Project) -> dict[str, str]:
    """Return the settings that stay as they are, with the reason."""
    frozen: dict[str, str] = {}
    if Query.objects.filter(project=project).exists():
        frozen |= dict.fromkeys(("classes",), _("People are asked with it."))
    rows = Dataset.objects.filter(project=project)
    if project.arrival == Arrival.STREAM:
        rows = rows.filter(row_count__gt=0)
    if rows.exists():
        frozen |= dict.fromkeys(ROW_SETTINGS, _("Records were read under it."))
    coming = Job.objects.filter(project=project, kind="gate").exclude(state=WorkState.FAILED)
    if project.oracle == Oracle.CROWD and coming.exists():
        frozen |= dict.fromkeys(GATE_SETTINGS, _("An upload goes through this gate."))
    if is_charged(project):
        names = [*FIXED, "features_epsilon"]
        if project.oracle == Oracle.CROWD:
            names += GATE_SETTINGS
        frozen |= dict.fromkeys(names, _("Something was paid for: the guarantee that was given rests on this value."))
        going_on = _("What was paid for goes on under this value.")
        if project.arrival == Arrival.STREAM:
            frozen |= dict.fromkeys(STREAM_SETTINGS, going_on)
        elif project.selection not in FREE_SELECTIONS:
            frozen |= dict.fromkeys(SERIES_SETTINGS, going_on)
    return frozen
