"""Forms of members, groups, invitations, crowd links, tokens and mails."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.validators import RegexValidator
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from annotation.models import Role
from annotation.models.joining import Platform
from annotation.people.services.crowd_links import TOKEN, signing_hindrance
from annotation.wording import localized
from annotation.work.services.tokens import Scope


class MemberForm(forms.Form):
    username = forms.CharField(max_length=150, label=_("User name"))
    role = forms.ChoiceField(choices=Role.choices, label=_("Role"))

    def clean_username(self) -> User:
        user = User.objects.filter(username=self.cleaned_data["username"], is_active=True).first()
        if user is None:
            raise forms.ValidationError(_("No user has this name."))
        return user


class InvitationForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices, label=_("Role"))
    maximum_uses = forms.IntegerField(min_value=1, max_value=1000, initial=1, label=_("People at most"))
    days = forms.IntegerField(min_value=1, max_value=90, initial=7, label=_("Days until it ends"))
    note = forms.CharField(required=False, max_length=80, label=_("Note"))
    address = forms.EmailField(
        required=False,
        label=_("Send it by mail to"),
        help_text=_("Forgotten once the mail is sent."),
    )
    language = forms.ChoiceField(choices=settings.LANGUAGES, required=False, label=_("Language of the mails"))

    def __init__(self, *args: Any, by_mail: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["language"].initial = get_language()
        if not by_mail:
            del self.fields["address"], self.fields["language"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("address") and (cleaned.get("maximum_uses") or 1) > 1:
            self.add_error("maximum_uses", _("A mailed invitation is for one person."))
        return cleaned

    def values(self) -> dict[str, Any]:
        cleaned = dict(self.cleaned_data)
        cleaned["lifetime"] = timedelta(days=cleaned.pop("days"))
        language = cleaned.pop("language", "") or settings.LANGUAGE_CODE
        if address := cleaned.pop("address", ""):
            cleaned |= {"address": address, "language": language}
        return cleaned


class CrowdLinkForm(forms.Form):
    platform = forms.ChoiceField(choices=Platform.choices, label=_("Platform"))
    study = forms.RegexField(
        r"^[A-Za-z0-9_-]*$",
        required=False,
        max_length=64,
        label=_("Study id or HIT id"),
        help_text=_("Empty: any study."),
    )
    answers_wanted = forms.IntegerField(
        min_value=1, max_value=10_000, initial=20, label=_("Answers until the completion code is shown")
    )
    maximum_participants = forms.IntegerField(min_value=1, max_value=100_000, initial=50, label=_("People at most"))
    days = forms.IntegerField(min_value=1, max_value=90, initial=14, label=_("Days until it ends"))
    signed = forms.BooleanField(
        required=False,
        label=_("Only who Prolific signs for"),
        help_text=_("Switch on the secured address in the Prolific study too."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("signed") and (hindrance := signing_hindrance(cleaned.get("platform", ""))):
            self.add_error("signed", localized(hindrance))
        return cleaned

    def values(self) -> dict[str, Any]:
        cleaned = dict(self.cleaned_data)
        return cleaned | {"lifetime": timedelta(days=cleaned.pop("days"))}


PARAMETERS = {
    Platform.PROLIFIC: {"pid": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"},
    Platform.MECHANICAL_TURK: {"pid": "workerId", "study": "hitId", "session": "assignmentId"},
}
# What each platform fills in by itself when it stands in the address.
PLACEHOLDERS = {
    Platform.PROLIFIC: {"pid": "{{%PROLIFIC_PID%}}", "study": "{{%STUDY_ID%}}", "session": "{{%SESSION_ID%}}"},
    Platform.MECHANICAL_TURK: {"pid": "${workerId}", "study": "${hitId}", "session": "${assignmentId}"},
}
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
ID = RegexValidator(r"^[A-Za-z0-9_-]{1,64}$")


def filled_in(platform: str) -> str:
    names, filled = PARAMETERS[Platform(platform)], PLACEHOLDERS[Platform(platform)]
    return "?" + "&".join(f"{name}={filled[field]}" for field, name in names.items())


class ArrivalForm(forms.Form):
    pid = forms.CharField(validators=[ID])
    study = forms.CharField(required=False, validators=[ID])
    session = forms.CharField(required=False, validators=[ID])

    def __init__(self, query: Mapping[str, str], *, platform: str, signature: str = "") -> None:
        self.names, self.signature = PARAMETERS[Platform(platform)], signature
        super().__init__({field: query.get(name, "") for field, name in self.names.items()})

    @property
    def is_preview(self) -> bool:
        """Say whether the platform only shows the task to somebody who has not taken it."""
        return self.data.get("session") == PREVIEW

    def parameters(self) -> dict[str, str]:
        signed = {TOKEN: self.signature} if self.signature else {}
        return {name: self.data[field] for field, name in self.names.items()} | signed


class GroupRoleForm(forms.Form):
    group = forms.ModelChoiceField(Group.objects.order_by("name"), label=_("Group"))
    role = forms.ChoiceField(choices=Role.choices, label=_("Role"))

    def __init__(self, data: Any = None) -> None:
        # Another form of the page asks for a role, too.
        super().__init__(data, auto_id="id_given_%s")


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, label=_("Name"))
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope], widget=forms.CheckboxSelectMultiple, label=_("May do")
    )
    days = forms.IntegerField(min_value=1, max_value=366, initial=90, label=_("Days until it ends"))

    def lifetime(self) -> timedelta:
        return timedelta(days=self.cleaned_data["days"])


class MailForm(forms.Form):
    wanted = forms.BooleanField(required=False, label=_("Send me mail about my projects"))
    language = forms.ChoiceField(choices=settings.LANGUAGES, label=_("Language of the mails"))
