"""Simulations asked for on a page, and their use for a draft."""

import hashlib
import json
from dataclasses import asdict
from time import monotonic
from typing import Any, get_args

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.models import Job, Project, WorkState
from annotation.projects.services.configuring import configure_project
from annotation.work.services import attempts, jobs
from learner.errors import PlanOutdated
from learner.models.planning import PlanSimulation
from learner.simulation.rows import PlannedRows, PlanRow, planned_rows
from learner.simulation.setup import Setup, SimulatedData
from privacy.wording import as_message

# Part of every fingerprint: another way to simulate makes other results.
VERSION = 8
SEEDS = 5
# Steps of a stream draw noise in as many dimensions as there are weights, which takes a while.
STREAM_SEEDS = 3
# No further settings are begun after so long.
MOST_SECONDS = 300.0


def fingerprint_of(setup: Setup, epsilon: float) -> str:
    """Return the name under which results of a setup are kept."""
    described = json.dumps([VERSION, setup.as_json(), epsilon], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()


def start_simulation(
    *, project: Project | None, setup: Setup, epsilon: float, owner: AbstractBaseUser
) -> PlanSimulation:
    """Have a worker simulate a setup, unless that was done or is being done; without a project for one to come."""
    name = fingerprint_of(setup, epsilon)
    with transaction.atomic():
        found, created = PlanSimulation.objects.select_for_update(of=("self",)).get_or_create(
            fingerprint=name, defaults={"setup": setup.as_json(), "epsilon": epsilon}
        )
        lost = found.result is None and (found.job is None or found.job.state == WorkState.FAILED)
        if created or lost:
            found.job = jobs.open_job(project=project, kind=jobs.SIMULATE, owner=owner)
            found.save(update_fields=["job"])
    return found


def run_simulation(*, job_id: str) -> None:
    """Simulate and store the result."""
    job = Job.objects.get(pk=job_id)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        wanted = PlanSimulation.objects.filter(job=job).first()
        if wanted is None:
            attempts.fail_work(row=job, error=as_message("Another simulation took this one's place."))
            return
        result = _results(Setup.from_json(wanted.setup), lease)
        lease.check()
        with transaction.atomic():
            PlanSimulation.objects.filter(pk=wanted.pk).update(result=result)
            attempts.finish_work(row=job)


def _results(setup: Setup, lease: attempts.Lease) -> dict[str, Any]:
    """Return the accuracy at each release on each set of data, with privacy and without, and of other settings."""
    from learner.simulation.curves import simulated  # noqa: PLC0415  # slow import

    seeds = STREAM_SEEDS if setup.stream else SEEDS
    kinds = ("curves", "plain")
    wanted = [(kind, data) for kind in kinds for data in _data_of(setup)]
    steps = len(wanted) + len(setup.alternatives)
    found: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    for done, (kind, data) in enumerate(wanted):
        lease.report(progress_done=done, progress_total=steps)
        lease.check()
        points = simulated(setup, data, seeds=seeds, private=kind == "curves")
        found[kind][data] = [asdict(point) for point in points]
    return {"seeds": seeds, **found, "rows": _rows(setup, lease, seeds=seeds, done=len(wanted), steps=steps)}


def _rows(setup: Setup, lease: attempts.Lease, *, seeds: int, done: int, steps: int) -> list[dict[str, Any]]:
    """Return for each of the settings to try its last release on each set of data, as far as there is time for them."""
    from learner.simulation.curves import simulated  # noqa: PLC0415  # slow import

    begun = monotonic()
    found: list[dict[str, Any]] = []
    for place, row in enumerate(setup.alternatives, start=done):
        if found and monotonic() - begun > MOST_SECONDS:
            break
        points = {}
        for data in _data_of(setup):
            lease.report(progress_done=place, progress_total=steps)
            lease.check()
            points[data] = simulated(row, data, seeds=seeds)
        found.append({data: asdict(reached[-1]) for data, reached in points.items() if reached})
    return found


def _data_of(setup: Setup) -> list[SimulatedData]:
    """Return on what a setup is simulated; digits are ten classes."""
    return [data for data in get_args(SimulatedData) if data == "made_up" or setup.n_classes <= 10]


def use_row(*, project: Project, records: int, fingerprint: str, number: int, actor: AbstractBaseUser) -> Project:
    """Let a project have exactly the settings of a row that was tried for it."""
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
