"""Form that gives a group a role in a project."""

from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _

from annotation.models import Role


class GroupRoleForm(forms.Form):
    """A group, and the role of its people in a project."""

    group = forms.ModelChoiceField(Group.objects.order_by("name"), label=_("Group"))
    role = forms.ChoiceField(choices=Role.choices, label=_("Role of everybody in it"))

    def __init__(self, data: Any = None) -> None:
        # Another form of the page asks for a role, too.
        super().__init__(data, auto_id="id_given_%s")
