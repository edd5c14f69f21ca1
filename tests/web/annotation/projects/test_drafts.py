import io
import re

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.data.services import datasets
from annotation.models import Dataset, DatasetRole, DatasetState, Project
from annotation.models.imports import OpeningDraft
from annotation.projects.forms.drafts import draft_form
from annotation.projects.services import drafts
from annotation.questions.selectors import spans_of
from privacy.ledger.selectors import guarantee
from tests import raw_files
from tests.clients import browser_of
from tests.factories import make_opener, make_user
from tests.openings import begin, open_by, sent_by

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage", "reads_here")]
START = "annotation:new_project"


@pytest.fixture
def opener() -> User:
    return make_opener("opener")


@pytest.fixture
def client(opener: User) -> Client:
    return browser_of(opener)


def bring(client: Client, brought: raw_files.RawFiles, *, public: bool = True) -> str:
    files = {"pool": SimpleUploadedFile(brought.pool_name, brought.pool)}
    if public:
        files["public"] = SimpleUploadedFile(brought.public_name, brought.public)
    response = client.post(reverse(START), files)
    assert response.status_code == 302, response.content.decode()
    return response["Location"]


def change(client: Client, address: str, **changes: object):
    return client.post(address, sent_by(client.get(address)) | changes)


def test_an_owner_says_what_stands_between_several_labels(client: Client) -> None:
    lines = [f'"message {n} about a parcel","{("late", "broken", "lost")[n % 3]}, urgent"' for n in range(12)]
    public = "\n".join(["text,labels", *lines]).encode()
    address = bring(client, raw_files.RawFiles(b"text\none\ntwo\n", "pool.csv", public, "public.csv"))
    assert sent_by(client.get(address))["classes"].splitlines() == ["broken, urgent", "late, urgent", "lost, urgent"]
    change(client, address, **{"public-separator": ",", "public-written": "1"})
    shown = sent_by(client.get(address))
    assert shown["classes"].splitlines() == ["broken", "late", "lost", "urgent"]
    assert (shown["question_kind"], shown["labels_per_record"]) == ("several", "2")
    change(client, address, **{"public-separator": ",", "public-written": "1", "open": "1", "name": "Parcels"})
    finish_imports()
    dataset = Dataset.objects.get(role=DatasetRole.PUBLIC_TEST)
    assert (dataset.state, dataset.bad_row_report, dataset.records.count()) == (DatasetState.READY, [], 12)


def finish_imports() -> None:
    for dataset in Dataset.objects.order_by("-pk"):
        datasets.import_dataset(job_id=dataset.job_id)


