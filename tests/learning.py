"""Projects with real pools, and the people and workers that move them, for tests of the learner."""

import io
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from django.contrib.auth.models import User
from django.core.files import File

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, DatasetRole, Membership, Project, Query, Role, WorkState
from annotation.projects.services import opening
from annotation.questions.services import labels, queue
from learner.models import Evaluation, ModelRelease, Round, TrainingRun
from learner.pools import records
from learner.releases.services import versions
from learner.rounds.services import loop, selection, training
from privacy.ledger.models import SETTLEMENTS, EntryKind, LedgerEntry
from tests.factories import make_user, receive_upload
from tests.in_process import reading_here
from tests.owning import without_rules

CLASSES = ["fruit", "tool"]
# A crowd's answers that every training pays for anew, instead of the preset's randomised ones.
PAID_EACH_TRAINING: dict[str, Any] = {
    "selection": "uncertainty",
    "repeat_votes": True,
    "features": "standard",
    "estimator": "logistic",
    "label_randomizer": "",
}
_numbers = count(1)
FRUIT = ("apple", "pear", "plum", "grape", "melon", "peach", "lemon", "cherry")
TOOLS = ("hammer", "saw", "drill", "wrench", "file", "pliers", "chisel", "plane")


def truth_of(text: str) -> int:
    """Return the class of a sentence: whether it names a tool."""
    return int(any(word in TOOLS for word in text.split()))


def sentences(number: int, *, seed: int = 1) -> list[str]:
    """Return sentences about fruit and tools, half of each."""
    rng = np.random.default_rng(seed)
    words = [rng.choice(FRUIT if place % 2 else TOOLS, size=3) for place in range(number)]
    return [f"{' '.join(three)} {place}" for place, three in enumerate(words)]


def open_trusted(owner: User, **settings: Any) -> Project:
    """Open a trusted text project that three trainings cannot exhaust."""
    values = {
        "selection": "top_c",
        "round_size": 12,
        "labels_per_release": 12,
        "feature_dimension": 16,
        "training_epsilon": 2.0,
        "selection_epsilon": 0.25,
        "pool_epsilon": 20.0,
        "maximum_releases": 3,
        "features": "standard",
        "estimator": "logistic",
        "training_delta": 0.0,
        "pool_delta": 0.0,
    }
    return _open("pool-experts", owner, values | settings)


def open_secret(owner: User, **settings: Any) -> Project:
    """Open a trusted text project that labels secret blocks of 20, 30 and 45 % of its pool."""
    values = {"selection": "secret_sample", "selection_rate": 0.2, "block_growth": 1.5, "block_hours": 24}
    return open_trusted(owner, **(values | settings))


def open_crowd(owner: User, **settings: Any) -> Project:
    """Open a crowd project whose gate lets through what five contributors in a sample say."""
    values = {
        "gate_kind": "k_anonymity",
        "gate_k": 5,
        "gate_sampling_rate": 0.3,
        "gate_epsilon": 1.0,
        "texts_per_contributor": 1,
        "round_size": 8,
        "labels_per_release": 8,
        "overlap": 1,
        "feature_dimension": 16,
        "training_epsilon": 2.0,
        "pool_epsilon": 3.0,
        "pool_delta": 0.1,
        "labels_epsilon": 20.0,
        "maximum_releases": 3,
        **PAID_EACH_TRAINING,
    }
    return _open("voice-crowd", owner, values | settings)


def open_images(owner: User, **settings: Any) -> Project:
    """Open a trusted project of images of 4 by 4 pixels, pooled to four features."""
    values = {"image_height": 4, "image_width": 4, "feature_dimension": 4}
    return _open("pool-experts", owner, values | settings, data_kind="image")


def open_table(owner: User, columns: list[dict[str, Any]]) -> Project:
    """Open a project of experts over a table."""
    return _open("pool-experts", owner, {"columns": columns}, data_kind="table")


def _open(preset: str, owner: User, settings: dict[str, Any], *, data_kind: str = "text") -> Project:
    return opening.create_project(
        name=f"{preset} {next(_numbers)}",
        preset=preset,
        owner=owner,
        data_kind=data_kind,
        question="Fruit or tool?",
        **{"classes": CLASSES} | settings,
    )


def upload(
    project: Project,
    rows: Sequence[Sequence[str]],
    columns: Sequence[str],
    *,
    role: str = "pool",
    start_epsilon: float | None = None,
) -> Dataset:
    """Upload a small CSV and read it at once in this process; a crowd project's pool passes the gate, too."""
    lines = [",".join(columns), *(",".join(row) for row in rows)]
    body = File(io.BytesIO("\n".join(lines).encode()), name="rows.csv")
    mapping = {name: name for name in columns if name in ("text", "label", "contributor")}
    with reading_here():
        dataset = receive_upload(
            project=project,
            file=body,
            name="rows.csv",
            role=role,
            mapping=mapping,
            start_epsilon=start_epsilon,
            send=False,
        )
        datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    if project.oracle == "crowd" and role == DatasetRole.POOL:
        gates.run_gate(job_id=dataset.gate_job_id)
    return dataset


