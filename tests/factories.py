"""Projects, people and questions for tests; only what a test does not care about has a default."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import count
from typing import Any

from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from PIL import Image

from annotation.budget import services as populations
from annotation.choices import services
from annotation.choices.catalogue import CATALOGUE, declaration_of
from annotation.choices.presets import PRESETS
from annotation.data.services import datasets
from annotation.models import (
    Assignment,
    Configuration,
    Dataset,
    DatasetRole,
    DatasetState,
    GateRun,
    Job,
    Membership,
    Project,
    Query,
    Record,
    Role,
)
from annotation.models.configurations import settings_in
from annotation.projects.services import opening
from annotation.questions.services import labels, queue
from privacy.json_values import read, written_value
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry

_numbers = count(1)


def make_user(name: str = "", **fields: Any) -> User:
    """Make a person without a usable password; log them in with `client.force_login`."""
    return User.objects.create_user(username=name or f"person-{next(_numbers)}", **fields)


def make_opener(name: str = "") -> User:
    """Make a person who may open projects."""
    person = make_user(name)
    person.user_permissions.add(Permission.objects.get(codename="add_project"))
    return person


def make_account(*, epsilon_limit: float = 10.0, delta_limit: float = 0.0, unit: str = "record") -> BudgetAccount:
    """Open an account of its own scope."""
    number = next(_numbers)
    return ledger.open_account(
        scope=f"test:{number}",
        label=f"account {number}",
        unit=unit,
        filter="pure",
        epsilon_limit=epsilon_limit,
        delta_limit=delta_limit,
        actor="test",
        reason="opened for a test",
    )


def make_project(*, owner: User | None = None, **fields: Any) -> Project:
    """Make a trusted text project with three classes; `oracle="crowd"` brings a gate."""
    number = next(_numbers)
    crowd = fields.get("oracle") == "crowd"
    gate = {
        "gate_kind": "k_anonymity",
        "gate_k": 17,
        "gate_sampling_rate": 0.3,
        "gate_epsilon": 0.5,
        "normalizer": "L1",
        "labels_account": None,
    }
    defaults: dict[str, Any] = {
        "slug": f"project-{number}",
        "name": f"Project {number}",
        "question": "What is this about?",
        "question_kind": "choose",
        "preset": "voice-crowd" if crowd else "pool-experts",
        "oracle": "trusted",
        "data_kind": "text",
        "classes": ["sport", "music", "other"],
        "privacy_unit": "record",
        "feature_dimension": 8,
        "selection": "random",
        "estimator": "logistic",
        "features": "standard",
        "update_policy": "per_round",
        "round_size": 10,
        "training_epsilon": 1.0,
        "regularization": 1.0,
        "labels_per_release": 1000,
        "overlap": 1,
        "lease_seconds": 600,
    }
    values = defaults | (gate if crowd else {}) | fields
    if crowd and values["labels_account"] is None:
        values["labels_account"] = make_account(unit="answer")
    values.setdefault("pool_account", None)
    values["pool_account"] = values["pool_account"] or make_account(delta_limit=1e-4 if crowd else 0.0)
    values["created_by"] = owner or make_user()
    columns = {name: value for name, value in values.items() if not services.in_document(name)}
    return services.store_project(settings=columns, document=raw_document(values))


def raw_document(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a document of settings as they are, broken or not; the database says what it takes."""
    document: dict[str, dict[str, Any]] = {}
    used = {each.name: each.default for choice in CATALOGUE.chosen(settings) for each in choice.parameters()}
    for name, value in (used | dict(settings)).items():
        if value is not None and services.in_document(name):
            document.setdefault(str(CATALOGUE.section_of(name)), {})[name] = _raw(name, value)
    return document


def _raw(name: str, value: Any) -> Any:
    known = declaration_of(name)
    return value if known is None else written_value(read(value, known.type), known.decimals)


def write_settings(project: Project, **changes: Any) -> None:
    """Write settings past every service, as another version of the configuration; None takes one out of it."""
    stored = Project.objects.get(pk=project.pk)
    columns = {name: value for name, value in changes.items() if not services.in_document(name)}
    settings = {**settings_in(stored.configuration_id), **changes}
    document = raw_document({name: value for name, value in settings.items() if name not in columns})
    for section, held in stored.configuration.document.items():
        # What was left open stays said, so that nothing but the changes is another.
        document.setdefault(section, {}).update({key: None for key in held if held[key] is None and key not in changes})
    with transaction.atomic():
        following = Configuration.objects.create(
            project=stored,
            version=1 + Configuration.objects.filter(project=stored).count(),
            document=document,
            digest=services.document_digest(document),
        )
        Project.objects.filter(pk=project.pk).update(configuration=following, **columns)
    project.configuration = following


def open_preset(owner: User, preset: str, **settings: Any) -> Project:
    """Open a project by a preset and its values, of the first kind of data it takes."""
    kind = PRESETS[preset].data_kinds[0]
    values = {"name": preset, "data_kind": kind, "classes": ["yes", "no"], "question": "Is it?"} | settings
    if values["data_kind"] == "table":
        values.setdefault("columns", [{"name": "amount", "low": 0.0, "high": 9.0}])
    return opening.create_project(preset=preset, owner=owner, **values)


