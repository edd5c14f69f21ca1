"""The demonstration's people and projects in the database, what happens to them, and what came of it."""

import io
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth.models import User
from django.core.files import File

from annotation.data.services import datasets
from annotation.models import (
    Dataset,
    DatasetRole,
    Job,
    Oracle,
    Project,
    ProjectState,
    Query,
    QueryState,
    Role,
    WorkState,
)
from annotation.people.services import members
from annotation.projects.services import configuring, opening
from annotation.work.services import tokens
from dpal_site.demo.plans import ProjectPlan, UploadFile
from learner.models import ModelRelease, Round
from learner.pools import records
from learner.pools.selectors import guarantee_accounts
from learner.rounds.next_step import ProjectStatus, Step, project_status
from learner.rounds.services import selection
from privacy.ledger.models import SETTLEMENTS, EntryKind, LedgerEntry

ANNOTATORS = ("annotator", "annotator-2", "annotator-3")
ADMIN = "admin"
ENGINEER = "engineer"
DEAD_ENDS = (Step.FEW_LABELS, Step.STUCK, Step.PAUSED)


@dataclass(frozen=True, slots=True)
class Login:
    user: User
    password: str


@dataclass(slots=True)
class Stage:
    logins: dict[str, Login]
    token: str
    opened: list[tuple[ProjectPlan, Project]] = field(default_factory=list)


def set_stage(plans: Sequence[ProjectPlan]) -> Stage:
    logins = {name: _login(name) for name in (*ANNOTATORS, ADMIN, ENGINEER)}
    admin = logins[ADMIN].user
    User.objects.filter(pk=admin.pk).update(is_staff=True, is_superuser=True)
    for earlier in Project.objects.filter(created_by=admin, state=ProjectState.ACTIVE):
        if project_status(earlier).step != Step.FINISHED:
            opening.pause_project(project=earlier)
    _, token = tokens.create_token(
        user=logins[ENGINEER].user, name="demo", scopes=["models:read"], lifetime=timedelta(days=30)
    )
    stage = Stage(logins, token)
    stage.opened += [(plan, _open(plan, logins)) for plan in plans]
    return stage


def _login(name: str) -> Login:
    user, _ = User.objects.get_or_create(username=name)
    password = secrets.token_urlsafe(9)
    user.set_password(password)
    user.save(update_fields=["password"])
    return Login(user, password)


def _open(plan: ProjectPlan, logins: dict[str, Login]) -> Project:
    project = opening.create_project(
        name=plan.name,
        preset=plan.preset,
        owner=logins[ADMIN].user,
        data_kind=plan.data_kind,
        classes=list(plan.classes),
        question=plan.question,
        maximum_releases=plan.releases,
        **plan.settings,
    )
    for name in ANNOTATORS:
        members.add_member(project=project, user=logins[name].user, role=Role.ANNOTATOR)
    members.add_member(project=project, user=logins[ENGINEER].user, role=Role.ENGINEER)
    # The test set first, so that no release goes unmeasured on its page.
    _upload(project, plan.test, role=DatasetRole.PUBLIC_TEST, by=logins[ADMIN].user)
    _upload(project, plan.pool, role=DatasetRole.POOL, by=logins[ADMIN].user)
    return project


def _upload(project: Project, upload: UploadFile, *, role: str, by: User) -> None:
    datasets.receive_upload(
        project=project,
        file=File(io.BytesIO(upload.body), name=upload.name),
        name=upload.name,
        role=role,
        mapping=upload.mapping,
        uploaded_by=by,
        confirm_few=True,
    )


def plan_another_release(stage: Stage) -> None:
    for plan, project in stage.opened:
        if project.oracle == Oracle.CROWD:
            configuring.configure_project(
                project=project, changes={"maximum_releases": plan.releases + 1}, actor=project.created_by
            )


def close_answered_blocks(stage: Stage) -> None:
    for _plan, project in stage.opened:
        block = records.open_block(project)
        waiting = Query.objects.filter(project=project, state=QueryState.OPEN)
        if block is not None and not waiting.exists():
            selection.close_block(project=project)


class News:
    def __init__(self, stage: Stage) -> None:
        self._projects = [project for _plan, project in stage.opened]
        self._reported: set[tuple[str, object]] = set()

    def __iter__(self) -> Iterator[str]:
        for project in self._projects:
            for key, sentence in self._happened(project):
                if key not in self._reported:
                    self._reported.add(key)
                    yield f"{project.name}: {sentence}"

    def _happened(self, project: Project) -> Iterator[tuple[tuple[str, object], str]]:
        for dataset in Dataset.objects.filter(project=project, job__state=WorkState.DONE).order_by("pk"):
            yield ("upload", dataset.pk), f"{dataset.row_count:,} rows of {dataset.name} read"
        for dataset in Dataset.objects.filter(project=project, gate_runs__passed_count__isnull=False):
            passed = dataset.gate_runs.get(passed_count__isnull=False).passed_count
            yield ("gate", dataset.pk), f"{passed:,} texts passed the gate"
        for job in Job.objects.filter(project=project, state=WorkState.FAILED):
            yield ("job", job.pk), f"{job.kind} failed: {job.error}"
        for chosen in Round.objects.filter(project=project, finished_at__isnull=False).order_by("number"):
            how = f"{chosen.selected} questions by {chosen.strategy}" if chosen.selected else chosen.error
            yield ("round", chosen.pk), f"round {chosen.number}, {how}"
        for release in ModelRelease.objects.filter(project=project).order_by("version"):
            if release.evaluations.exists():
                told = f"release {release.version}, {release.labels_used:,} labels, {share_right(release):.1%} right"
                yield ("release", release.pk), told


def share_right(release: ModelRelease) -> float:
    measured = release.evaluations.order_by("pk")[0]
    return measured.correct / measured.examples


def is_finished(stage: Stage) -> bool:
    return all(_has_all_releases(project, plan.releases) for plan, project in stage.opened)


def _has_all_releases(project: Project, wanted: int) -> bool:
    measured = [release.evaluations.exists() for release in ModelRelease.objects.filter(project=project)]
    return bool(measured) and all(measured) and (len(measured) >= wanted or _cannot_pay(project) is not None)


def _cannot_pay(project: Project) -> ProjectStatus | None:
    status = project_status(Project.objects.get(pk=project.pk))
    return status if status.step == Step.CANNOT_PAY else None


def dead_end(stage: Stage) -> str:
    for _plan, project in stage.opened:
        if Job.objects.filter(project=project, state=WorkState.FAILED).exists():
            return f"{project.name}: an upload or its gate has failed"
        status = project_status(Project.objects.get(pk=project.pk))
        unpaid = status.step == Step.CANNOT_PAY and not ModelRelease.objects.filter(project=project).exists()
        if unpaid or status.step in DEAD_ENDS:
            return f"{project.name}: {status.sentence}"
    return ""


def words_of_early_ends(stage: Stage) -> list[str]:
    found = []
    for plan, project in stage.opened:
        released = ModelRelease.objects.filter(project=project).count()
        if released < plan.releases and (status := _cannot_pay(project)) is not None:
            found.append(f"{project.name} ended with release {released}: {status.sentence}")
    return found


def open_reservations(stage: Stage) -> int:
    accounts = [account.pk for _plan, project in stage.opened for account in guarantee_accounts(project)]
    reserved = LedgerEntry.objects.filter(account__in=accounts, kind=EntryKind.RESERVE)
    return reserved.exclude(children__kind__in=SETTLEMENTS).count()
