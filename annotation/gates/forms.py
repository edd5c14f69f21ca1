"""Forms of the gate's planner."""

from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.form_fields import DecimalMarkField, field_of
from annotation.choices.gates import gate_choices, own_gate_parameters, own_parameters
from annotation.gates import comparison
from annotation.gates import services as gates
from annotation.gates.comparison import SMALLEST_DELTA, Offer, offers
from annotation.models import Dataset, PrivacyUnit, Project
from annotation.wording import localized
from privacy.choices import Parameter
from privacy.gate.normalizers import Normalizer
from privacy.gate.planning import PublicSource
from privacy.gate.survey import Frequencies

LARGEST: Final = 2**31 - 1


class GatePlanForm(forms.Form):
    SYNTHETIC = "synthetic"
    NUMBERS = "numbers"

    epsilon = DecimalMarkField(min_value=0.01, max_value=20, label=_("Gate: epsilon"))
    delta = DecimalMarkField(min_value=SMALLEST_DELTA, max_value=0.1, label=_("Gate: delta"))
    source = forms.ChoiceField(required=False, label=_("Preview"))
    records = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=10**10,
        label=_("How many records there will be"),
        help_text=_("Use published numbers of a source like yours, never counts of your records."),
    )
    different_texts = forms.IntegerField(
        required=False, min_value=1, max_value=10**10, label=_("How many different texts are among them")
    )
    most_frequent = forms.IntegerField(
        required=False, min_value=1, max_value=10**10, label=_("How often the most frequent text is said")
    )

    def __init__(self, *args: Any, project: Project, uploads: Sequence[Dataset], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        self.uploads = uploads
        self.offers: list[Offer] = []
        self.numbers: PublicSource | None = None
        source = self.fields["source"]
        assert isinstance(source, forms.ChoiceField)
        source.choices = [
            ("", _("none")),
            (self.SYNTHETIC, _("of a made-up log")),
            (self.NUMBERS, _("of a source with the public numbers below")),
            *((str(upload.pk), f"{upload.name}: {upload.get_role_display()}") for upload in uploads),
        ]

    def clean(self) -> dict[str, Any]:
        if self.errors:
            return self.cleaned_data
        contributor = self.project.privacy_unit == PrivacyUnit.CONTRIBUTOR
        try:
            self.offers = offers(
                self.cleaned_data["epsilon"],
                self.cleaned_data["delta"],
                unit="contributor" if contributor else "record",
                texts_per_contributor=self.project.texts_per_contributor if contributor else None,
            )
        except ValueError as error:
            self.add_error("epsilon", localized(str(error)))
        if self.cleaned_data["source"] == self.NUMBERS:
            self._take_numbers()
        return self.cleaned_data

    def upload(self) -> Dataset | None:
        return next((row for row in self.uploads if str(row.pk) == self.cleaned_data["source"]), None)

    def frequencies(self) -> Frequencies | None:
        if (upload := self.upload()) is not None:
            return gates.frequencies_of(upload)
        if self.numbers is not None:
            return self.numbers.frequencies()
        return comparison.synthetic_log() if self.cleaned_data["source"] == self.SYNTHETIC else None

    def _take_numbers(self) -> None:
        numbers = {name: self.cleaned_data.get(name) for name in ("records", "different_texts", "most_frequent")}
        given = {name: number for name, number in numbers.items() if number is not None}
        for name in numbers.keys() - given.keys():
            self.add_error(name, _("Give all three numbers."))
        if numbers.keys() == given.keys():
            try:
                self.numbers = PublicSource(**given)
            except ValueError as error:
                self.add_error("records", localized(str(error)))


class GateChoiceForm(forms.Form):
    gate_kind = forms.ChoiceField()
    gate_epsilon = DecimalMarkField()
    normalizer = forms.ChoiceField(required=False, choices=[(rule.value, rule.value) for rule in Normalizer])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kind = self.fields["gate_kind"]
        assert isinstance(kind, forms.ChoiceField)
        kind.choices = [(name, name) for name in gate_choices()]
        self.fields |= {name: _number(declared) for name, declared in own_gate_parameters().items()}

    def settings(self) -> dict[str, Any]:
        kind = self.cleaned_data["gate_kind"]
        rule = {"normalizer": self.cleaned_data["normalizer"]} if self.cleaned_data["normalizer"] else {}
        own = {each.name: self._own(each) for each in own_parameters(gate_choices()[kind])}
        return rule | {"gate_kind": kind, "gate_epsilon": self.cleaned_data["gate_epsilon"], **own}

    def _own(self, declared: Parameter) -> Any:
        sent = self.cleaned_data[declared.name]
        return declared.default if sent in (None, "") else sent


def _number(declared: Parameter) -> forms.Field:
    if declared.type is int:
        return forms.IntegerField(required=False, max_value=LARGEST)
    field = field_of(declared)
    field.required = False
    return field
