"""Forms about groups of people."""

import re
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.models import Role
from annotation.models.groups import PeopleGroup
from annotation.people.forms.joining import InvitationForm

MOST_AT_ONCE = 500
NAMED_IN_ERROR = 5


class GroupForm(forms.Form):
    """A group's name."""

    name = forms.CharField(max_length=80, label=_("Name of the group"))


class GroupPeopleForm(forms.Form):
    """People who have accounts here, many at once."""

    people = forms.CharField(
        label=_("User names or email addresses"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocapitalize": "none"}),
        help_text=_("One on each line. An address counts once its owner has confirmed it."),
    )

    def clean_people(self) -> list[User]:
        """Find everybody, or name who is not found; an address that two accounts share is nobody's."""
        named = list(dict.fromkeys(re.split(r"[\s,;]+", self.cleaned_data["people"].strip())))
        if len(named) > MOST_AT_ONCE:
            raise forms.ValidationError(_("At most %(most)s people at once.") % {"most": MOST_AT_ONCE})
        found = {name: _person(name) for name in named}
        unknown = [name for name, person in found.items() if person is None]
        if unknown:
            listed = ", ".join(unknown[:NAMED_IN_ERROR]) + (", …" if len(unknown) > NAMED_IN_ERROR else "")
            raise forms.ValidationError(gettext("Nobody has an account under: %(names)s.") % {"names": listed})
        return [person for person in found.values() if person is not None]


def _person(name: str) -> User | None:
    confirmed = Q(emailaddress__email__iexact=name, emailaddress__verified=True)
    # Accounts that an administrator made have an address that nobody confirmed, and nobody else can claim.
    given = Q(email__iexact=name, emailaddress__isnull=True)
    people = User.objects.filter(is_active=True)
    found = people.filter(confirmed | given).distinct() if "@" in name else people.none()
    named = people.filter(username=name)
    matching = list(named[:1]) or list(found[:2])
    return matching[0] if len(matching) == 1 else None


class GroupRoleForm(forms.Form):
    """A group, and what everybody in it may do in a project."""

    group = forms.ModelChoiceField(PeopleGroup.objects.order_by("name"), label=_("Group"))
    role = forms.ChoiceField(choices=Role.choices, label=_("Role of everybody in it"))

    def __init__(self, data: Any = None) -> None:
        # Another form of the page asks for a role, too.
        super().__init__(data, auto_id="id_given_%s")


class GroupInvitationForm(InvitationForm):
    """A new invitation into a group, whose roles are the group's."""

    role = None  # type: ignore[assignment]  # Django's way to leave a field of the parent out
