"""What settings are called in the history, in the reader's language and as their forms call them."""

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.choices import form_fields
from annotation.data.retention_views import KINDS
from annotation.projects.forms.pool import PoolProjectForm
from annotation.projects.forms.settings import SettingsForm
from annotation.projects.forms.streams import StreamProjectForm
from annotation.review.forms import QualityForm

FORMS: Final = (SettingsForm, PoolProjectForm, StreamProjectForm, QualityForm)
# Settings that buttons change, or that follow from others.
WITHOUT_FIELD: Final = {
    "oracle": gettext_lazy("Who answers"),
    "arrival": gettext_lazy("How records arrive"),
    "state": gettext_lazy("State"),
    "slug": gettext_lazy("Short name of the project"),
    "preset": gettext_lazy("Preset"),
    "pool_account_id": gettext_lazy("Account of the pool"),
    "labels_account_id": gettext_lazy("Account of the answers"),
    "configuration_id": gettext_lazy("Version of the configuration"),
    "compared_with_id": gettext_lazy("Random choice beside it"),
    "guidelines_version": gettext_lazy("Version of the guidelines"),
    "merged_classes": gettext_lazy("Merged classes"),
    "second_manager": gettext_lazy("A second manager decides about higher limits"),
    "windows_ahead": gettext_lazy("Windows that may wait for answers"),
    "created_at": gettext_lazy("Opened on"),
    "created_by_id": gettext_lazy("Opened by"),
}
PERIODS: Final = {f"keep_{kind}_days": words for kind, (words, _help) in KINDS.items()}


def setting_name(setting: str) -> str:
    """Return what people call a column of a project."""
    if setting in WITHOUT_FIELD:
        return str(WITHOUT_FIELD[setting])
    if setting in PERIODS:
        return _("Days for which this is kept: %(what)s") % {"what": PERIODS[setting]}
    found = next((form.base_fields[setting].label for form in FORMS if setting in form.base_fields), None)
    return str(found or form_fields.setting_label(setting) or setting)
