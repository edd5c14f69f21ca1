"""Simulations asked for on a page."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.models import Job, Project, WorkState
from annotation.models.imports import OpeningDraft
from annotation.work.services import attempts, jobs
from learner.models.planning import PlanSimulation
from learner.simulation.setup import Setup
from privacy.wording import as_message

if TYPE_CHECKING:
    from learner.simulation.curves import PublicRows, Source
    from learner.simulation.spans import PublicSpans

# Part of every fingerprint: another way to simulate makes other results.
VERSION = 11
SEEDS = 5
# Steps of a stream draw noise in as many dimensions as there are weights, and chains of spans are long to follow.
FEW_SEEDS = 3


def fingerprint_of(setup: Setup, epsilon: float, public: str = "") -> str:
    """Return the name of a simulation; `public` says which labelled file it runs on, empty for data about nobody."""
    described = json.dumps([VERSION, setup.as_json(), epsilon, public], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()


def start_simulation(
    *,
    project: Project | None,
    setup: Setup,
    epsilon: float,
    owner: AbstractBaseUser,
    draft: OpeningDraft | None = None,
    public: str = "",
) -> PlanSimulation:
    """Have a worker simulate a setup, unless that was done or is being done; without a project for one to come."""
    name = fingerprint_of(setup, epsilon, public)
    described = {"setup": setup.as_json(), "epsilon": epsilon}
    if public:
        described |= {"project": project, "draft": draft}
    with transaction.atomic():
        found, created = PlanSimulation.objects.select_for_update(of=("self",)).get_or_create(
            fingerprint=name, defaults=described
        )
        lost = found.result is None and (found.job is None or found.job.state == WorkState.FAILED)
        if created or lost:
            found.job = jobs.open_job(project=project, kind=jobs.SIMULATE, owner=owner)
            found.save(update_fields=["job"])
    return found


def no_rows(_simulation: PlanSimulation) -> None:
    return None


def run_simulation(
    *, job_id: str, read_public: "Callable[[PlanSimulation], PublicRows | PublicSpans | None]" = no_rows
) -> None:
    job = Job.objects.get(pk=job_id)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        wanted = PlanSimulation.objects.filter(job=job).first()
        if wanted is None:
            attempts.fail_work(row=job, error=as_message("A newer run replaced this one."))
            return
        result = _results(Setup.from_json(wanted.setup), lease, read_public(wanted))
        lease.check()
        with transaction.atomic():
            PlanSimulation.objects.filter(pk=wanted.pk).update(result=result)
            attempts.finish_work(row=job)


def _results(setup: Setup, lease: attempts.Lease, public: "PublicRows | PublicSpans | None") -> dict[str, Any]:
    """Return the accuracy at each release on each set of data, with privacy and without, and of what costs nothing."""
    from learner.simulation.curves import pool_rows, references, simulated  # noqa: PLC0415  # slow import

    seeds = FEW_SEEDS if setup.stream or setup.finds_spans else SEEDS
    sources: dict[str, Source] = {"public": public} if public is not None else {data: data for data in _data_of(setup)}
    wanted = [(kind, data) for kind in ("curves", "plain") for data in sources]
    found: dict[str, Any] = {"seeds": seeds, "curves": {}, "plain": {}, "references": {}}
    for done, (kind, data) in enumerate(wanted):
        lease.report(progress_done=done, progress_total=len(wanted))
        lease.check()
        points = simulated(setup, sources[data], seeds=seeds, private=kind == "curves")
        most = math.inf if public is None else pool_rows(public)
        found[kind][data] = [asdict(point) for point in points if point.labels <= most]
        found["references"][data] = references(sources[data], setup)
    return found


def _data_of(setup: Setup) -> list[Literal["digits", "made_up"]]:
    """Return on what a setup is simulated where no public file is; digits are ten classes, and nothing has spans."""
    if setup.finds_spans:
        return []
    return ["digits", "made_up"] if setup.n_classes <= 10 else ["made_up"]
