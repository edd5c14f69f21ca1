"""The form that chooses what a project's releases are shown beside."""

from typing import Any

from django import forms
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from annotation.models import Project, Role, Selection
from annotation.selectors import projects_of


class ProjectField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


class ComparisonForm(forms.Form):
    compared_with = ProjectField(
        queryset=Project.objects.none(),
        required=False,
        label=_("Compare with random choice"),
        help_text=_("Same classes, same ε, random choice of questions."),
    )

    def __init__(self, data: Any = None, *, project: Project, person: AbstractBaseUser) -> None:
        super().__init__(data, initial={"compared_with": project.compared_with_id})
        mine = projects_of(person, roles=(Role.MANAGER,)).exclude(pk=project.pk)
        field = self.fields["compared_with"]
        assert isinstance(field, forms.ModelChoiceField)
        at_random = mine.filter(configuration__document__selection__selection=Selection.RANDOM)
        field.queryset = at_random.filter(classes=project.classes).order_by("name")

    @property
    def choices(self) -> QuerySet[Project]:
        field = self.fields["compared_with"]
        assert isinstance(field, forms.ModelChoiceField)
        assert field.queryset is not None
        return field.queryset

    @property
    def has_choice(self) -> bool:
        return self.choices.exists()
