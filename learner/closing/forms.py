"""What a manager says before a project is deleted."""

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Project


class DeletionForm(forms.Form):
    """What to keep of the releases, and the project's short name as a confirmation."""

    releases = forms.ChoiceField(
        label=gettext_lazy("Released models"),
        choices=[
            ("keep", gettext_lazy("keep them: engineers and managers go on reading and downloading them")),
            ("bury", gettext_lazy("delete their files; version, digests, guarantee and origin stay")),
        ],
        widget=forms.RadioSelect,
        initial="keep",
    )
    typed = forms.CharField(
        max_length=60,
        label=gettext_lazy("Short name of the project"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: object = None, *, project: Project) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        self.project = project
        self.fields["typed"].help_text = _("Type %(slug)s, so that nobody deletes another one.") % {
            "slug": project.slug
        }

    def clean_typed(self) -> str:
        """Refuse another project's name."""
        typed = str(self.cleaned_data["typed"]).strip()
        if typed != self.project.slug:
            raise forms.ValidationError(_("This is not the project's short name."))
        return typed
