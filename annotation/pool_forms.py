"""The form of a new project over a pool: what the choices made so far do not use is not shown."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choosing_forms import ChoosingForm
from annotation.models import DataKind, Estimator, Features, GateKind, Oracle, Selection, UncertaintyMeasure
from annotation.preset import Preset
from annotation.presets import GATE_FIELDS
from annotation.selection_rules import FIELD_DEFAULTS, GAUSSIAN, MOST_EXPOSURES, POOL_ESTIMATORS, SCREENS

OFFERED = {
    Oracle.TRUSTED: (Selection.SECRET_SAMPLE, Selection.TOP_C, *SCREENS, Selection.RANDOM),
    Oracle.CROWD: (Selection.UNCERTAINTY, Selection.RANDOM),
}
ROUNDS = ("round_size", "labels_per_release", "update_policy")
RATES = ("screen_high", "screen_low")
SELECTION_FIELDS: Mapping[str, tuple[str, ...]] = {
    Selection.RANDOM: ROUNDS,
    Selection.SECRET_SAMPLE: ("selection_rate", "block_hours", "screened_blocks", "screen_reach"),
    Selection.TOP_C: ("selection_epsilon", *ROUNDS),
    Selection.EXPOSURE_CAPPED_SCREEN: (*RATES, "screen_reach", "exposures", *ROUNDS),
    Selection.BERNOULLI_SCREEN: (*RATES, "screen_reach", *ROUNDS),
    Selection.EXPONENTIAL_SCREEN: ("selection_epsilon", "exponential_threshold", *ROUNDS),
    Selection.VERSION_SPACE_SCREEN: (*RATES, "half_angle", *ROUNDS),
    Selection.UNCERTAINTY: ("uncertainty_measure", "repeat_votes", *ROUNDS),
}
DATA_FIELDS: Mapping[str, tuple[str, ...]] = {
    DataKind.TEXT: ("feature_dimension",),
    DataKind.TABLE: ("columns",),
    DataKind.IMAGE: ("image_height", "image_width", "feature_dimension"),
}
STEPS = ("step_size", "weight_radius")


class PoolProjectForm(ChoosingForm):
    """What a pool needs beside every project's task and budget."""

    choices = ("data_kind", "selection", "estimator", "features", "gate_kind")

    screen_high = forms.FloatField(
        label=_("Screen: rate near the boundary"), help_text=_("Larger rates ask more, and a skip tells more.")
    )
    screen_low = forms.FloatField(
        label=_("Screen: rate elsewhere"), help_text=_("What a question tells is the ratio of the two rates.")
    )
    screen_reach = forms.FloatField(
        label=_("What is near"), help_text=_("Distance from the boundary; features have a length of at most 1.")
    )
    exposures = forms.IntegerField(
        min_value=1,
        max_value=MOST_EXPOSURES,
        label=_("Screen: looks at each record"),
        help_text=_("Over all rounds together; each look costs."),
    )
    exponential_threshold = forms.FloatField(
        label=_("Screen: where the rate begins to fall"), help_text=_("Distance from the boundary, below 1.")
    )
    half_angle = forms.FloatField(
        label=_("Screen: half angle"), help_text=_("How far, in radians, the truth may be from the released weights.")
    )
    screened_blocks = forms.BooleanField(
        required=False,
        label=_("Prefer what is near from the second block on"),
        help_text=_("Elsewhere one in five of a block is asked. It costs the same and pays for anomalies."),
    )
    uncertainty_measure = forms.ChoiceField(
        choices=UncertaintyMeasure.choices,
        label=_("Measure of uncertainty"),
        help_text=_("What puts a text first; free behind the gate. With two classes all of them agree."),
    )
    repeat_votes = forms.BooleanField(
        required=False,
        label=_("Ask again once half of the texts were asked"),
        help_text=_("Further answers then go to doubtful ones instead of new texts."),
    )
    estimator = forms.ChoiceField(
        choices=[(key, label) for key, label in Estimator.choices if key in POOL_ESTIMATORS],
        label=_("Model"),
        help_text=_("All of them add noise; what a training costs is the same, how good its model is differs."),
    )
    training_delta = forms.FloatField(
        initial=1e-6, label=_("Delta of one training"), help_text=_("What Gaussian noise leaves outside epsilon.")
    )
    smoothing = forms.FloatField(
        label=_("Huber loss: half width of the bend"),
        help_text=_("From 0.125 to 8; a wider bend needs less noise and is less of a hinge."),
    )
    step_size = forms.FloatField(
        required=False, label=_("Step size"), help_text=_("How far one noisy batch moves the weights.")
    )
    weight_radius = forms.FloatField(
        required=False, label=_("Radius of the weights"), help_text=_("20 to 80; in a unit ball nothing is learned.")
    )

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        kwargs["initial"] = {**FIELD_DEFAULTS, **preset.defaults, **(kwargs.get("initial") or {})}
        super().__init__(*args, preset=preset, **kwargs)
        self._offer("selection", OFFERED[Oracle(preset.oracle)])
        if preset.oracle == Oracle.CROWD:
            del self.fields["training_delta"]
            models = self.fields["estimator"]
            assert isinstance(models, forms.ChoiceField)
            models.choices = [(key, label) for key, label in Estimator.choices if key in _WITHOUT_DELTA]
        if not self.initial.get("training_delta"):
            self.initial.pop("training_delta", None)
        self.choose()
        for name in self._unused():
            self.fields.pop(name, None)
        # What a client leaves out is at its default; what a page sends empty is a mistake.
        for name in FIELD_DEFAULTS.keys() & self.fields.keys():
            self.fields[name].required &= not self.is_bound or name in self.data
        self.tell_defaults()

    @classmethod
    def ticked(cls, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return the boxes of every choice."""
        return {name: name in data for name in ("screened_blocks", "repeat_votes")}

    def values(self) -> dict[str, Any]:
        """Return the preset's values with those of the form on top; what the choices do not use is at its default."""
        values = {name: value for name, value in super().values().items() if value != "" or name not in FIELD_DEFAULTS}
        hidden = [name for name in FIELD_DEFAULTS if name not in self.fields]
        return values | {name: FIELD_DEFAULTS[name] for name in hidden}

    def _unused(self) -> list[str]:
        """Name the fields that the choices made so far do not use."""
        kind = self.chosen.get("data_kind", self.preset.data_kinds[0])
        gate, model = self.chosen.get("gate_kind", ""), self.chosen["estimator"]
        used = {*SELECTION_FIELDS[self.chosen["selection"]], *DATA_FIELDS[kind]}
        used |= set(GATE_FIELDS.get(gate, ()))
        used |= set(STEPS if model == Estimator.MINIBATCH_SVM else ("regularization",))
        used |= {"training_delta"} if model in GAUSSIAN else set()
        used |= {"smoothing"} if model.startswith("huber_svm") else set()
        used |= {"features_epsilon"} if self.chosen.get("features") == Features.PRINCIPAL else set()
        return [name for name in _BY_CHOICE if name not in used]


_WITHOUT_DELTA = tuple(name for name in POOL_ESTIMATORS if name not in GAUSSIAN)
_BY_CHOICE = {
    *(name for names in SELECTION_FIELDS.values() for name in names),
    *(name for names in DATA_FIELDS.values() for name in names),
    *(name for kind in GateKind for name in GATE_FIELDS[kind]),
    *STEPS,
    "regularization",
    "training_delta",
    "smoothing",
    "features_epsilon",
}