SETTINGS = {
    "many": {"data_kind": "text", "question_kind": "choose"},
    "several": {"data_kind": "text", "question_kind": "several", "labels_per_record": 2},
    "german": {"data_kind": "text", "question_kind": "choose", "classes": ["Ja", "nein"]},
    "images": {"data_kind": "image", "image_height": 24, "image_width": 32, "classes": ["circle", "square"]},
    "table": {"data_kind": "table", "classes": ["0", "1"]},
    "ratings": {"data_kind": "text", "question_kind": "rating", "classes": ["1", "2", "3", "4", "5"]},
    "spans": {"data_kind": "text", "question_kind": "spans", "classes": ["day", "name"], "estimator": "span_crf"},
}
ASKED = {
    "several": "Which classes fit?",
    "ratings": "Which step of the scale fits?",
    "spans": "Which parts of the text belong to a class?",
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_project_opens_from_its_files_without_another_word(client: Client, kind: str) -> None:
    """The settings are those the files show, every row is stored, and shared ones are left out by one button."""
    brought = raw_files.KINDS[kind]()
    address = bring(client, brought)
    page = client.get(address)
    assert page.context["problems"] == [], page.content.decode()
    # Words about classes are learned from where records are texts.
    assert ("File of examples" in page.content.decode()) == (SETTINGS[kind]["data_kind"] == "text")
    if kind == "many":
        assert page.context["rehearsal"].shared == 3
        assert "3 rows are in both files" in page.content.decode()
        client.post(address, sent_by(page) | {"leave_out": "yes"})
    opened = change(client, address, open="1")
    assert opened.status_code == 302, opened.content.decode()
    project = Project.objects.get()
    assert {name: project.settings[name] for name in SETTINGS[kind]} == SETTINGS[kind]
    assert not OpeningDraft.objects.exists()
    finish_imports()
    stored = dict(Dataset.objects.filter(state=DatasetState.READY).values_list("role", "row_count"))
    rows = {"many": (300, 154), "several": (120, 60), "german": (120, 40), "images": (60, 24), "table": (200, 60)}
    rows |= {"spans": (150, 40), "ratings": (120, 60)}
    assert project.question == ASKED.get(kind, "Which class fits?")
    assert (stored[DatasetRole.POOL], stored[DatasetRole.PUBLIC_TEST]) == rows[kind]
    assert not Dataset.objects.exclude(bad_row_count=0).exists()


def test_a_crowd_opens_from_a_file_with_user_names(client: Client) -> None:
    address = bring(client, raw_files.user_names())
    change(client, address, preset="voice-crowd")
    shown = client.get(address).content.decode()
    # Both limits are named, and what an attacker could learn within the one that is no named level.
    limits = re.findall(r"<dt>(Limit [^<]+)</dt>\s*<dd>ε (\d+)</dd>", shown)
    assert limits == [("Limit of all uploads together", "3"), ("Limit of all answers together", "4")]
    assert re.search(r"xact numbers.{0,400}ε 3\.000\. An attacker guesses right at most 95\.\d %", shown, re.DOTALL)
    page = client.get(address)
    assert page.context["rehearsal"].forecast.passing.expected > 20
    assert "Open project for ε 1" in " ".join(page.content.decode().split())
    assert "File of examples" in page.content.decode()
    change(client, address, open="1")
    project = Project.objects.get()
    assert (project.preset, project.privacy_unit) == ("voice-crowd", "contributor")
    assert Dataset.objects.get(role="pool").mapping["contributor"] == "user_name"


def test_few_passing_texts_are_told_and_nothing_is_opened(client: Client) -> None:
    address = bring(client, raw_files.user_names(people=20))
    change(client, address, preset="voice-crowd")
    refused = change(client, address, open="1")
    assert refused.status_code == 422
    assert "Too few: the budget would be" in refused.content.decode()
    assert not Project.objects.exists()
    assert not Dataset.objects.exists()


def test_a_draft_belongs_to_its_file(client: Client) -> None:
    images, texts = bring(client, raw_files.images()), bring(client, raw_files.german())
    form = client.get(texts).context["form"]
    assert (form.data["data_kind"], form.data["classes"], form.data["name"]) == ("text", "Ja\nnein", "kommentare")
    assert client.get(images).context["form"].data["data_kind"] == "image"


def test_somebody_else_s_draft_does_not_exist(client: Client) -> None:
    address = bring(client, raw_files.german())
    other = make_opener("other")
    assert browser_of(other).get(address).status_code == 404
    assert browser_of(make_user("nobody")).get(address).status_code == 403


def test_labels_stand_for_classes_that_a_person_names(client: Client) -> None:
    address = bring(client, raw_files.table())
    change(client, address, **{"value-0": "honest", "value-1": "fraud"})
    assert client.get(address).context["form"].data["classes"] == "honest\nfraud"
    change(client, address, open="1")
    finish_imports()
    assert Project.objects.get().classes == ["honest", "fraud"]
    assert Dataset.objects.get(role="public_test").row_count == 60


def test_bounds_of_a_table_come_from_public_rows_alone(client: Client) -> None:
    brought = raw_files.table()
    address = bring(client, brought, public=False)
    assert client.get(address).context["form"].data["columns"] == "amount: \nhour: \ncountry: "
    refused = change(client, address, classes="yes\nno", open="1")
    assert refused.status_code == 422
    assert "columns" in refused.context["form"].errors
    client.post(address, sent_by(client.get(address)) | {"public": io.BytesIO(brought.public)})
    assert "country: DK, NO, SE" in client.get(address).context["form"].data["columns"]


def test_without_classes_the_field_asks_for_them_once_somebody_opens(client: Client) -> None:
    address = bring(client, raw_files.german(), public=False)
    assert "classes" not in client.get(address).context["form"].errors
    refused = change(client, address, open="1")
    assert refused.status_code == 422
    assert list(refused.context["form"].errors) == ["classes"]


def test_a_column_has_another_use_and_a_file_is_read_another_way(client: Client) -> None:
    address = bring(client, raw_files.many_classes())
    change(client, address, **{"pool-role-2": "shown", "pool-role-0": ""})
    mapping = drafts.mapping_of(OpeningDraft.objects.get(), "pool", crowd=False)
    assert (mapping["metadata"], mapping.get("id")) == (["agent"], None)
    change(client, address, **{"pool-delimiter": ";"})
    assert OpeningDraft.objects.get().files["pool"]["reading"]["delimiter"] == ";"


def test_levels_of_privacy_are_limits_and_exact_numbers_win(client: Client) -> None:
    address = bring(client, raw_files.german())
    page = client.get(address).content.decode()
    # e^ε / (1 + e^ε), rounded up.
    assert [f"at most {right} %" in page for right in ("73.2", "88.1", "98.3")] == [True] * 3
    change(client, address, level="strict")
    assert client.get(address).context["form"].data["pool_epsilon"] == "1"
    change(client, address, pool_epsilon="1.5")
    change(client, address, open="1")
    assert guarantee(Project.objects.get().pool_account).epsilon_limit == 1.5


def test_a_file_that_cannot_be_read_is_refused_at_its_field(client: Client) -> None:
    response = client.post(reverse(START), {"pool": SimpleUploadedFile("rows.csv", b"\x89PNG no")})
    assert response.status_code == 422
    assert "pool" in response.context["form"].errors
    assert not OpeningDraft.objects.exists()


def test_old_drafts_go_with_their_files(client: Client) -> None:
    bring(client, raw_files.german())
    draft = OpeningDraft.objects.get()
    assert drafts.forget_old_drafts() == 0
    OpeningDraft.objects.update(created_at="2020-01-01T00:00Z")
    assert drafts.forget_old_drafts() == 1
    assert not default_storage.exists(str(draft.pool.name))
    assert not default_storage.exists(str(draft.public.name))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_opens_without_a_file_as_its_page_shows_it(client: Client, preset: str) -> None:
    address = begin(client, preset)
    task = {"name": "Invoices", "question": "Is this fraud?", "classes": "fraud\nhonest", "columns": "amount: 0 to 9"}
    opened = change(client, address, open="1", **task)
    assert opened.status_code == 302, opened.content.decode()
    project = Project.objects.get()
    assert (project.preset, project.classes) == (preset, ["fraud", "honest"])
    assert guarantee(project.pool_account).epsilon_limit == PRESETS[preset].defaults["pool_epsilon"]


def test_a_project_named_like_the_page_that_opens_one_has_another_address(client: Client) -> None:
    open_by(client, "pool-experts", {"name": "New", "question": "?", "classes": "a\nb"})
    assert Project.objects.get().slug == "new-2"


def test_an_unticked_box_stays_unticked(client: Client) -> None:
    """Though its default is ticked."""
    task = {"name": "Boxes", "question": "Which?", "classes": "a\nb\nc\nd", "question_kind": "several"}
    address = begin(client, "pool-experts")
    change(client, address, **task)
    sent = sent_by(client.get(address))
    assert sent.pop("none_allowed") in ("on", True)
    client.post(address, sent | {"open": "1"})
    assert Project.objects.get().settings["none_allowed"] is False


def test_settings_of_a_new_choice_are_shown_before_anything_is_opened(client: Client) -> None:
    """Without JavaScript the page comes again."""
    address = begin(client, "pool-experts")
    task = {"name": "Seen", "question": "Which?", "classes": "a\nb"}
    assert change(client, address, open="1", selection="top_c", **task)["Location"] == address
    assert not Project.objects.exists()
    assert "selection_epsilon" in client.get(address).context["form"].fields
    change(client, address, open="1")
    assert Project.objects.get().selection == "top_c"


@pytest.mark.parametrize(
    ("typed", "price"),
    [
        ({}, 2.195),
        ({"pool_epsilon": "1"}, 1.146),
        ({"selection_rate": "0.8"}, 2.195),
        ({"maximum_releases": "1"}, 4.172),
        ({"selection": "random"}, 1.999),
        # What was typed for another selection is read, whatever page sent it.
        ({"selection": "random", "selection_epsilon": "0.3", "selection_rate": "0.1"}, 1.999),
        ({"pool_epsilon": "1", "training_epsilon": "2.195"}, 1.146),
        ({"pool_epsilon": "1", "training_epsilon": "0.3"}, 0.3),
        # What cannot be read is told at its field, and nothing follows from it.
        ({"pool_epsilon": "much"}, 2.195),
        ({"selection_rate": "7"}, 2.195),
    ],
)
def test_the_price_of_a_training_follows_the_limit_until_somebody_types_one(typed, price):
    form = draft_form(PRESETS["pool-experts"], typed, assumed=True)
    assert float(form.data["training_epsilon"]) == price


@pytest.mark.parametrize(
    ("typed", "columns"),
    [
        ({}, "256"),
        ({"classes": "one\ntwo\nthree"}, "192"),
        ({"classes": "\n".join(map(str, range(31)))}, "192"),
        ({"classes": "\n".join(map(str, range(31))), "text_columns": "64"}, "64"),
        ({"classes": "\n".join(map(str, range(31))), "features": "static_encoder"}, "128"),
    ],
)
def test_many_classes_are_told_apart_by_more_columns_and_two_by_all(typed, columns):
    assert draft_form(PRESETS["pool-experts"], typed, assumed=True).data["text_columns"] == columns


@pytest.mark.parametrize("again", ["opened", "discarded"])
def test_a_second_press_opens_nothing_and_brings_no_draft_back(client, monkeypatch, again):
    address = bring(client, raw_files.KINDS["several"]())
    sent = sent_by(client.get(address)) | {"open": "1"}
    found = OpeningDraft.objects.get()
    # Both requests have read the draft before either changes it.
    monkeypatch.setattr("annotation.projects.views.drafts.get_object_or_404", lambda *args, **kwargs: found)
    client.post(address, sent if again == "opened" else {"discard": "1"})
    projects = Project.objects.count()
    second = client.post(address, sent)
    assert (second.status_code, second["Location"]) == (302, reverse("annotation:projects"))
    assert (Project.objects.count(), OpeningDraft.objects.count()) == (projects, 0)
    assert projects == (again == "opened")


def test_shared_rows_can_be_downloaded_before_they_are_left_out(client: Client) -> None:
    address = bring(client, raw_files.many_classes())
    assert 'href="?shared"' in client.get(address).content.decode()
    file = client.get(address, {"shared": ""})
    rows = b"".join(file.streaming_content).decode().splitlines()
    assert len(rows) == 4
    assert [row.partition(",")[0] for row in rows] == ["row", "301", "302", "303"]
    assert all("Hello, what about my" in row for row in rows[1:])
    assert not Project.objects.exists()


def test_several_of_two_classes_are_at_most_two_by_default(client: Client) -> None:
    address = begin(client, "pool-experts")
    task = {
        "name": "Mood",
        "question": "Which?",
        "classes": "glad\nsad",
        "data_kind": "text",
        "question_kind": "several",
    }
    client.post(address, sent_by(client.get(address), "own") | task)
    page = client.get(address)
    assert page.context["form"].data["labels_per_record"] == "2"
    # Somebody who leaves a field as it is shown is not refused for it.
    client.post(address, sent_by(page, "own") | {"labels_per_record": "3"})
    assert "labels_per_record" not in client.get(address).context["form"].errors


def test_spans_are_opened_with_the_first_press_that_says_so(client: Client) -> None:
    address = begin(client, "pool-experts")
    change(client, address, name="Calls", question="Who?", classes="name\nday", question_kind="spans")
    assert client.get(address).context["form"].data["estimator"] == "span_crf"
    change(client, address, open="1")
    assert Project.objects.get().settings["features"] == "planned"


def test_types_of_spans_are_renamed_as_classes_are(client: Client) -> None:
    address = bring(client, raw_files.spans())
    assert not client.get(address).context["can_take_examples"]
    change(client, address, **{"value-1": "person"})
    change(client, address, open="1")
    finish_imports()
    known = Dataset.objects.get(role="public_test")
    assert (known.row_count, known.project.classes) == (40, ["day", "person"])
    stored = spans_of(known.project, [label for label in known.records.values_list("label", flat=True) if label])
    assert {span.type for found in stored.values() for span in found} == {"day", "person"}
