"""Radio buttons that show what each choice entails."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Arrival, Oracle, PrivacyUnit

CardWords = str | Promise
CONSEQUENCES: Final[Mapping[str, CardWords]] = {
    Oracle.TRUSTED: _("They see whole records; everyone else sees only released models."),
    Oracle.CROWD: _("They see only texts that enough people said."),
    Arrival.POOL: _("Uploads are asked about in rounds; each model is paid for."),
    Arrival.STREAM: _("Each record is looked at once; the whole stream is paid for once."),
    PrivacyUnit.RECORD: _("Hides one record. A person with ten loses ten times as much."),
    PrivacyUnit.CONTRIBUTOR: _("Hides whether a person took part. Each text a person may give costs the gate again."),
}


class ChoiceCards(forms.RadioSelect):
    option_template_name = "annotation/choices/_card.html"
    consequences: Mapping[str, CardWords] = CONSEQUENCES

    def create_option(self, *args: Any, **options: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(*args, **options)
        means = f"{option['attrs'].get('id', option['name'])}_means"
        option |= {"consequence": self.consequences.get(str(option["value"]), ""), "means": means}
        if option["consequence"]:
            option["attrs"]["aria-describedby"] = means
        return option
