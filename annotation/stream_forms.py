"""The form of a new project whose records arrive one by one."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choosing_forms import ChoosingForm
from annotation.models import DataKind, Selection, UpdatePolicy
from annotation.preset import Preset
from annotation.stream_rules import ONLINE_ESTIMATORS, STREAM_POLICIES

WINDOWS = ("window_length", "window_denominator")
# What a pool alone has: rounds, blocks, trainings on everything.
OF_POOLS = (
    "selection_rate",
    "block_hours",
    "round_size",
    "overlap",
    "labels_per_release",
    "regularization",
    "image_height",
    "image_width",
    "features_epsilon",
)
OF_BATCHES = (
    "training_epsilon",
    "selection",
    "selection_epsilon",
    "screen_high",
    "screen_low",
    "screen_reach",
    "screen_shrinks",
    "exponential_threshold",
    "update_policy",
    "step_size",
    "drop_unselected",
    *WINDOWS,
)
DATA_FIELDS: Mapping[str, tuple[str, ...]] = {
    DataKind.TEXT: ("feature_dimension",),
    DataKind.TABLE: ("columns",),
}
SELECTION_FIELDS: Mapping[str, tuple[str, ...]] = {
    Selection.BERNOULLI_SCREEN: ("screen_high", "screen_low", "screen_reach", "screen_shrinks", "drop_unselected"),
    Selection.EXPONENTIAL_SCREEN: ("selection_epsilon", "exponential_threshold", "drop_unselected"),
    Selection.ALL: (),
}
POLICY_FIELDS: Mapping[str, tuple[str, ...]] = {
    UpdatePolicy.IMMEDIATE: (),
    UpdatePolicy.FLSW: ("window_length",),
    UpdatePolicy.FLSW_HIDDEN: WINDOWS,
    UpdatePolicy.FLMB: ("window_length",),
    UpdatePolicy.DOUBLING: ("window_length",),
}
BOXES = ("screen_shrinks", "drop_unselected")
OF_ONLINE_LEARNING = ("noise_sigma", "expected_answers", "training_delta")


class StreamProjectForm(ChoosingForm):
    """What a stream needs beside every project's task and budget; what its choices do not use is not shown."""

    choices = ("data_kind", "selection", "update_policy")

    screen_high = forms.FloatField(
        label=_("Screen: rate near the boundary"), help_text=_("Larger rates ask more and cost more for every skip.")
    )
    screen_low = forms.FloatField(
        label=_("Screen: rate elsewhere"), help_text=_("The ratio of the two rates is what a selection tells.")
    )
    screen_reach = forms.FloatField(
        label=_("Screen: what is near"), help_text=_("Distance from the boundary, for two rates.")
    )
    screen_shrinks = forms.BooleanField(
        required=False,
        label=_("Screen: what is near shrinks with the updates"),
        help_text=_("After t updates, near is a distance of at most 1/t. It costs the same: the rates are charged."),
    )
    exponential_threshold = forms.FloatField(
        label=_("Screen: where the rate begins to fall"), help_text=_("Distance, for the falling rate; below 1.")
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
    windows_ahead = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        label=_("Batches that may wait for answers"),
        help_text=_("Beyond them, further records wait to be examined by a newer model."),
    )
    updates_per_release = forms.IntegerField(
        min_value=1, max_value=1_000_000, label=_("Updates per release"), help_text=_("Releases cost nothing further.")
    )
    drop_unselected = forms.BooleanField(
        required=False, label=_("Keep no record that nobody is asked about"), help_text=_("It is gone once examined.")
    )
    step_size = forms.FloatField(
        label=_("Step of an update"), help_text=_("How far one noisy batch moves the weights.")
    )
    weight_radius = forms.FloatField(
        label=_("Radius of the weights"),
        help_text=_("20 to 80 for batches; in a unit ball hardly anything is learned."),
    )
    average_iterates = forms.BooleanField(
        required=False,
        label=_("Release the average of all updates"),
        help_text=_("Averaging takes noise out of the weights and costs nothing."),
    )
    noise_sigma = forms.FloatField(
        label=_("Noise of each coordinate"), help_text=_("What the stream costs follows from it.")
    )
    expected_answers = forms.IntegerField(
        min_value=1, max_value=2**31 - 1, label=_("Answers to expect"), help_text=_("Sets the step; public.")
    )
    training_delta = forms.FloatField(
        label=_("Delta of the stream"), help_text=_("At which its epsilon is stated; the pool's limit must exceed it.")
    )

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        kwargs["initial"] = {**preset.defaults, **(kwargs.get("initial") or {})}
        super().__init__(*args, preset=preset, **kwargs)
        online = preset.defaults["estimator"] in ONLINE_ESTIMATORS
        for field in (*OF_POOLS, *(OF_BATCHES if online else OF_ONLINE_LEARNING)):
            self.fields.pop(field, None)
        if not online:
            self._restrict("selection", (Selection.BERNOULLI_SCREEN, Selection.EXPONENTIAL_SCREEN, Selection.ALL))
            self._restrict("update_policy", tuple(UpdatePolicy(policy) for policy in STREAM_POLICIES))
            self.fields["training_epsilon"].label = _("Epsilon of one update")
            self.fields["training_epsilon"].help_text = _(
                "Each record feeds one update at most, so the stream pays it once."
            )
            self.fields["selection_epsilon"].label = _("Screen: epsilon of the falling rate")
            self.fields["selection_epsilon"].help_text = _("Log ratio of its largest to its smallest rate.")

        self.choose()
        for name in self._unused():
            self.fields.pop(name, None)
        self.tell_defaults()

    @classmethod
    def ticked(cls, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return the boxes of the choices that were on the page; what was not on it keeps its default."""
        asks_all = Selection.ALL.value in str(data.get("shown", "")).split(",")
        return {name: name in data for name in ("average_iterates", *(() if asks_all else BOXES)) if "shown" in data}

    def _unused(self) -> list[str]:
        """Name the fields that the choices made so far do not use."""
        fields_of = {"data_kind": DATA_FIELDS, "selection": SELECTION_FIELDS, "update_policy": POLICY_FIELDS}
        used = {name for choice, key in self.chosen.items() for name in fields_of[choice].get(key, ())}
        every = {name for choice in self.chosen for names in fields_of[choice].values() for name in names}
        return sorted(every - used)

    def _restrict(self, field: str, offered: "tuple[Selection | UpdatePolicy, ...]") -> None:
        choice = self.fields[field]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(option.value, option.label) for option in offered]

    def clean_update_policy(self) -> str:
        """Take the preset's where nothing is chosen."""
        return self.cleaned_data["update_policy"] or str(self.preset.defaults["update_policy"])

    def values(self) -> dict[str, Any]:
        """Return the preset's values with those of the form on top; an empty or hidden window is a choice, too."""
        chosen = {field: self.cleaned_data.get(field) for field in WINDOWS}
        return {**super().values(), **chosen}
