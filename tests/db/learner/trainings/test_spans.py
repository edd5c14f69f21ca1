import io
import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from django.core.files import File
from django.db import transaction
from django.urls import reverse

from annotation.data.services import datasets
from annotation.data.services.label_files import export_labels
from annotation.models import Job, Membership, Query, Role
from annotation.projects.services.classes import rename_class
from annotation.questions.selectors import spans_of
from annotation.questions.services import labels, queue
from annotation.questions.services.spans import span_set_number
from dpal.command_line import main
from dpal.errors import NotFitting
from dpal.recompute.transcript import Transcript
from dpal.releases import open_folder
from dpal.spans.text import Span
from learner.linear_model import LinearModel
from learner.models import Evaluation, ModelRelease
from learner.pools.starts import described_model
from learner.releases import storage
from learner.releases.artifacts.files import recompute_weights, span_model
from learner.releases.evaluations import score_model
from learner.releases.services.card_issues import issue_for_higher_limit
from learner.simulation.forecast import forecast_of
from learner.tasks import simulate_plan_task
from privacy.accounting.event import event_from_json
from privacy.ledger.models import EntryKind, LedgerEntry
from tests import learning
from tests.clients import browser_of, program_of
from tests.factories import make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage", "reads_here")]
TYPES = ["day", "name"]
DAYS, NAMES = ("monday", "friday", "tomorrow"), ("Anna", "Peter Pan", "Olga")
SENTENCES = ("please call {name} on {day}", "is {name} still here", "what is due {day}", "stop all of it")
OPTIONS = {
    "question_kind": "spans",
    "estimator": "span_crf",
    "features": "static_encoder",
    "selection": "random",
    "classes": TYPES,
    "training_epsilon": 40.0,
    "training_delta": 1e-6,
    "pool_epsilon": 200.0,
    "pool_delta": 1e-4,
    "round_size": 60,
    "labels_per_release": 60,
}


def messages(number, *, seed):
    rng = np.random.default_rng(seed)
    for place in range(number):
        yield f"{rng.choice(SENTENCES)} {place} of {seed}".format(name=rng.choice(NAMES), day=rng.choice(DAYS))


def truth_of(text):
    known = [("day", word) for word in DAYS] + [("name", word) for word in NAMES]
    found = [(text.find(word), word, kind) for kind, word in known]
    return [Span(start, start + len(word), kind) for start, word, kind in found if start >= 0]


def open_spans(**settings):
    project = learning.open_trusted(make_user(), **(OPTIONS | settings))
    learning.upload(project, [[text] for text in messages(80, seed=1)], ["text"])
    return project


