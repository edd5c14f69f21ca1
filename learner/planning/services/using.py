"""Applying one of the settings that a plan tried, by the one way in which a configuration changes."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.models import Project
from annotation.projects.services.configuring import configure_project
from learner.errors import PlanOutdated
from learner.models.planning import PlanSimulation
from learner.planning.rows import PlannedRows, PlanRow, planned_rows
from learner.planning.services.simulating import fingerprint_of


def use_row(*, project: Project, records: int, fingerprint: str, number: int, actor: AbstractBaseUser) -> Project:
    """Let a project have exactly the settings of a row that was tried for it.

    Raises `PlanOutdated` where the plan is another one by now, and what `configure_project` raises.
    """
    with transaction.atomic():
        # Nobody changes the settings between the look at them and the change.
        locked = Project.objects.select_for_update().get(pk=project.pk)
        row = tried_row(planned_rows(locked, records), fingerprint=fingerprint, number=number)
        return configure_project(project=locked, changes=row.changes, actor=actor)


def tried_row(planned: PlannedRows, *, fingerprint: str, number: int) -> PlanRow:
    """Return a row that a simulation known by `fingerprint` has tried; raises `PlanOutdated` where it tried others."""
    if planned.why_not:
        raise PlanOutdated(planned.why_not)
    if fingerprint != fingerprint_of(planned.setup, planned.epsilon):
        raise PlanOutdated("The settings changed since this was simulated, so the row is no longer what it was.")
    found = PlanSimulation.objects.filter(fingerprint=fingerprint, result__isnull=False).first()
    tried = 0 if found is None or found.result is None else len(found.result["rows"])
    if not 1 <= number < tried:
        raise PlanOutdated("No such row was simulated.")
    return planned.rows[number]
