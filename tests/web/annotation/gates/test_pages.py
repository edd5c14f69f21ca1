import re

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, Project, Query, Role, Survey
from annotation.people.services import members
from annotation.projects.services import opening
from annotation.questions.services import queue
from tests.clients import browser_of
from tests.factories import make_opener, make_records, receive_upload, write_settings
from tests.markup import tight
from tests.openings import look, open_by

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
NOT_PRIVATE = "Not private: for planning only, never shown to annotators."


@pytest.fixture
def manager() -> User:
    return make_opener("manager")


def opened(manager: User, preset: str = "voice-crowd", **settings: object) -> Project:
    names = {"name": "Voice", "classes": ["music", "other"], "question": "What?", "data_kind": "text"}
    kind = {"gate_kind": "k_anonymity"} if preset == "voice-crowd" else {}
    return opening.create_project(preset=preset, owner=manager, **names, **(kind | settings))  # type: ignore[arg-type]


@pytest.fixture
def crowd(manager: User) -> Project:
    return opened(manager)


def page(project: Project) -> str:
    return reverse("annotation:gate", args=[project.slug])


def pool(project: Project, rows: bytes) -> int:
    dataset = receive_upload(
        project=project,
        file=SimpleUploadedFile("pool.csv", b"text,who\n" + rows),
        name="pool.csv",
        mapping={"contributor": "who"},
        uploaded_by=project.created_by,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    return dataset.pk


def text_of(response: object) -> str:
    return tight(response.content.decode())  # type: ignore[attr-defined]


def test_the_recommendation_follows_from_the_price_alone(crowd: Project, manager: User) -> None:
    client = browser_of(manager)
    before = text_of(client.get(page(crowd)))
    sentence = re.search(r"<p>([^<]* is better here: [^<]*)</p>", before)
    assert sentence is not None
    pool_id = pool(crowd, b"".join(b"play jazz,p%d\n" % n for n in range(5)))
    crowd.jobs.filter(kind="gate").update(state="failed", finished_at=crowd.created_at)
    for source in ("", "synthetic", str(pool_id)):
        assert sentence.group(1) in text_of(client.get(page(crowd), {"source": source})), source
    assert sentence.group(1) not in text_of(client.get(page(crowd), {"epsilon": 0.5}))


def test_a_gate_is_taken_over_by_its_button(crowd: Project, manager: User) -> None:
    client = browser_of(manager)
    html = text_of(client.get(page(crowd)))
    form = html[html.index("Recommended") :]
    form = form[form.index("<form") : form.index("</form>")]
    values = dict(re.findall(r'name="(gate_\w+)" value="([^"]*)"', form))
    assert values["gate_kind"] == "threshold"
    response = client.post(page(crowd), values, follow=True)
    assert "Saved." in text_of(response)
    crowd.refresh_from_db()
    assert (crowd.gate_kind, crowd.gate_floor, crowd.gate_k) == ("threshold", 2, None)


def test_bad_numbers_and_a_frozen_gate_are_answered_not_obeyed(crowd: Project, manager: User) -> None:
    client = browser_of(manager)
    assert "describe no gate" in text_of(client.post(page(crowd), {"gate_kind": "sketch"}, follow=True))
    bad = {"gate_kind": "k_anonymity", "gate_epsilon": 0.5, "gate_k": 1, "gate_sampling_rate": 0.3}
    assert "at least 2" in text_of(client.post(page(crowd), bad, follow=True))
    for price in ({"epsilon": 0}, {"epsilon": 0.06}, {"delta": 1}, {"epsilon": "x"}, {"source": "77"}):
        assert client.get(page(crowd), price).status_code == 422, price
    pool(crowd, b"play jazz,a\n")
    html = text_of(client.get(page(crowd)))
    assert "cannot change" in html
    assert "Use this" not in html
    good = bad | {"gate_k": 30}
    assert "gate is in use" in text_of(client.post(page(crowd), good, follow=True))
    crowd.refresh_from_db()
    assert crowd.gate_k == 20


def test_shares_counted_from_private_records_are_marked_and_choose_nothing(crowd: Project, manager: User) -> None:
    client = browser_of(manager)
    dataset = make_records(crowd, ["play jazz"] * 40)[0].dataset
    dataset.records.update(contributor=b"p" * 16)
    public = make_records(crowd, ["play jazz"] * 40, role="public_test")[0].dataset
    private = text_of(client.get(page(crowd), {"source": dataset.pk}))
    assert NOT_PRIVATE in private
    assert "Use this" not in private
    for source in (str(public.pk), "synthetic", ""):
        html = text_of(client.get(page(crowd), {"source": source}))
        assert NOT_PRIVATE not in html
        assert "Use this" in html
        assert ("Texts that pass the gate" in html) == bool(source)


def test_when_nothing_passed_the_data_page_says_what_to_do_and_counts_nothing(crowd: Project, manager: User) -> None:
    client = browser_of(manager)
    data = reverse("annotation:data", args=[crowd.slug])
    assert "Nothing passed" not in text_of(client.get(data))
    pool(crowd, b"".join(b"unsaid %d,p%d\n" % (n, n) for n in range(13)))
    gates.run_gate(job_id=crowd.jobs.get(kind="gate").pk)
    for url in (data, reverse("annotation:uploads", args=[crowd.slug])):
        html = text_of(client.get(url))
        section = html[html.index('<section id="nothing-passed"') :]
        section = section[: section.index("</section>")]
        for advice in ("more records in one upload", "a higher level", "noisy threshold", "a project of experts"):
            assert advice in section
        assert not re.search(r"\b13\b|unsaid", section)
        assert page(crowd) in section


def test_a_form_offers_both_gates_and_four_levels_with_an_example(manager: User) -> None:
    client = browser_of(manager)
    html = text_of(look(client, "voice-crowd"))
    for shown in (
        "Set an alarm for 7:30 on Monday!",
        "set an alarm for &lt;number&gt; on &lt;weekday&gt;",
        "threshold",
    ):
        assert shown in html
    values = dict(PRESETS["voice-crowd"].defaults) | {"name": "Noisy", "question": "What?", "classes": "a\nb"}
    values |= {"gate_kind": "threshold", "gate_epsilon": 1.0, "normalizer": "L2"}
    assert open_by(client, "voice-crowd", values).status_code == 302
    project = Project.objects.get()
    assert (project.gate_kind, project.gate_floor, project.normalizer, project.gate_k) == ("threshold", 2, "L2", None)
    broken = open_by(client, "voice-crowd", values | {"gate_floor": 1})
    assert broken.status_code == 422
    assert "gate_floor" in broken.context["form"].errors


@pytest.mark.parametrize(
    ("settings", "said", "unsaid"),
    [
        ({"gate_kind": "threshold", "gate_epsilon": 1.0}, "At least 2 people say", "secret random sample"),
        ({}, "At least 20 people in a secret random sample", "noise"),
        ({"normalizer": "L3"}, "in alphabetical order", "masked"),
        ({"normalizer": "L2"}, "weekdays and months are masked", "alphabetical"),
    ],
)
def test_annotators_read_what_their_gate_does(
    manager: User, settings: dict[str, object], said: str, unsaid: str
) -> None:
    project = opened(manager, **settings)
    pool(project, b"".join(b"play jazz,p%d\n" % n for n in range(500)))
    gates.run_gate(job_id=project.jobs.get(kind="gate").pk)
    query = Query.objects.get()
    queue.open_queries(project=project, round_number=1, query_ids=[query.pk])
    members.add_member(project=project, user=manager, role=Role.ANNOTATOR)
    pages = (browser_of(manager).get(reverse(f"annotation:{name}", args=[project.slug])) for name in ("label", "why"))
    label, why = (text_of(page) for page in pages)
    receipt = label[label.index('class="receipt"') : label.index('<form id="answer"')] + why
    assert said in receipt
    assert unsaid not in receipt


def test_both_gates_stand_side_by_side_at_one_price(crowd: Project, manager: User) -> None:
    response = browser_of(manager).get(page(crowd), {"source": "synthetic"})
    offered, other_kind = response.context["best_of_each"]
    sampled, noisy = offered.gate, other_kind.gate
    cap = crowd.texts_per_contributor or 1
    cost, other = sampled.event(offered.settings["gate_epsilon"]).cost(), noisy.event().cost()
    assert 0.9 * other.epsilon <= cost.epsilon <= other.epsilon * (1 + 1e-9)
    assert cost.delta <= other.delta == pytest.approx(response.context["form"].cleaned_data["delta"])
    assert cap > 1
    first, second = response.context["side_by_side"]
    html = text_of(response)
    section = html[html.index("Side by side") :]
    for row in (first, second):
        assert f"{row.texts:,.0f}" in section
    assert "Side by side" in text_of(browser_of(manager).get(page(crowd)))


def test_a_large_upload_is_counted_whole_by_a_worker(
    crowd: Project, manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "SURVEYED_ROWS", 10)
    dataset = make_records(crowd, ["play jazz"] * 30 + ["stop"])[0].dataset
    Dataset.objects.filter(pk=dataset.pk).update(row_count=31)
    dataset.records.update(contributor=b"p" * 16)
    client, source = browser_of(manager), {"source": dataset.pk}
    survey = reverse("annotation:survey", args=[crowd.slug, dataset.pk])
    assert "Count the whole upload" in text_of(client.get(page(crowd), source))
    assert not Survey.objects.exists()
    assert client.get(survey).status_code == 405
    for _ in range(2):
        assert client.post(survey).url.endswith(f"?source={dataset.pk}")
    job = crowd.jobs.get(kind="survey")
    html = text_of(client.get(page(crowd), source))
    assert "Count the whole upload" not in html
    gates.run_survey(job_id=job.pk)
    response = client.get(page(crowd), source)
    # One person said both: two texts of one contribution each.
    assert response.context["frequencies"].contributions == 2
    assert NOT_PRIVATE in text_of(response)
    write_settings(crowd, normalizer="L2")
    assert "Count the whole upload" in text_of(client.get(page(crowd), source))


def test_a_count_that_breaks_says_so_without_quoting_and_may_be_tried_again(
    crowd: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make_records(crowd, ["my very own secret"])[0].dataset
    job = gates.start_survey(dataset=dataset)

    def fail(*args: object) -> None:
        raise ValueError("my very own secret")

    monkeypatch.setattr(gates, "_count", fail)
    with pytest.raises(ValueError, match="secret"):
        gates.run_survey(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "Stopped by ValueError; see the worker's log.")
    monkeypatch.undo()
    again = gates.start_survey(dataset=dataset)
    assert again.pk != job.pk
