"""A further class for a project that people work in."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.choices.class_changes import (
    FIELDS,
    NOT_BEFOREHAND,
    FurtherClass,
    broken_class,
    grown_settings,
    growth_hindrance,
)
from annotation.choices.configuration import frozen_settings
from annotation.choices.refusals import refuse_broken
from annotation.errors import InvalidConfiguration
from annotation.models import Project
from annotation.projects.services import configuring


def hindrance_of(project: Project) -> str:
    """Say why a project gets no further class, empty where it may; before anything rests on them its form says so."""
    return growth_hindrance(project.settings) if "classes" in frozen_settings(project) else ""


def add_class(*, project: Project, further: FurtherClass, known_beforehand: bool, actor: AbstractBaseUser) -> Project:
    """Store a configuration in which the project has one class more, behind all others.

    Answers keep the place of their class, and what was released keeps its classes. Raises `InvalidConfiguration` naming
    each field and the rule it breaks; nothing is stored then.
    """
    with transaction.atomic():
        # Two who add at once add one after the other.
        locked = Project.objects.select_for_update().get(pk=project.pk)
        broken = broken_class(locked.classes, further)
        if rule := hindrance_of(locked):
            broken["name"] = rule
        elif not known_beforehand:
            broken["known_beforehand"] = NOT_BEFOREHAND
        refuse_broken(broken)
        try:
            changes = grown_settings(locked.settings, further)
            return configuring.configure_project(project=locked, changes=changes, actor=actor)
        except InvalidConfiguration as error:
            refuse_broken({FIELDS.get(name, name): rule for name, rule in error.broken.items()})
            raise
