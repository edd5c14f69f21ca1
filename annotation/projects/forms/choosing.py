"""Forms of new projects that show the settings which the choices made so far use, and no others."""

from collections.abc import Mapping
from typing import Any, Self

from django import forms
from django.utils.formats import number_format
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.choices.catalogue import CATALOGUE, parameter_names
from annotation.choices.form_fields import field_of, kind_field
from annotation.choices.planned_settings import planned_settings
from annotation.choices.preset import Preset
from annotation.choices.selection_rules import field_defaults
from annotation.gates.comparison import EXAMPLE_TEXT
from annotation.models import Arrival
from annotation.projects.forms.opening import ProjectForm
from privacy.choices import Kind, Parameter
from privacy.gate.normalizers import Normalizer, normalize_text

# Of these a project may choose one or none.
OPTIONAL_KINDS = (Kind.RANDOMIZER, Kind.SUGGESTIONS, Kind.MACHINE)
# What managers say of these, on pages of their own, changes no guarantee; a new project may say it at once.
LATER = (Kind.LABELLING, Kind.BUDGET)
# What a person must type has no default.
TYPED = ("name", "question", "classes", "guidelines", "columns", "image_height", "image_width")
# One text under every rule, so that nobody has to imagine what annotators will read.
NORMALIZER_CHOICES = [
    (
        rule.value,
        format_lazy("{}: {} (“{}”)", rule.value, gettext_lazy(rule.summary), normalize_text(EXAMPLE_TEXT, rule)),
    )
    for rule in Normalizer
]
# Those of one kind stand together on a page, in this order; what no choice declares stands before them.
ORDER = {kind: place for place, kind in enumerate(Kind, start=1)}


def _place(name: str) -> int:
    kind = CATALOGUE.kind_of(name)
    return 0 if kind is None else ORDER[kind]


def _later_field(declared: Parameter) -> forms.Field:
    """Return the field of a setting that pages of its own ask for: whoever leaves it out has its default."""
    field = field_of(declared)
    field.required, field.later = False, True  # type: ignore[attr-defined]
    return field


def readable_value(field: forms.Field, value: Any) -> str:
    """Return a value as people read it."""
    if isinstance(field, forms.BooleanField):
        return _("yes") if value else _("no")
    if value in (None, "", [], ()):
        return _("none")
    if isinstance(field, forms.ChoiceField):
        return str(dict(field.widget.choices).get(value, value))
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or _("none")
    return str(number_format(f"{value:g}")) if isinstance(value, float) else str(value)


class ChoosingForm(ProjectForm):
    """A form whose choices decide which settings there are; the server leaves the others out."""

    # Names of the fields that decide.
    choices: tuple[str, ...] = ()
    chosen: dict[str, str]

    def choose(self) -> None:
        """Note what is chosen, in what was sent or else by default."""
        self.chosen = {name: self._chosen(name) for name in self.choices if name in self.fields}

    @classmethod
    def known_fields(cls) -> dict[str, forms.Field]:
        """Return the fields that a form of this class can have, those that declarations bring among them."""
        fields = {name: field_of(each) for name, each in CATALOGUE.parameters().items()}
        kinds = {kind.key: kind_field(kind, []) for kind in OPTIONAL_KINDS if CATALOGUE.of_kind(kind)}
        return {**fields, **kinds, **cls.base_fields}

    @classmethod
    def known_names(cls) -> list[str]:
        """Return the names of those fields, in their order."""
        kinds = [kind.key for kind in OPTIONAL_KINDS if CATALOGUE.of_kind(kind)]
        return [*dict.fromkeys((*CATALOGUE.parameters(), *kinds, *cls.base_fields))]

    @classmethod
    def later_names(cls) -> list[str]:
        """Return the names of those settings that pages of their own ask for once a project stands."""
        return [name for kind in LATER for name in parameter_names(kind) if name not in cls.base_fields]

    def offer_optional(self) -> None:
        """Add a field for each kind of which a project may choose one or none, where there is one to choose."""
        for kind in OPTIONAL_KINDS:
            if offered := self.offered(kind):
                self.fields[kind.key] = kind_field(kind, offered)
                self.choices = (*self.choices, kind.key)

    def ask_declared(self) -> None:
        """Add the settings of what is chosen, and of what every project has, and let those of one kind stand together.

        What is sent without a setting gets its default; what a page sends empty is a mistake.
        """
        arrival = str(self.preset.defaults.get("arrival", Arrival.POOL))
        settings = {**self.preset.defaults, **self.chosen, "oracle": self.preset.oracle}
        data_kind = self.chosen.get("data_kind", self.preset.data_kinds[0])
        for choice in CATALOGUE.chosen(settings):
            if choice.kind.key and choice.kind.key not in self.chosen:
                continue
            if choice.sound.broken({**settings, "arrival": arrival, "data_kind": data_kind}):
                continue
            for each in choice.parameters_in(arrival, data_kind):
                field = _later_field(each) if choice.kind in LATER else field_of(each)
                field.required &= not self.is_bound or each.name in self.data
                self.fields.setdefault(each.name, field)
        if "normalizer" in self.fields:
            self.fields["normalizer"].choices = NORMALIZER_CHOICES  # type: ignore[attr-defined]
        self.order_fields(sorted(self.fields, key=_place))

    def plan(self) -> None:
        """Let settings that nobody typed follow the limit, the planned releases and the classes."""
        settings = {**self.initial, **self.chosen, "oracle": self.preset.oracle}
        settings.setdefault("data_kind", self.preset.data_kinds[0])
        settings["classes"] = str(settings.get("classes") or "").split("\n")
        kinds = {name: each.type for name, each in CATALOGUE.parameters().items() if each.type in (int, float)}
        for name, read in (kinds | dict.fromkeys(("pool_epsilon", "pool_delta"), float)).items():
            try:
                settings[name] = read(settings[name]) if settings.get(name) not in (None, "") else None
            except (TypeError, ValueError):
                # What cannot be read is told at its field.
                return
            if settings[name] is None:
                del settings[name]
        if not {"pool_epsilon", "pool_delta"} <= settings.keys():
            return
        for name, value in planned_settings(settings).items():
            if str(self.initial.get(name)) in ("None", str(self.preset.defaults.get(name))):
                self.initial[name] = value

    def tell_defaults(self) -> None:
        """Let each setting say what it is where nobody changes it."""
        defaults = {**field_defaults(), **self.preset.defaults}
        for name, field in self.fields.items():
            default = defaults.get(name, field.initial)
            if default is None and isinstance(field, forms.ChoiceField):
                default = field.widget.choices[0][0]
            # The page of every field reads it; Django's fields have no such attribute of their own.
            field.default_words = "" if name in TYPED else readable_value(field, default)  # type: ignore[attr-defined]

    @classmethod
    def ticked(cls, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return the boxes that were on the page that sent `data`, ticked or not."""
        return {}

    @classmethod
    def shown_for(cls, data: Mapping[str, Any], *, preset: Preset) -> Self:
        """Return the form of the choices in `data`, with everything typed so far and nothing checked yet."""
        typed = {name: data.get(name) for name in cls.known_names() if name in data}
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
