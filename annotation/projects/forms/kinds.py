"""The form that chooses anew who is protected from whom, and its consequences in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.choices.presets import PRESETS, broken_rules
from annotation.models import Project
from annotation.projects.forms.pool import PoolProjectForm
from annotation.projects.forms.setting_names import setting_name
from annotation.projects.forms.streams import StreamProjectForm
from annotation.projects.forms.wizard import KindFields, arrival_of, preset_of
from annotation.projects.settings_words import setting_value


class KindForm(KindFields):
    """Who answers, how records come, whose presence is hidden, and whose values the other settings take."""

    preset = forms.ChoiceField(
        required=False,
        label=_("Preset"),
        help_text=_("Whose values the other settings take where they cannot stay."),
    )
    labels_epsilon = forms.FloatField(
        required=False,
        min_value=1e-6,
        label=_("Epsilon limit of the answers"),
        help_text=_("For a crowd: protects each single answer, not all of one person's together. Empty: the preset's."),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        initial = {name: getattr(project, name) for name in ("oracle", "arrival", "privacy_unit")}
        super().__init__(data, initial=initial)
        self.project = project
        presets = [(preset.key, gettext(preset.title)) for preset in PRESETS.values()]
        choice = self.fields["preset"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [("", gettext("the present one, or the first that fits")), *presets]
        if project.labels_account_id is not None:
            del self.fields["labels_epsilon"]

    def clean(self) -> dict[str, Any]:
        """Refuse at its field what no preset has a proof for."""
        if self.errors:
            return self.cleaned_data
        chosen = self.cleaned_data
        current = PRESETS[self.project.preset]
        named = PRESETS.get(chosen["preset"])
        if named is not None and (named.oracle, arrival_of(named)) != (chosen["oracle"], chosen["arrival"]):
            self.add_error("preset", _("This preset has another oracle or arrival than what is chosen above."))
            return chosen
        found = named or preset_of(chosen["oracle"], chosen["arrival"], current)
        if found is None:
            nearest = preset_of(chosen["oracle"], None, current)
            assert nearest is not None
            tried = {"labels_epsilon": None, **nearest.defaults, "oracle": chosen["oracle"]}
            rules = broken_rules(
                {**tried, "arrival": chosen["arrival"], "data_kind": nearest.data_kinds[0], "classes": ["1", "2"]}
            )
            self.add_error("arrival", gettext(rules.get("oracle") or rules["arrival"]))
            return chosen
        return chosen | {"found": found}


def kind_of(project: Project) -> list[tuple[str, str]]:
    """Return who is protected from whom in a project, as names and words."""
    names = ("preset", "oracle", "arrival", "privacy_unit")
    return [(setting_name(name), _words(name, getattr(project, name))) for name in names]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that would change."""

    label: str
    before: str
    after: str


def setting_changes(project: Project, changes: Mapping[str, Any]) -> list[SettingChange]:
    """Say for each setting that would change what it is and what it would be, in the order of the forms."""
    fields = [*StreamProjectForm.known_names(), *PoolProjectForm.known_names(), *KindForm.base_fields]
    standing = project.settings
    first = ("oracle", "arrival", "privacy_unit", "preset")
    names = [*first, *(name for name in fields if name not in first), *changes]
    return [
        SettingChange(setting_name(name), _words(name, standing.get(name)), _words(name, changes[name]))
        for name in dict.fromkeys(names)
        if name in changes
    ]


def _words(name: str, value: Any) -> str:
    return gettext(PRESETS[value].title) if name == "preset" else setting_value(name, value)
