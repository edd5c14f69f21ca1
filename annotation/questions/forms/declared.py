"""A form of what one declaration says of every project: its fields, their ranges and rules are the declared ones."""

from collections.abc import Collection
from typing import Any, ClassVar

from django import forms

from annotation.choices.form_fields import field_of
from annotation.choices.secrecy import hides_selection
from annotation.models import Project
from annotation.wording import localized
from privacy.choices import Choice


class DeclaredForm(forms.Form):
    """Settings of a project as they stand; a form of one declaration names it."""

    choice: ClassVar[type[Choice]]
    # Not open where the choice of questions is secret, and why.
    closed_in_secret: ClassVar[Collection[str]] = ()
    why_closed: ClassVar[Any] = ""

    def __init__(self, data: Any = None, *, project: Project) -> None:
        declared = {each.name: each for each in self.choice.parameters()}
        super().__init__(data, initial={name: getattr(project, name) for name in declared})
        self.project = project
        self.fields = {name: field_of(each) for name, each in declared.items()}
        if hides_selection(project.settings):
            for name in self.closed_in_secret:
                self.fields[name].disabled = True
                self.fields[name].help_text = self.why_closed

    def clean(self) -> dict[str, Any]:
        """Refuse at its field what the settings break together."""
        broken = self.choice.broken_by({**self.project.settings, **self.cleaned_data})
        for name, rule in broken.items():
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, localized(rule))
        return self.cleaned_data