def upload_test(project, rows, name="test.jsonl"):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    dataset = receive_upload(
        project=project,
        file=File(io.BytesIO(lines.encode()), name=name),
        name=name,
        role="public_test",
        mapping={"label": "spans"},
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    return dataset


def with_spans(number):
    for text in messages(number, seed=2):
        yield {"text": text, "spans": [{"start": s.start, "end": s.end, "label": s.type} for s in truth_of(text)]}


def answer_truly(project, person):
    Membership.objects.get_or_create(project=project, user=person, role=Role.ANNOTATOR)
    while (held := queue.claim_next(project=project, user=person)) is not None:
        text = learning.shown_text(held.query)
        now = project.renamed_classes
        said = [replace(span, type=now.get(span.type, span.type)) for span in truth_of(text)]
        labels.submit_label(assignment=held, choice=span_set_number(project, said, text))


def released(project, version=1):
    person = make_user()
    for _ in range(4):
        learning.work_off(project, version=version)
        if ModelRelease.objects.filter(project=project, version=version).exists():
            break
        answer_truly(project, person)
    return ModelRelease.objects.get(project=project, version=version)


def test_a_model_of_spans_is_paid_for_released_and_replayed(tmp_path):
    project = open_spans(class_descriptions=["name: please call {Anna|Olga} now", "day: come on {monday|friday}"])
    upload_test(project, with_spans(40))
    release = released(project)
    assert (release.state, release.held_back) == ("released", "")
    event = event_from_json(release.event)
    assert (event.kind, event.inner.kind) == ("picked_fit", "span_steps")
    assert LedgerEntry.objects.filter(kind=EntryKind.RESERVE, mechanism="picked_fit").count() == 1
    model = LinearModel.from_json(release.weights)
    assert (model.multiclass, model.classes, len(model.coef)) == ("spans", tuple(TYPES), 3)
    found = span_model(model).predict(["please call Olga on friday"])[0]
    assert [(span.start, span.end, span.type) for span in found] == [(12, 16, "name"), (20, 26, "day")]
    with storage.files_at_hand(release) as folder:
        assert recompute_weights(folder) == 0.0
        names = {path.name for path in folder.iterdir()}
        assert {"encoder.npz", "encoder.spans.npz", "transcript.json"} < names
        assert not names & {"model.onnx", "model.skops", "pipeline.skops", "thresholds.json"}
        assert json.loads((folder / "weights.json").read_text())["multiclass"] == "spans"
        card = (folder / "card.md").read_text()
    measured = release.evaluations.get()
    assert measured.examples == 40
    assert measured.measures["micro_f1"]["value"] > 0.8
    assert [one["spans"] > 9 for one in measured.measures["f1"]] == [True, True]
    assert "It finds spans of these types" in card
    assert "ccuracy" not in card
    assert "## Entity F1 on public data" in card
    assert f"| test.jsonl | 40 | {measured.measures['micro_f1']['value']:.4f} (" in card
    assert "| day |" in card
    look_at_all(project)
    read_by_the_client(release, tmp_path)


def read_by_the_client(release, tmp_path):
    texts = ["please call Olga on friday", "stop all of it"]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    key = storage.signer().public_key
    with storage.files_at_hand(release) as folder:
        model = open_folder(folder, public_key=key)
        model.check()
        found = [[(span.start, span.end, span.type) for span in spans] for spans in model.predict(texts)]
        assert found == [[(12, 16, "name"), (20, 26, "day")], []]
        shares = model.predict_proba(texts)
        assert ((shares > 0) == [[True, True], [False, False]]).all()
        for refused in (model.pipeline, lambda: model.decision_function(texts), lambda: model.abstain(texts)):
            with pytest.raises(NotFitting):
                refused()
        verified = CliRunner().invoke(main, ["verify", str(folder), "--public-key", key])
        assert "bit for bit" in verified.output
        written = ["predict", str(folder), str(tmp_path / "texts.jsonl"), "--folder", "--public-key", key]
        CliRunner().invoke(main, [*written, "-o", str(tmp_path / "found.jsonl")], catch_exceptions=False)
    rows = [json.loads(line)["predicted"] for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert [[(span["start"], span["end"], span["type"]) for span in spans] for spans in rows] == found
    assert all(span["score"] > 0.5 for spans in rows for span in spans)


ELSEWHERE = ("Accuracy", " accuracy", "25.0\N{NO-BREAK SPACE}%", "85.0\N{NO-BREAK SPACE}%", "No better")
PAGES = ("overview", "standing", "card", "dashboard", "plan", "releases", "shares", "channels")
OWN_PAGES = ("project", "settings", "data", "quality", "compare_answers", "questions", "own_answers", "budget", "label")
ROUTES = ("models", "models/1", "models/0", "next-step", "plan", "rounds", "shares", "shares/offers", "work")


def look_at_all(project):
    browser = browser_of(project.created_by)
    addresses = [reverse(f"learner:{name}", args=(project.slug,)) for name in PAGES]
    addresses += [reverse(f"annotation:{name}", args=(project.slug,)) for name in OWN_PAGES]
    addresses += [reverse("learner:release", args=(project.slug, version)) for version in (0, 1)]
    found = {address: browser.get(address).status_code for address in addresses}
    program, api = program_of(project.created_by), f"/api/v1/projects/{project.slug}"
    found |= {route: program.get(f"{api}/{route}").status_code for route in ROUTES}
    asked = program.post(f"{api}/models/1/predict", {"texts": ["call Olga"]}, content_type="application/json")
    assert asked.status_code == 422
    assert "finds no spans" in asked.json()["detail"]
    program.post(f"{api}/plan/simulation", {}, content_type="application/json")
    assert not {address: code for address, code in found.items() if code >= 500}
    page = browser.get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    assert "Entity F1" in page
    assert "too few to say" not in page


def measure(release, name, *, version_0):
    """Say that all spans of a quarter of the texts are right, and no span is in 34 of 40, which no page shows."""
    dataset = upload_test(release.project, with_spans(40), name=name)
    measures = score_model(LinearModel.from_json(release.weights), dataset).measures
    measures["micro_f1"] = {"value": 0.615, "low": 0.513, "high": 0.717}
    measures["version_0"]["micro_f1"] = version_0
    counts = {"examples": 40, "correct": 10, "constant_correct": 34, "described_correct": 38}
    Evaluation.objects.create(release=release, dataset=dataset, measures=measures, **counts)


def test_pages_show_entity_f1_wherever_they_measure_a_model():
    project = open_spans(class_descriptions=["name: please call {Anna|Olga} now", "day: come on {monday|friday}"])
    release = released(project)
    measure(release, "a.jsonl", version_0=0.412)
    browser, program = browser_of(project.created_by), program_of(project.created_by)
    addresses = [
        reverse(f"learner:{name}", args=(project.slug,)) for name in ("overview", "card", "releases", "dashboard")
    ]
    addresses += [reverse("learner:release", args=(project.slug, 1)), reverse("annotation:projects")]
    for address in addresses:
        page = browser.get(address).content.decode()
        assert "Entity F1" in page, address
        assert "61.5" in page, address
        assert [word for word in ELSEWHERE if word in page] == [], address
    for picture in (
        reverse("learner:accuracy_plot", args=(project.slug, 1)),
        reverse("learner:dashboard_plot", args=(project.slug, "releases")),
    ):
        assert "Entity F1 by version" in browser.get(picture).content.decode()
    told = program.get(f"/api/v1/projects/{project.slug}/models/1").json()
    (found,) = told["evaluations"]
    assert (found["measure"], found["accuracy"], found["interval"]) == ("entity_f1", 0.615, [0.513, 0.717])
    assert (found["constant"], round(found["version_0"], 9), told["beaten_by"]) == (0.0, 0.412, "")
    (row,) = program.get(f"/api/v1/projects/{project.slug}/dashboard/releases").json()
    assert row["accuracy"] == 0.615
    measure(release, "b.jsonl", version_0=0.9)
    assert program.get(f"/api/v1/projects/{project.slug}/models/1").json()["beaten_by"] == "version_0"
    for address in (addresses[0], addresses[-1]):
        assert "No better than version 0, which is free" in browser.get(address).content.decode()


def test_a_model_is_measured_on_held_out_private_texts_by_counts_that_its_training_paid_for():
    project = open_spans(held_out_share=0.4)
    release = released(project)
    assert (release.state, release.held_back) == ("released", "")
    event = event_from_json(release.event)
    assert (event.kind, event.inner.kind, event.spans_per_record) == ("measured_fit", "picked_fit", 8)
    (reserved,) = LedgerEntry.objects.filter(kind=EntryKind.RESERVE, mechanism="measured_fit")
    assert 39.9 < reserved.epsilon_nano / 1e9 <= 40.0
    counts = release.span_counts
    assert counts["scale"] == event.scale
    with storage.files_at_hand(release) as folder:
        transcript = Transcript.from_json(json.loads((folder / "transcript.json").read_text()))
        assert recompute_weights(folder) == 0.0
        card = (folder / "card.md").read_text()
        key = storage.signer().public_key
        verified = CliRunner().invoke(main, ["verify", str(folder), "--public-key", key])
        assert "bit for bit" in verified.output
    query, _sensitivity, _scale, answer = transcript.answers[-1]
    assert (query, answer.tolist()) == ("span_counts", [counts["right"], counts["missed"], counts["spurious"]])
    assert "Entity F1 on private texts that were held out:" in card
    page = browser_of(project.created_by).get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    assert "How well it does, on held-out private texts" in page
    assert "Not measured: upload a public test set." not in page
    told = program_of(project.created_by).get(f"/api/v1/projects/{project.slug}/models/1").json()["held_out"]
    assert told["spans"] == max(0, round(max(counts["right"], 0) + max(counts["missed"], 0)))
    assert (told["value"] is None) == ("too few to say" in page)
    with transaction.atomic():
        issue_for_higher_limit(
            project=project,
            account=project.pool_account,
            epsilon_limit_nano=300 * 10**9,
            delta_limit_atto=10**14,
        )
    again = ModelRelease.objects.get(pk=release.pk)
    assert again.folder != release.folder
    with storage.files_at_hand(again) as folder:
        assert "Entity F1 on private texts that were held out:" in (folder / "card.md").read_text()


def test_a_further_model_is_picked_against_the_one_before_under_its_newest_names():
    project = open_spans(round_size=30, labels_per_release=30)
    first = released(project)
    rename_class(project=project, name="day", to="date", known_beforehand=True, actor=project.created_by)
    project.refresh_from_db()
    second = released(project, version=2)
    assert second.held_back == ""
    assert LinearModel.from_json(second.weights).classes == ("date", "name")
    with storage.files_at_hand(second) as folder:
        transcript = Transcript.from_json(json.loads((folder / "transcript.json").read_text()))
    assert np.array_equal(transcript.parameters["coef"], LinearModel.from_json(first.weights).coef)


def test_spans_of_a_public_file_are_stored_as_answers_are():
    project = open_spans()
    row = {"text": "call Olga today " + "and wait " * 20, "spans": [[5, 9, "name"]]}
    far = {"text": row["text"], "spans": [[5, 9, "name"], [len(row["text"]) - 5, len(row["text"]) - 1, "day"]]}
    dataset = upload_test(project, [row, {"text": "stop it", "spans": []}, far])
    assert str(dataset.job.message) == "3 rows stored, 1 span beyond the first 32 words left out"
    numbers = list(dataset.records.order_by("row_number").values_list("label", flat=True))
    assert numbers == [numbers[0], 0, numbers[0]]
    assert spans_of(project, numbers) == {numbers[0]: (Span(5, 9, "name"),), 0: ()}


@pytest.mark.parametrize("spans", [[[0, 4, "place"]], [[0, 40, "name"]], [[0, 4, "name"], [2, 6, "day"]], "Olga", [3]])
def test_a_row_with_other_spans_is_refused_without_a_word_of_it(spans):
    dataset = upload_test(open_spans(), [{"text": "Olga comes", "spans": spans}])
    assert dataset.state == "refused"
    assert dataset.bad_row_count == 1
    assert "Olga" not in str(dataset.bad_row_report)


def test_the_newest_model_suggests_the_spans_it_finds():
    words = ["name: please call {Anna|Olga|Peter Pan} now", "day: come on {monday|friday|tomorrow}"]
    project = open_spans(class_descriptions=words, suggestions="released_model", blind_share=0.5)
    learning.work_off(project, version=1)
    asked = list(Query.objects.filter(project=project, state="open"))
    texts = [learning.shown_text(query) for query in asked]
    model = span_model(described_model(project))
    found = [tuple(Span(one.start, one.end, one.type) for one in spans) for spans in model.predict(texts)]
    told = spans_of(project, [query.suggested for query in asked if query.suggested])
    assert [told[query.suggested] if query.suggested else () for query in asked] == found
    assert 20 < sum(query.suggested is not None for query in asked) == sum(map(bool, found))
    assert {query.suggestion_shown for query in asked if query.suggested} == {True, False}
    answer_truly(project, make_user())
    rows = b"".join(export_labels(project=project, format="jsonl")).decode().splitlines()
    said = [json.loads(row)["suggestion"] for row in rows]
    assert sum(map(bool, said)) == sum(map(bool, found))
    assert {span["label"] for spans in said if spans for span in spans} == {"day", "name"}


NO_PUBLIC = "Entity F1 is expected once there is a public file"


def test_a_plan_expects_entity_f1_beside_version_0_once_there_is_a_public_file():
    project = open_spans(class_descriptions=["name: please call {Anna|Olga} now", "day: come on {monday|friday}"])
    browser, program = browser_of(project.created_by), program_of(project.created_by)
    plan, overview = (reverse(f"learner:{name}", args=(project.slug,)) for name in ("plan", "overview"))
    api = f"/api/v1/projects/{project.slug}/plan/simulation"
    for page in (plan, overview):
        assert NO_PUBLIC in browser.get(page).content.decode()
    assert program.post(api, "{}", content_type="application/json").json()["state"] == "none"
    upload_test(project, with_spans(100))
    assert NO_PUBLIC not in browser.get(plan).content.decode()
    assert program.post(api, "{}", content_type="application/json").json()["state"] == "waiting"
    simulate_plan_task(job_id=str(Job.objects.get(kind="simulate").pk))
    found = program.get(api).json()
    assert (found["state"], found["measure"]) == ("done", "entity_f1")
    assert [(point["data"], point["labels"]) for point in found["points"]] == [("public", 60)]
    assert 0 < found["points"][0]["accuracy"] <= 1
    (point,) = forecast_of(project).course.points
    assert point.constant is None
    assert 0 < point.version_0 < 1
    for page in (plan, overview):
        content = browser.get(page).content.decode()
        assert "Expected entity F1" in content
        assert "Words alone (version 0)" in content
    release = released(project)
    (page, told) = (
        browser.get(reverse("learner:release", args=(project.slug, 1))).content.decode(),
        program.get(f"/api/v1/projects/{project.slug}/models/1").json()["evaluations"][0]["no_privacy"],
    )
    assert told["accuracy"] == point.accuracy
    assert f"Entity F1 {point.accuracy:.1%} without privacy" in told["said"]
    assert "No privacy (estimate)" in page
    with storage.files_at_hand(release) as folder:
        assert "expected entity F1 (worst to best" in (folder / "card.md").read_text()


def test_a_public_file_too_short_for_the_first_model_expects_nothing():
    project = open_spans()
    upload_test(project, with_spans(40))
    browser_of(project.created_by).post(reverse("learner:plan", args=(project.slug,)))
    simulate_plan_task(job_id=str(Job.objects.get(kind="simulate").pk))
    assert forecast_of(project).lacks_public
    assert (
        NO_PUBLIC
        in browser_of(project.created_by).get(reverse("learner:overview", args=(project.slug,))).content.decode()
    )
