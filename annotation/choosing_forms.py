"""Forms of new projects that show the settings which the choices made so far use, and no others."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from annotation.preset import Preset
from annotation.project_forms import ProjectForm
from annotation.selection_rules import FIELD_DEFAULTS

# What a person must type has no default.
TYPED = ("name", "question", "classes", "guidelines", "columns", "image_height", "image_width")


def words_of(field: forms.Field, value: Any) -> str:
    """Return a value as people read it."""
    if isinstance(field, forms.BooleanField):
        return _("yes") if value else _("no")
    if value in (None, ""):
        return _("none")
    if isinstance(field, forms.ChoiceField):
        return str(dict(field.widget.choices).get(value, value))
    return str(number_format(f"{value:g}")) if isinstance(value, float) else str(value)


class ChoosingForm(ProjectForm):
    """A form whose choices decide which settings there are; the server leaves the others out."""

    # Names of the fields that decide.
    choices: ClassVar[tuple[str, ...]] = ()
    chosen: dict[str, str]

    def choose(self) -> None:
        """Note what is chosen, in what was sent or else by default."""
        self.chosen = {name: self._chosen(name) for name in self.choices if name in self.fields}

    def tell_defaults(self) -> None:
        """Let each setting say what it is where nobody changes it."""
        for name, field in self.fields.items():
            default = {**FIELD_DEFAULTS, **self.preset.defaults}.get(name, field.initial)
            if default is None and isinstance(field, forms.ChoiceField):
                default = field.widget.choices[0][0]
            # The page of every field reads it; Django's fields have no such attribute of their own.
            field.default_words = "" if name in TYPED else words_of(field, default)  # type: ignore[attr-defined]

    @classmethod
    def ticked(cls, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return the boxes that were on the page that sent `data`, ticked or not."""
        return {}

    @classmethod
    def shown_for(cls, data: Mapping[str, Any], *, preset: Preset) -> Self:
        """Return the form of the choices in `data`, with everything typed so far and nothing checked yet."""
        typed = {name: data.get(name) for name in cls.base_fields if name in data}
        return cls(preset=preset, initial=typed | cls.ticked(data))

    @property
    def shown(self) -> str:
        """The choices whose settings are on the page; sent back, so that nobody confirms settings they never saw."""
        return ",".join(self.chosen.values())

    def settings_are_shown(self, data: Mapping[str, Any]) -> bool:
        """Say whether what was sent came from a page with the settings of its own choices."""
        return bool(data.get("shown", self.shown) == self.shown)

    @property
    def choice_fields(self) -> list[forms.BoundField]:
        """What decides which settings there are."""
        return self.group(self.choices)

    @property
    def basic_fields(self) -> list[forms.BoundField]:
        """What every project needs."""
        return [field for field in super().basic_fields if field.name not in self.choices]

    @property
    def advanced_fields(self) -> list[forms.BoundField]:
        """The rest, which the preset has filled in."""
        return [field for field in super().advanced_fields if field.name not in self.choices]

    def _chosen(self, name: str) -> str:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        offered = [str(key) for key, _label in field.widget.choices]
        default = self.initial.get(name) or self.get_initial_for_field(field, name)
        wanted = self.data.get(name, default) if self.is_bound else default
        return str(wanted if wanted in offered else offered[0])
