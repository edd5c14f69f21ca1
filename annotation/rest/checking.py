"""What a form of a page refuses, as a refusal of a route: the same rules, in English as the interface speaks."""

from typing import Any

from django.forms import BaseForm
from django.utils.translation import override

from annotation.errors import InvalidConfiguration
from privacy.wording import as_message, joined_messages


def checked(form: BaseForm) -> dict[str, Any]:
    """Return what a form makes of a request; `InvalidConfiguration` names each field and the rule it breaks."""
    with override("en"):
        if form.is_valid():
            return form.cleaned_data
        wrong = [
            str(error) if name == "__all__" else as_message("{field}: {reason}", field=name, reason=str(error))
            for name, errors in form.errors.items()
            for error in errors
        ]
    raise InvalidConfiguration(joined_messages("; ", wrong))
