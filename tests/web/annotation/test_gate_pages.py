"""The planner's page, what the data page says when nothing passed, and what annotators read about each gate."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.models import Project, Query, Role
from annotation.presets import PRESETS
from annotation.services import datasets, gate, projects, queue
from tests.factories import make_records, make_user

pytestmark = pytest.mark.django_db(transaction=True)
NOT_PRIVATE = "Not private: for planning only, never shown to annotators."


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **kwargs: None)


@pytest.fixture
def manager() -> User:
    user = User.objects.create_user("manager")
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    return user


def opened(manager: User, preset: str = "voice-crowd", **settings: object) -> Project:
    names = {"name": "Voice", "classes": ["music", "other"], "question": "What?", "data_kind": "text"}
    return projects.create_project(preset=preset, owner=manager, **names, **settings)  # type: ignore[arg-type]


@pytest.fixture
def crowd(manager: User) -> Project:
    return opened(manager)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page(project: Project) -> str:
    return reverse("annotation:gate", args=[project.slug])


def pool(project: Project, rows: bytes) -> int:
    dataset = datasets.receive_upload(
        project=project,
        file=SimpleUploadedFile("pool.csv", b"text,who\n" + rows),
        name="pool.csv",
        mapping={"contributor": "who"},
        uploaded_by=project.created_by,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    return dataset.pk


def text_of(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined]


def test_only_managers_of_a_crowd_project_plan(crowd: Project, manager: User) -> None:
    assert client_of(manager).get(page(crowd)).status_code == 200
    for role in (Role.ANNOTATOR, Role.ENGINEER):
        person = make_user()
        projects.add_member(project=crowd, user=person, role=role)
        for method in ("get", "post"):
            assert getattr(client_of(person), method)(page(crowd)).status_code == 404
    assert client_of(make_user()).get(page(crowd)).status_code == 404
    assert Client().get(page(crowd)).status_code == 302
    assert client_of(manager).get(page(opened(manager, "pool-experts"))).status_code == 404


def test_the_recommendation_follows_from_the_price_alone(crowd: Project, manager: User) -> None:
    client = client_of(manager)
    before = text_of(client.get(page(crowd)))
    sentence = re.search(r"<p>(Take [^<]*)</p>", before)
    assert sentence is not None
    pool_id = pool(crowd, b"".join(b"play jazz,p%d\n" % n for n in range(5)))
    crowd.jobs.filter(kind="gate").update(state="failed", finished_at=crowd.created_at)
    for source in ("", "synthetic", str(pool_id)):
        assert sentence.group(1) in text_of(client.get(page(crowd), {"source": source})), source
    assert sentence.group(1) not in text_of(client.get(page(crowd), {"epsilon": 0.5}))


def test_a_gate_is_taken_over_by_its_button(crowd: Project, manager: User) -> None:
    client = client_of(manager)
    html = text_of(client.get(page(crowd)))
    form = html[html.index("Recommended") :]
    form = form[form.index("<form") : form.index("</form>")]
    values = dict(re.findall(r'name="(gate_\w+)" value="([^"]*)"', form))
    assert values["gate_kind"] == "threshold"
    response = client.post(page(crowd), values, follow=True)
    assert "The project has this gate now." in text_of(response)
    crowd.refresh_from_db()
    assert (crowd.gate_kind, crowd.gate_floor, crowd.gate_k) == ("threshold", 2, None)


def test_bad_numbers_and_a_frozen_gate_are_answered_not_obeyed(crowd: Project, manager: User) -> None:
    client = client_of(manager)
    assert "describe no gate" in text_of(client.post(page(crowd), {"gate_kind": "sketch"}, follow=True))
    bad = {"gate_kind": "k_anonymity", "gate_epsilon": 0.5, "gate_k": 1, "gate_sampling_rate": 0.3}
    assert "at least 2" in text_of(client.post(page(crowd), bad, follow=True))
    for price in ({"epsilon": 0}, {"epsilon": 0.06}, {"delta": 1}, {"epsilon": "x"}, {"source": "77"}):
        assert client.get(page(crowd), price).status_code == 422, price
    pool(crowd, b"play jazz,a\n")
    html = text_of(client.get(page(crowd)))
    assert "stays" in html
    assert "Use this gate" not in html
    good = bad | {"gate_k": 30}
    assert "gate is in use" in text_of(client.post(page(crowd), good, follow=True))
    crowd.refresh_from_db()
    assert crowd.gate_k == 20


def test_shares_counted_from_private_records_are_marked_and_choose_nothing(crowd: Project, manager: User) -> None:
    client = client_of(manager)
    dataset = make_records(crowd, ["play jazz"] * 40)[0].dataset
    dataset.records.update(contributor=b"p" * 16)
    public = make_records(crowd, ["play jazz"] * 40, role="public_test")[0].dataset
    private = text_of(client.get(page(crowd), {"source": dataset.pk}))
    assert NOT_PRIVATE in private
    assert "Use this gate" not in private
    for source in (str(public.pk), "synthetic", ""):
        html = text_of(client.get(page(crowd), {"source": source}))
        assert NOT_PRIVATE not in html
        assert "Use this gate" in html
        assert ("Texts that would pass" in html) == bool(source)


def test_when_nothing_passed_the_data_page_says_what_to_do_and_counts_nothing(crowd: Project, manager: User) -> None:
    client = client_of(manager)
    data = reverse("annotation:data", args=[crowd.slug])
    assert "Nothing passed" not in text_of(client.get(data))
    pool(crowd, b"".join(b"unsaid %d,p%d\n" % (n, n) for n in range(13)))
    gate.run_gate(job_id=crowd.jobs.get(kind="gate").pk)
    for url in (data, reverse("annotation:uploads", args=[crowd.slug])):
        html = text_of(client.get(url))
        section = html[html.index('<section id="nothing-passed"') :]
        section = section[: section.index("</section>")]
        for advice in ("upload more records at once", "k and sampling rate", "noisy threshold", "L3 keeps content"):
            assert advice in section
        assert not re.search(r"\b13\b|unsaid", section)
        assert page(crowd) in section


def test_a_form_offers_both_gates_and_four_levels_with_an_example(manager: User) -> None:
    url = reverse("annotation:new_project", args=["voice-crowd"])
    html = text_of(client_of(manager).get(url))
    for shown in (
        "Set an alarm for 7:30 on Monday!",
        "set an alarm for &lt;number&gt; on &lt;weekday&gt;",
        "threshold",
    ):
        assert shown in html
    values = dict(PRESETS["voice-crowd"].defaults) | {"name": "Noisy", "question": "What?", "classes": "a\nb"}
    values |= {"gate_kind": "threshold", "gate_epsilon": 1.0, "normalizer": "L2"}
    assert client_of(manager).post(url, values).status_code == 302
    project = Project.objects.get()
    assert (project.gate_kind, project.gate_floor, project.normalizer, project.gate_k) == ("threshold", 2, "L2", None)
    broken = client_of(manager).post(url, values | {"gate_floor": 1})
    assert broken.status_code == 422
    assert "gate_floor" in broken.context["form"].errors


@pytest.mark.parametrize(
    ("settings", "said", "unsaid"),
    [
        ({"gate_kind": "threshold", "gate_epsilon": 1.0}, "never fewer than 2", "At least"),
        ({}, "At least 20 people in a secret random sample", "noise"),
        ({"normalizer": "L3"}, "content, in alphabetical order", "masked"),
        ({"normalizer": "L2"}, "weekdays and months are masked", "alphabetical"),
    ],
)
def test_annotators_read_what_their_gate_does(
    manager: User, settings: dict[str, object], said: str, unsaid: str
) -> None:
    project = opened(manager, **settings)
    pool(project, b"".join(b"play jazz,p%d\n" % n for n in range(500)))
    gate.run_gate(job_id=project.jobs.get(kind="gate").pk)
    query = Query.objects.get()
    queue.open_queries(project=project, round_number=1, query_ids=[query.pk])
    projects.add_member(project=project, user=manager, role=Role.ANNOTATOR)
    html = text_of(client_of(manager).get(reverse("annotation:label", args=[project.slug])))
    receipt = html[html.index('<div class="receipt">') : html.index('<form id="answer"')]
    assert said in receipt
    assert unsaid not in receipt


def test_the_annotation_budget_is_set_and_shown_by_managers(crowd: Project, manager: User) -> None:
    url = reverse("annotation:label_budget", args=[crowd.slug])
    client = client_of(manager)
    assert "without a limit" in text_of(client.get(reverse("annotation:data", args=[crowd.slug])))
    for bad in ({"money_limit": 5}, {"labels_limit": -1}, {"currency": "euros"}, {"price_per_label": 0}):
        assert client.post(url, bad).status_code == 422, bad
    good = {"money_limit": "5.00", "price_per_label": "0.02", "labels_limit": 1000, "currency": "EUR"}
    html = text_of(client.post(url, good, follow=True))
    assert "0 answers so far; 0 of at most 250 are asked for." in html
    assert "They cost 0.00 EUR." in html
    engineer = make_user()
    projects.add_member(project=crowd, user=engineer, role=Role.ENGINEER)
    assert client_of(engineer).get(url).status_code == 404


def test_a_secret_sample_takes_a_price_and_no_limit(manager: User) -> None:
    project = opened(manager, "pool-experts", selection="secret_sample")
    url = reverse("annotation:label_budget", args=[project.slug])
    assert "stopping would tell" in text_of(client_of(manager).get(url))
    values = {"labels_limit": 7, "money_limit": 9, "price_per_label": "0.5", "currency": "EUR"}
    assert client_of(manager).post(url, values).status_code == 302
    project.refresh_from_db()
    assert (project.labels_limit, project.money_limit, str(project.price_per_label)) == (None, None, "0.5000")
