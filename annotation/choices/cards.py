"""Radio buttons that show what each choice entails."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Arrival, Oracle, PrivacyUnit

CardWords = str | Promise
CONSEQUENCES: Final[Mapping[str, CardWords]] = {
    Oracle.TRUSTED: _(
        "They see whole records, and the world sees nothing but the released models. The budget pays for choosing "
        "questions and for every training."
    ),
    Oracle.CROWD: _(
        "They see only texts that enough people said. The gate pays for that once; what was answered is protected by a "
        "budget of its own."
    ),
    Arrival.POOL: _("Uploads wait and are asked about in rounds. Each model is paid for."),
    Arrival.STREAM: _("Each record is looked at once when it comes. The whole stream is paid for once."),
    PrivacyUnit.RECORD: _("Hides whether one record is there. Who has ten of them loses ten times as much."),
    PrivacyUnit.CONTRIBUTOR: _(
        "Hides whether somebody took part at all. The stronger promise: each text a person may give costs the gate "
        "once more."
    ),
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