def open_population(*, owner: User | None = None, second: User | None = None, **terms: Any) -> BudgetAccount:
    """Open an account over several projects with two managers."""
    given = {"name": "Patients", "unit": "contributor", "filter": "pure", "epsilon_limit": 100.0, "delta_limit": 1e-3}
    return populations.open_population(owner=owner or make_user(), second=second or make_user(), **given | terms)


def receive_upload(**given: Any) -> Dataset:
    """Receive a file, however few of its texts would pass the gate."""
    return datasets.receive_upload(**{"confirm_few": True} | given)


def bring_file(project: Project, body: bytes | str, *, name: str = "rows.csv", **options: Any) -> Dataset:
    """Upload a file, which a worker then reads."""
    content = body.encode() if isinstance(body, str) else body
    return receive_upload(project=project, file=SimpleUploadedFile(name, content), name=name, **options)


def open_messages(owner: User) -> Project:
    """Open a project of experts that has one upload with bad rows, and a limit that was raised."""
    opened = open_preset(owner, "pool-experts", name="Messages", classes=["spam", "ham"], question="Is this spam?")
    body, mapping = b"text\nyou won\n\nhello\n\xff\n", {"text": "text", "has_header": True}
    dataset = bring_file(opened, body, name="pool.csv", mapping=mapping, uploaded_by=owner)
    datasets.import_dataset(job_id=dataset.job_id)
    ledger.change_account_limits(
        account=opened.pool_account, epsilon_limit=8.0, delta_limit=0.0, actor=owner, reason="agreed with the board"
    )
    return opened


def add_members(project: Project, *people: User, role: str = Role.ANNOTATOR) -> None:
    """Give everybody the role."""
    Membership.objects.bulk_create(Membership(project=project, user=person, role=role) for person in people)


def make_annotators(project: Project, number: int) -> list[User]:
    """Make people who may label in the project."""
    people = [make_user() for _ in range(number)]
    add_members(project, *people)
    return people


def make_manager(project: Project) -> User:
    """Make a person who manages the project."""
    person = make_user("manager")
    add_members(project, person, role=Role.MANAGER)
    return person


def a_png(*, width: int = 3, height: int = 2, colour: str = "navy", **said: Any) -> bytes:
    """Return an image of one colour as a file, with what else is said in it."""
    out = BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "PNG", **said)
    return out.getvalue()


def make_records(project: Project, texts: Sequence[str] = (), **fields: Any) -> list[Record]:
    """Store a pool dataset; records are texts unless `payloads` or `rows` (of a pixel file) are given."""
    payloads = fields.pop("payloads", None)
    rows = fields.pop("rows", None)
    dataset = Dataset.objects.create(
        project=project,
        job=Job.objects.create(project=project, kind="import"),
        name="pool",
        **{"role": DatasetRole.POOL, "state": DatasetState.READY, **fields},
    )
    contents = (
        [{"text": text} for text in texts]
        if payloads is None and rows is None
        else [{"payload": payload} for payload in payloads]
        if payloads is not None
        else [{} for _ in range(rows)]
    )
    return Record.objects.bulk_create(
        Record(dataset=dataset, row_number=number, **content) for number, content in enumerate(contents)
    )


def open_records(project: Project, number: int = 1, *, round_number: int = 1, **fields: Any) -> list[Query]:
    """Ask about new records of a trusted project."""
    records = make_records(project, [f"record {n}" for n in range(number)], **fields)
    queue.open_queries(project=project, round_number=round_number, record_ids=[record.pk for record in records])
    return list(Query.objects.filter(record__in=records).order_by("priority"))


def asked_project(questions: int = 1, people: int = 1, **fields: Any) -> tuple[Project, list[Query], list[User]]:
    """Make a trusted project that asks some annotators about new records."""
    project = make_project(**fields)
    return project, open_records(project, questions), make_annotators(project, people)


def answer_once(project: Project) -> None:
    """Let every annotator who is asked anything answer a new question, so that a limit of one is reached."""
    for member in project.memberships.filter(role=Role.ANNOTATOR):
        open_records(project)
        if (held := queue.claim_next(project=project, user=member.user)) is not None:
            labels.submit_label(assignment=held, choice=0)


def answer_next(project: Project, person: User, choice: int) -> Assignment | None:
    """Answer what the person is asked next, if anything."""
    assignment = queue.claim_next(project=project, user=person)
    if assignment is not None:
        labels.submit_label(assignment=assignment, choice=choice)
    return assignment


def make_disputed() -> Query:
    """Return a question to which two people gave different answers."""
    project = make_project(overlap=2)
    (query,) = open_records(project, 1)
    for person, choice in zip(make_annotators(project, 2), (0, 1), strict=True):
        answer_next(project, person, choice)
    query.refresh_from_db()
    assert query.state == "disputed"
    return query


def make_candidates(project: Project, texts: Sequence[str], *, sample_count: int = 20) -> list[Query]:
    """Store gate output of a crowd project, not asked yet."""
    dataset = make_records(project, ["behind the gate"])[0].dataset
    run = GateRun.objects.create(project=project, dataset=dataset, reservation=make_reservation(project.pool_account))
    return Query.objects.bulk_create(
        Query(project=project, gate_run=run, text=text, sample_count=sample_count, state="unasked") for text in texts
    )


def make_reservation(account: BudgetAccount) -> LedgerEntry:
    """Return an entry of the account that stands for a gate's reservation where its cost does not matter."""
    return account.entries.get(kind=EntryKind.GRANT)