def fill_trusted(project: Project, *, number: int | None = None) -> None:
    """Upload a pool of sentences, 80 or 120, and a public test set of others.

    120 where blocks are secret: one of 20 % is empty with 3e-12.
    """
    number = number or (120 if project.selection == "secret_sample" else 80)
    upload(project, [[text] for text in sentences(number)], ["text"])
    tested = sentences(60, seed=2)
    upload(project, [[text, CLASSES[truth_of(text)]] for text in tested], ["text", "label"], role="public_test")


def fill_crowd(project: Project, *, texts: int = 40, speakers: int = 120) -> None:
    """Upload a log in which each of `texts` sentences is said by `speakers` people, and a public test set.

    One of 40 texts does not pass the gate of `open_crowd` with 3e-12.
    """
    said = sentences(texts)
    rows = [
        [text, f"person {place * speakers + person}"] for place, text in enumerate(said) for person in range(speakers)
    ]
    upload(project, rows, ["text", "contributor"])
    tested = sentences(60, seed=2)
    upload(project, [[text, CLASSES[truth_of(text)]] for text in tested], ["text", "label"], role="public_test")


def label_everything(
    project: Project, annotator: User, *, at_most: int = 10**9, truth: Callable[[str], int] = truth_of
) -> int:
    """Answer every open question truthfully and return how many those were."""
    Membership.objects.get_or_create(project=project, user=annotator, role=Role.ANNOTATOR)
    answered = 0
    while answered < at_most and (assignment := queue.claim_next(project=project, user=annotator)) is not None:
        labels.submit_label(assignment=assignment, choice=truth(shown_text(assignment.query)))
        answered += 1
    return answered


def shown_text(query: Query) -> str:
    """Return the text an annotator sees."""
    return query.text if query.record is None else query.record.text or ""


def work_off(project: Project, *, version: int | None = None) -> None:
    """Do what a worker would, advance and run what waits, until nothing is due or `version` is released."""
    while not ModelRelease.objects.filter(project=project, version=version).exists():
        loop.advance_project(project_id=project.pk)
        waiting = Round.objects.filter(project=project, state=WorkState.WAITING).first()
        run = TrainingRun.objects.filter(project=project, state=WorkState.WAITING).first()
        if waiting is not None:
            loop.run_round(round_id=waiting.pk)
        elif run is not None:
            training.train_model(run_id=str(run.pk))
        else:
            return


def run_to_release(
    project: Project, annotator: User, *, version: int, truth: Callable[[str], int] = truth_of
) -> ModelRelease:
    """Label and work until a version is released, and not a step further."""
    for _ in range(4 * version):
        work_off(project, version=version)
        released = ModelRelease.objects.filter(project=project, version=version).first()
        if released is not None:
            project.refresh_from_db()
            # Models of a few labels may lose to a constant, and what is tested is mostly something else.
            for each in ModelRelease.objects.filter(project=project):
                versions.endorse_release(release=each, reason="a test's model", actor=project.created_by)
            return released
        label_everything(project, annotator, truth=truth)
        if records.open_block(project) is not None:
            selection.close_block(project=project)
    raise AssertionError(f"version {version} was not released")


def filled_experts(**settings: Any) -> Project:
    """Build a project of experts with a pool; its manager is called manager."""
    project = open_trusted(make_user("manager"), **settings)
    fill_trusted(project)
    return project


def released_experts(version: int = 1, **settings: Any) -> Project:
    """Build a project of experts, who are one and called ann, with so many releases."""
    project = filled_experts(**settings)
    run_to_release(project, make_user("ann"), version=version)
    return project


def begin_experts(remembered: Callable[..., Project], *, released: bool = False) -> Project:
    """Return the project of experts a test begins with: a pool, or a release as well."""
    if released:
        return remembered("a release of experts", released_experts)
    return remembered("a pool of experts", filled_experts)


def beaten_on_another_set(release: ModelRelease) -> None:
    """Measure a release on one more public test set, on which a constant is always right and the release never."""
    release.endorsement.delete()
    rows = [[text, CLASSES[truth_of(text)]] for text in sentences(10, seed=9)]
    upload(release.project, rows, ["text", "label"], role="public_test")
    other = Dataset.objects.filter(project=release.project, role="public_test").latest("pk")
    Evaluation.objects.create(release=release, dataset=other, examples=1000, correct=0, constant_correct=1000)


def open_reservations(project: Project) -> int:
    """Count the reservations nobody settled."""
    accounts = [account for account in (project.pool_account, project.labels_account) if account is not None]
    reserved = LedgerEntry.objects.filter(account__in=accounts, kind=EntryKind.RESERVE)
    return reserved.exclude(children__kind__in=SETTLEMENTS).count()


def entries(project: Project, *kinds: str) -> list[LedgerEntry]:
    """Return the pool account's entries of these kinds, oldest first."""
    return list(project.pool_account.entries.filter(kind__in=kinds).order_by("sequence"))


def rewrite_entry(entry_id: int, *, purpose: str) -> str:
    """Change the words of a ledger entry as somebody might who owns the database, and return what they were."""
    with without_rules("privacy_ledgerentry") as cursor:
        before: str = LedgerEntry.objects.values_list("purpose", flat=True).get(pk=entry_id)
        cursor.execute("UPDATE privacy_ledgerentry SET purpose = %s WHERE id = %s", [purpose, entry_id])
    return before
