"""The form of a new project whose records arrive one by one."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_types.learning import not_learned
from annotation.choices.preset import Preset
from annotation.choices.selections import asks_about_all
from annotation.models import DataKind
from annotation.projects.forms.choosing import ChoosingForm
from privacy.choices import Kind

WINDOWS = ("window_length", "window_denominator")
# What a pool alone has: rounds, trainings after so many labels.
OF_POOLS = (
    "round_size",
    "overlap",
    "labels_per_release",
    "image_height",
    "image_width",
)


class StreamProjectForm(ChoosingForm):
    """What a stream needs beside every project's task and budget; what its choices do not use is not shown."""

    choices = ("data_kind", "features", "selection", "estimator", "update_policy")

    estimator = forms.ChoiceField(
        required=False,
        label=_("Model"),
        help_text=_("Sums learn many classes from all answers so far; steps need no delta."),
    )

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        kwargs["initial"] = {**preset.defaults, **(kwargs.get("initial") or {})}
        super().__init__(*args, preset=preset, **kwargs)
        models = self.fields["estimator"]
        assert isinstance(models, forms.ChoiceField)
        models.choices = [(name, _(label)) for name, label in self.offered(Kind.ESTIMATOR) if self._may_learn(name)]
        self.offer_optional()
        self.choose()
        self.plan()
        self.ask_declared()
        for name in (*OF_POOLS, *self._unused()):
            self.fields.pop(name, None)
        self.tell_defaults()

    def _may_learn(self, name: str) -> bool:
        """Say whether a model learns from batches of what is asked."""
        return not not_learned({**self.preset.defaults, Kind.ESTIMATOR.key: name})

    @classmethod
    def ticked(cls, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return the boxes of the choices that were on the page; what was not on it keeps its default."""
        shown = str(data.get("shown", "")).split(",")
        boxes = set() if any(map(asks_about_all, shown)) else {"drop_unselected"}
        for choice in CATALOGUE.all():
            if choice.name in shown:
                boxes |= {each.name for each in choice.parameters() if each.type is bool}
        return {name: name in data for name in boxes if "shown" in data}

    def _unused(self) -> list[str]:
        """Name the fields that the choices made so far do not use."""
        # Where not everything is asked about, what nobody is asked about may go.
        unused = ["drop_unselected"] if asks_about_all(self.chosen["selection"]) else []
        return unused if self.chosen["data_kind"] == DataKind.TABLE else ["columns", *unused]

    def clean_estimator(self) -> str:
        """Take the preset's where nothing is chosen."""
        return self.cleaned_data["estimator"] or str(self.preset.defaults["estimator"])

    def clean_update_policy(self) -> str:
        """Take the preset's where nothing is chosen."""
        return self.cleaned_data["update_policy"] or str(self.preset.defaults["update_policy"])

    def values(self) -> dict[str, Any]:
        """Return the preset's values with those of the form on top; an empty or hidden window is a choice, too."""
        chosen = {field: self.cleaned_data.get(field) for field in WINDOWS}
        if "training_delta" not in self.fields:
            # Noise of steps has none.
            chosen["training_delta"] = 0.0
        return {**super().values(), **chosen}
