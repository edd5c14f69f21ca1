import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.budget import charges
from annotation.choices.presets import PRESETS
from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, Project, Query
from annotation.projects.services import opening
from tests.clients import browser_of
from tests.factories import make_opener
from tests.openings import open_by

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
THRESHOLD = {"gate_kind": "threshold", "gate_epsilon": 0.5, "gate_delta": 1e-5, "gate_floor": 2}
GATES = {"sampled": {"gate_kind": "k_anonymity"}, "noisy": THRESHOLD}


@pytest.fixture
def manager() -> User:
    return make_opener("manager")


@pytest.fixture
def client(manager: User) -> Client:
    return browser_of(manager)


@pytest.fixture(params=GATES)
def crowd(request: pytest.FixtureRequest, manager: User) -> Project:
    names = {"name": "Voice", "classes": ["music", "other"], "question": "What?", "data_kind": "text"}
    return opening.create_project(preset="voice-crowd", owner=manager, **names, **GATES[request.param])  # type: ignore[arg-type]


def upload(client: Client, project: Project, rows: bytes, *, name: str = "pool.csv") -> tuple[Dataset, str]:
    url = reverse("annotation:data", args=[project.slug])
    values = {"role": "pool", "text_column": "text", "contributor_column": "who", "has_header": "on"}
    body = b"text,who\n" + rows if name.endswith(".csv") else rows
    values |= {"agreed": charges.token_of(charges.gate_charge(project)), "confirm_few": "1"}
    values |= {"bad_rows": "keep_good", "file": SimpleUploadedFile(name, body)}  # type: ignore[dict-item]
    assert client.post(url, values).status_code == 302
    dataset = Dataset.objects.get()
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    if dataset.gate_job_id:
        gates.run_gate(job_id=dataset.gate_job_id)
    return dataset, client.get(url).content.decode()


def shown() -> list[str]:
    return list(Query.objects.values_list("text", flat=True))


def test_where_all_texts_are_unique_the_page_says_so_and_what_to_do(client: Client, crowd: Project) -> None:
    rows = b"".join(b"text %d,person %d\n" % (n, n) for n in range(500))
    dataset, page = upload(client, crowd, rows)
    assert shown() == []
    assert "No text was said often enough" in page
    assert "more records in one upload" in page
    plan = client.get(reverse("annotation:gate", args=[crowd.slug]), {"source": dataset.pk}).content.decode()
    assert "Nothing would pass at this price." in plan
    assert "A text must be said about" in plan


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("gate_k", 1, "Must be at least 2, got 1."),
        ("gate_k", -5, "2"),
        ("gate_sampling_rate", 0, "Must be above 0, got 0"),
        ("gate_sampling_rate", 1, "Must be below 1, got 1"),
        ("gate_sampling_rate", -0.1, "Must be above 0, got -0.1"),
        ("gate_sampling_rate", "nan", ""),
    ],
)
def test_k_below_two_and_rates_outside_the_unit_interval_are_refused(
    client: Client, manager: User, field: str, value: float, said: str
) -> None:
    values = dict(PRESETS["voice-crowd"].defaults) | {"name": "Voice", "question": "What?", "classes": "a\nb"}
    values |= {"gate_kind": "k_anonymity", "gate_epsilon": 0.5}
    response = open_by(client, "voice-crowd", values | {field: value})
    assert response.status_code == 422
    assert said in " ".join(response.context["form"].errors[field])
    assert not Project.objects.exists()
    names = {"name": "Voice", "classes": ["music", "other"], "question": "What?", "data_kind": "text"}
    project = opening.create_project(preset="voice-crowd", owner=manager, gate_kind="k_anonymity", **names)  # type: ignore[arg-type]
    before = (project.gate_k, project.gate_sampling_rate)
    chosen = {"gate_kind": "k_anonymity", "gate_epsilon": 0.5, "gate_k": 30, "gate_sampling_rate": 0.3}
    answer = client.post(reverse("annotation:gate", args=[project.slug]), chosen | {field: value}, follow=True)
    assert "Saved." not in answer.content.decode()
    project.refresh_from_db()
    assert (project.gate_k, project.gate_sampling_rate) == before
