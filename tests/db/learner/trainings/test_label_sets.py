import json

import numpy as np
import onnxruntime
import pytest
import skops.io
from django.db import IntegrityError, transaction
from safetensors.numpy import load_file
from scipy.special import expit

from annotation.choices.label_types.class_sets import number_of, places_of, set_members
from annotation.errors import InvalidConfiguration
from annotation.models import Membership, Project, Record, Role
from annotation.questions.services import labels, queue
from learner.estimators.label_sets import LabelSets
from learner.linear_model import LinearModel
from learner.models import ModelRelease
from learner.releases import storage
from learner.rounds.services import suggestions
from privacy.accounting.event import event_from_json
from tests import learning
from tests.factories import make_user, write_settings

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
CLASSES = ["fruit", "tool", "number"]
OPTIONS = {
    "question_kind": "several",
    "estimator": "label_sets",
    "selection": "random",
    "labels_per_record": 2,
    "none_allowed": True,
    "classes": CLASSES,
    "training_epsilon": 8.0,
    "training_delta": 1e-6,
    "pool_epsilon": 40.0,
    "pool_delta": 1e-4,
    "round_size": 40,
    "labels_per_release": 40,
    "selection_epsilon": None,
}


def truth_of(text):
    words = text.split()
    held = [any(word in learning.FRUIT for word in words), any(word in learning.TOOLS for word in words), False]
    return number_of(place for place, on in enumerate(held) if on)


def said(number, *, seed):
    rng = np.random.default_rng(seed)
    texts = []
    for place in range(number):
        words = [rng.choice(learning.FRUIT, 3)] * (place % 4 in (0, 2)) + [rng.choice(learning.TOOLS, 3)] * (
            place % 4 in (1, 2)
        )
        texts.append(" ".join([*(word for three in words for word in three), f"row {place} of {seed}"]))
    return texts


def open_sets(**settings):
    values = {name: value for name, value in (OPTIONS | settings).items() if value is not None}
    project = learning.open_trusted(make_user(), **values)
    learning.upload(project, [[text] for text in said(120, seed=1)], ["text"])
    tested = said(40, seed=2)
    names = ["|".join(CLASSES[place] for place in places_of(truth_of(text))) for text in tested]
    rows = [list(row) for row in zip(tested, names, strict=True)]
    learning.upload(project, rows, ["text", "label"], role="public_test")
    return project


def answer_truly(project, person):
    Membership.objects.get_or_create(project=project, user=person, role=Role.ANNOTATOR)
    while (held := queue.claim_next(project=project, user=person)) is not None:
        labels.submit_label(assignment=held, choice=truth_of(learning.shown_text(held.query)))


@pytest.fixture
def release():
    # So many answers and so little noise that the model is above the constant in every run.
    project = open_sets(training_epsilon=40.0, round_size=100, labels_per_release=100)
    person = make_user()
    for _ in range(4):
        learning.work_off(project, version=1)
        if ModelRelease.objects.filter(project=project, version=1).exists():
            break
        answer_truly(project, person)
    return ModelRelease.objects.get(project=project, version=1)


def test_a_model_of_sets_is_paid_for_released_measured_and_read_alike_from_every_file(release):
    event = event_from_json(release.event)
    # The sum of all rows is one more, which every record enters.
    assert (event.kind, event.n_classes, event.labels_per_record) == ("sums", 4, 3)
    assert event.cost().epsilon <= 40.0
    model = LinearModel.from_json(release.weights)
    assert (model.multiclass, model.coef.shape) == ("independent", (3, 16))
    assert release.held_back == ""
    measured = release.evaluations.get()
    found = measured.measures
    assert measured.examples == 40
    records = Record.objects.filter(dataset=measured.dataset).order_by("row_number")
    truth = set_members([record.label for record in records], 3)
    assert truth.sum(axis=0).tolist() == [20, 20, 0]
    with storage.files_at_hand(release) as folder:
        check_files(folder, model, release)
    served = suggestions.Predictor(model, suggestions._predictor(release.pk).featurizer)
    names, shares = served.predict([record.text for record in records])
    assert [set(row) for row in names] == [
        {CLASSES[place] for place in np.flatnonzero(row)}
        for row in model.decision_function(
            suggestions._predictor(release.pk).featurizer.transform([record.text for record in records])
        )
        > 0
    ]
    said_right = np.array([[name in row for name in CLASSES] for row in names])
    assert measured.correct == int((said_right == truth).all(axis=1).sum())
    both = (said_right & truth).sum()
    assert found["micro_f1"]["value"] == pytest.approx(2 * both / (said_right.sum() + truth.sum()))
    assert found["micro_f1"]["value"] > found["constant"]["micro_f1"]
    assert shares.shape == (40, 3)


