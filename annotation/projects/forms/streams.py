"""The form of a new project whose records arrive one by one."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_types.learning import not_learned
from annotation.choices.preset import Preset
from annotation.choices.selections import asks_about_all
from annotation.choices.stream_rules import BATCH_ESTIMATORS, STREAM_POLICIES
from annotation.choices.update_policies import POLICIES
from annotation.models import DataKind, UpdatePolicy
from annotation.projects.forms.choosing import ChoosingForm
from privacy.choices import Kind

WINDOWS = ("window_length", "window_denominator")
# What a pool alone has: rounds, blocks, trainings on everything.
OF_POOLS = (
    "round_size",
    "overlap",
    "labels_per_release",
    "regularization",
    "image_height",
    "image_width",
)
OF_STEPS = ("step_size", "weight_radius", "average_iterates")
DATA_FIELDS: Mapping[str, tuple[str, ...]] = {
    DataKind.TEXT: ("feature_dimension",),
    DataKind.TABLE: ("columns",),
}
POLICY_FIELDS: Mapping[str, tuple[str, ...]] = {
    UpdatePolicy.IMMEDIATE: (),
    UpdatePolicy.FLSW: ("window_length",),
    UpdatePolicy.FLSW_HIDDEN: WINDOWS,
    UpdatePolicy.FLMB: ("window_length",),
    UpdatePolicy.DOUBLING: ("window_length",),
}


class StreamProjectForm(ChoosingForm):
    """What a stream needs beside every project's task and budget; what its choices do not use is not shown."""

    choices = ("data_kind", "selection", "estimator", "update_policy")

    estimator = forms.ChoiceField(
        required=False,
        label=_("Model"),
        help_text=_("Sums learn many classes from all answers so far; steps need no delta."),
    )
    window_length = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=10_000_000,
        label=_("Window or batch"),
        help_text=_("Records of a window, answers of a batch (at least 50), or records of the first doubling block."),
    )
    window_denominator = forms.IntegerField(
        required=False,
        min_value=1,
        label=_("Hidden windows: denominator"),
        help_text=_("About as many as a window selects; public, so that the true number stays hidden."),
    )
    window_hours = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        label=_("Hours to answer"),
        help_text=_("A batch makes its update then, whatever is answered; a hidden window exactly then."),
    )
    step_size = forms.FloatField(
        initial=4.0,
        label=_("Step of an update"),
        help_text=_("How far one noisy batch moves the weights."),
    )
    weight_radius = forms.FloatField(
        initial=40.0,
        label=_("Radius of the weights"),
        help_text=_("20 to 80 for batches; in a unit ball hardly anything is learned."),
    )
    average_iterates = forms.BooleanField(
        required=False,
        label=_("Release the average of all updates"),
        help_text=_("Averaging takes noise out of the weights and costs nothing."),
    )

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        kwargs["initial"] = {**preset.defaults, **(kwargs.get("initial") or {})}
        super().__init__(*args, preset=preset, **kwargs)
        offered = dict(self.offered(Kind.ESTIMATOR))
        models, policies = self.fields["estimator"], self.fields["update_policy"]
        assert isinstance(models, forms.ChoiceField)
        assert isinstance(policies, forms.ChoiceField)
        learning = [name for name in BATCH_ESTIMATORS if not not_learned({**preset.defaults, Kind.ESTIMATOR.key: name})]
        models.choices = [(name, _(offered[name])) for name in learning]
        labels = {policy.name: policy.label for policy in POLICIES}
        policies.choices = [(policy, _(labels[policy])) for policy in STREAM_POLICIES]
        self.fields["training_epsilon"].label = _("Epsilon of one update")
        self.fields["training_epsilon"].help_text = _(
            "Each record feeds one update at most, so the stream pays it once."
        )
        self.offer_optional()
        self.choose()
        self.plan()
        self.ask_declared()
        for name in (*OF_POOLS, *self._unused()):
            self.fields.pop(name, None)
        self.tell_defaults()

    @classmethod
    def ticked(cls, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return the boxes of the choices that were on the page; what was not on it keeps its default."""
        shown = str(data.get("shown", "")).split(",")
        boxes = {"average_iterates"} | (set() if any(map(asks_about_all, shown)) else {"drop_unselected"})
        for choice in CATALOGUE.all():
            if choice.name in shown:
                boxes |= {each.name for each in choice.parameters() if each.type is bool}
        return {name: name in data for name in boxes if "shown" in data}

    def _unused(self) -> list[str]:
        """Name the fields that the choices made so far do not use."""
        fields_of = {"data_kind": DATA_FIELDS, "update_policy": POLICY_FIELDS}
        known = {choice: fields_of[choice] for choice in self.chosen if choice in fields_of}
        used = {name for choice, fields in known.items() for name in fields.get(self.chosen[choice], ())}
        every = {name for fields in known.values() for names in fields.values() for name in names}
        # Where not everything is asked about, what nobody is asked about may go.
        screens = "selection" not in self.chosen or not asks_about_all(self.chosen["selection"])
        steps = self.chosen.get("estimator", "minibatch_svm") == "minibatch_svm"
        return sorted(every - used | (set() if screens else {"drop_unselected"}) | (set() if steps else {*OF_STEPS}))

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