def check_files(folder, model, release):
    samples = json.loads((folder / "samples.json").read_text())
    rows = np.random.default_rng(3).normal(size=(30, 16)) / 4
    shares = expit(model.decision_function(rows))
    loaded = skops.io.load(folder / "model.skops", trusted=[])
    np.testing.assert_allclose(loaded.predict_proba(rows), shares, atol=1e-12)
    np.testing.assert_array_equal(np.asarray(loaded.predict(rows)), shares > 0.5)
    assert list(loaded.classes_) == CLASSES
    session = onnxruntime.InferenceSession((folder / "model.onnx").read_bytes())
    labelled, probabilities = session.run(None, {"features": rows})
    np.testing.assert_allclose(probabilities, shares, atol=1e-12)
    np.testing.assert_array_equal(labelled, shares > 0.5)
    np.testing.assert_array_equal(load_file(folder / "model.safetensors")["coef"], model.coef)
    assert all(isinstance(names, list) for names in samples["labels"])
    card = (folder / "card.md").read_text()
    assert "of each of 3 classes by itself" in card
    assert LabelSets.why_no_pick in card
    thresholds = json.loads((folder / "thresholds.json").read_text())
    assert (thresholds["examples"], set(thresholds["classes"])) == (40, set(CLASSES))


def test_secret_blocks_add_their_sums_up():
    project = open_sets(selection="secret_sample", selection_rate=0.4, block_growth=1, block_hours=24)
    person = make_user()
    for version in (1, 2):
        for _ in range(4):
            learning.work_off(project, version=version)
            if ModelRelease.objects.filter(project=project, version=version).exists():
                break
            answer_truly(project, person)
            if learning.records.open_block(project) is not None:
                learning.selection.close_block(project=project)
    sums = [run.sums for run in project.training_runs.order_by("version")]
    assert [np.frombuffer(bytes(each.class_sums)).reshape(-1, each.dimension).shape for each in sums] == [(4, 17)] * 2


@pytest.mark.parametrize(
    ("broken", "said_of"),
    [
        ({"estimator": "logistic", "training_delta": 0.0}, "estimator"),
        ({"selection": "top_c", "selection_epsilon": 0.25}, "selection"),
        ({"labels_per_record": 4}, "labels_per_record"),
        ({"suggestions": "released_model"}, "suggestions"),
    ],
)
def test_what_has_no_proof_or_measure_is_refused(broken, said_of):
    values = {name: value for name, value in (OPTIONS | broken).items() if value is not None}
    with pytest.raises(InvalidConfiguration, match=said_of):
        learning.open_trusted(make_user(), **values)


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ({"estimator": "sums"}, "sets_are_sums"),
        ({"question_kind": "choose"}, "sets_are_sums"),
        ({"labels_per_record": 4}, "sets_fit_classes"),
    ],
)
def test_the_database_refuses_it_as_well(written, rule):
    project = open_sets()
    with pytest.raises(IntegrityError, match=f"annotation_project_{rule}"), transaction.atomic():
        write_settings(project, **written)
    assert Project.objects.get(pk=project.pk).labels_per_record == 2
