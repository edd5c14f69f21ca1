"""A class is added while people work: answers keep theirs; what has a proof for a declared number is refused."""

from contextlib import contextmanager
from threading import Barrier, Thread
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from annotation.choices.classes import CROWD, FIXED_ANSWERS, NOT_BEFOREHAND, STREAM, FurtherClass
from annotation.data.services.label_files import ExportFormat, export_labels
from annotation.data.services.mappings import layout_of
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Consensus, Label, Project, Role
from annotation.projects.services import configuring
from annotation.projects.services.classes import add_class, hindrance_of, merge_class, rename_class
from annotation.projects.services.configuring import configure_project
from annotation.questions.services import labels, queue
from privacy.accounting.selection import RandomChoiceEvent
from privacy.ledger import services as ledger
from tests.factories import add_members, make_candidates, make_project, make_user, open_preset, open_records
from tests.owning import without_rules

pytestmark = pytest.mark.django_db(transaction=True)
FILM = FurtherClass("film", ("a cinema",), "Free time", "red")


@pytest.fixture
def project(manager):
    opened = open_preset(manager, "pool-experts", selection="random", features="standard", estimator="sums")
    open_records(opened, 2)
    return opened


@contextmanager
def kept_by_the_database():
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        yield
    assert refusal.value.__cause__.diag.constraint_name == "annotation_project_classes_stay"


def charge(project):
    ledger.reserve(account=project.pool_account, event=RandomChoiceEvent(1), purpose="test", key=uuid4())


def answer(project, choice):
    person = make_user()
    add_members(project, person, role=Role.ANNOTATOR)
    return labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)


def test_answers_keep_their_class_and_the_next_may_be_the_further_one(project, manager):
    charge(project)
    first = answer(project, 1)
    changed = add_class(project=project, further=FILM, known_beforehand=True, actor=manager)
    assert changed.classes == ["yes", "no", "film"]
    second = answer(changed, 2)
    assert list(Label.objects.order_by("pk").values_list("pk", "choice")) == [(first.pk, 1), (second.pk, 2)]
    assert sorted(Consensus.objects.values_list("choice", flat=True)) == [1, 2]
    told = b"".join(export_labels(project=changed, format="csv")).decode().splitlines()
    assert [line.split(",")[4] for line in told[1:]] == ["no", "film"]


def test_one_version_and_one_line_of_history_hold_all_that_stands_about_it(project, manager):
    before = project.configuration.version
    changed = add_class(project=project, further=FILM, known_beforehand=True, actor=manager)
    assert changed.configuration.version == before + 1
    assert changed.settings["class_descriptions"] == ["film: a cinema"]
    (change,) = project.changes.all()
    assert change.fields["classes"] == [["yes", "no"], ["yes", "no", "film"]]
    assert change.fields["class_groups"] == [[], ["film: Free time"]]


def test_what_was_seen_in_a_record_is_not_added(project, manager):
    with pytest.raises(InvalidConfiguration) as refusal:
        add_class(project=project, further=FILM, known_beforehand=False, actor=manager)
    assert refusal.value.broken == {"known_beforehand": NOT_BEFOREHAND}
    assert Project.objects.get(pk=project.pk).classes == ["yes", "no"]


def other_projects(manager):
    crowd = make_project(oracle="crowd")
    make_candidates(crowd, ["passed"])
    stream = open_preset(manager, "fraud-stream")
    charge(stream)
    scale = make_project(question_kind="rating")
    open_records(scale)
    return {CROWD: crowd, STREAM: stream, FIXED_ANSWERS: scale}


def test_a_declared_number_of_classes_stays_by_service_and_by_database(manager):
    for rule, found in other_projects(manager).items():
        assert hindrance_of(found) == rule
        with pytest.raises(InvalidConfiguration) as refusal:
            add_class(project=found, further=FurtherClass("film"), known_beforehand=True, actor=manager)
        assert refusal.value.broken == {"name": rule}
        with pytest.raises(InvalidConfiguration) as refusal:
            configure_project(project=found, changes={"classes": [*found.classes, "film"]}, actor=manager)
        assert refusal.value.broken == {"classes": rule}
        with kept_by_the_database():
            Project.objects.filter(pk=found.pk).update(classes=[*found.classes, "film"])


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize(
    "classes", [["no", "yes"], ["yes", "not"], ["film", "yes", "no"], ["yes", "no", "No"], ["yes", "no", " "]]
)
def test_the_database_lets_classes_come_behind_alone(project, manager, classes, paid):
    if paid:
        charge(project)
    with kept_by_the_database():
        Project.objects.filter(pk=project.pk).update(classes=classes)
    with without_rules("annotation_project"):
        Project.objects.filter(pk=project.pk).update(classes=classes)
    assert Project.objects.get(pk=project.pk).classes == classes


def test_other_classes_are_refused_as_before(project, manager):
    for classes in (["no", "yes"], ["yes", "film", "no"], ["yes", "film"]):
        with pytest.raises(ConfigurationFrozen, match="classes"):
            configure_project(project=project, changes={"classes": classes}, actor=manager)


def test_before_anything_rests_on_them_every_kind_of_project_may_have_one_more(manager):
    crowd = open_preset(manager, "voice-crowd")
    assert add_class(project=crowd, further=FurtherClass("film"), known_beforehand=True, actor=manager).classes == [
        "yes",
        "no",
        "film",
    ]


def test_two_managers_who_add_at_once_add_two(project, manager):
    waiting = Barrier(2)

    def add(name):
        waiting.wait(120)
        try:
            add_class(project=project, further=FurtherClass(name), known_beforehand=True, actor=manager)
        finally:
            connection.close()

    threads = [Thread(target=add, args=[name]) for name in ("film", "food")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(Project.objects.get(pk=project.pk).classes[2:]) == ["film", "food"]


CLASSES = ["bike", "car: old", "bicycle"]
LOOKS = {
    "class_descriptions": ["bike: two wheels", "car: old: four wheels", "bike: a motor"],
    "class_groups": ["bike: on roads", "bicycle: bike lanes"],
    "class_colours": ["bike: red", "bike lanes: green"],
    "class_keys": ["bike: m"],
}


@pytest.fixture
def opened():
    opened = make_project(classes=CLASSES, **LOOKS)
    open_records(opened, 3)
    return opened


def rename(opened, name="bike", to="motor bike", known=True):
    return rename_class(project=opened, name=name, to=to, known_beforehand=known, actor=opened.created_by)


def refused(opened, **renamed):
    with pytest.raises(InvalidConfiguration) as refusal:
        rename(opened, **renamed)
    assert Project.objects.get(pk=opened.pk).classes == opened.classes
    return refusal.value.broken


def test_answers_keep_their_number_and_lines_go_along(opened):
    given = [answer(opened, choice).pk for choice in (0, 1, 2)]
    opened = rename(merge_class(project=opened, name="bike", into="bicycle", known_beforehand=True))
    opened = rename(opened, "bicycle", "push bike")
    assert opened.classes == ["motor bike", "car: old", "push bike"]
    assert {name: one["into"] for name, one in opened.merged_classes.items()} == {"motor bike": "push bike"}
    assert {name: list(opened.settings[name]) for name in LOOKS} == {
        "class_descriptions": ["motor bike: two wheels", "car: old: four wheels", "motor bike: a motor"],
        "class_groups": ["motor bike: on roads", "push bike: bike lanes"],
        "class_colours": ["motor bike: red", "bike lanes: green"],
        "class_keys": ["motor bike: m"],
    }
    assert list(Label.objects.filter(pk__in=given).order_by("pk").values_list("choice", flat=True)) == [0, 1, 2]
    written = b"".join(export_labels(project=opened, format=ExportFormat.CSV)).decode()
    assert ("motor bike" in written, ",bike," in written) == (True, False)


def test_a_file_may_use_every_earlier_name(opened):
    opened = rename(rename(opened), "motor bike", "moped")
    assert opened.renamed_classes == {"bike": "moped", "motor bike": "moped"}
    layout = layout_of(opened, "public_test", {"values": {"B": "bike"}})
    assert dict(layout.spelled) == {"bike": "moped", "motor bike": "moped", "B": "moped"}


def test_a_class_gets_its_earlier_name_back(opened):
    opened = rename(rename(opened), "motor bike", "bike")
    assert (opened.classes, opened.renamed_classes) == (CLASSES, {"motor bike": "bike"})
    assert rename(opened, to="Bike").classes[0] == "Bike"


def test_before_anything_rests_on_a_class_its_earlier_name_is_forgotten():
    opened = rename(make_project(classes=CLASSES, **LOOKS))
    assert (opened.classes[0], opened.renamed_classes) == ("motor bike", {})
    assert opened.settings["class_keys"] == ["motor bike: m"]


def test_a_name_that_another_class_has_or_had_is_refused_with_the_rule(opened):
    renamed = rename(opened)
    for taken in ("BICYCLE", "motor bike"):
        assert refused(renamed, name="car: old", to=taken)["to"] == "This class already exists."
    assert refused(renamed, name="car: old", to="bike")["to"] == "This class already exists."
    assert refused(renamed, name="bike")["name"] == "There is no class of this name."
    assert refused(renamed, name="bicycle", to=" \u200b")["to"] == "A class has a name of at most 200 letters."
    assert refused(renamed, name="bicycle", to="b", known=False) == {"known_beforehand": NOT_BEFOREHAND}
    changes = {"classes": [*renamed.classes, "bike"]}
    with pytest.raises(InvalidConfiguration, match="already exists"):
        configuring.configure_project(project=renamed, changes=changes, actor=opened.created_by)


def test_a_crowd_and_a_stream_rename_what_they_list_and_steps_stay(manager):
    crowd, stream, steps = other_projects(manager).values()
    for opened in (crowd, stream):
        assert rename(opened, opened.classes[0], "renamed").classes[0] == "renamed"
    assert "Not for ratings or yes/no questions." in refused(steps, name=steps.classes[0], to="renamed")["name"]


@pytest.mark.parametrize("renamed", [{}, {"bike": "car: old"}, {"bike": "gone"}, {"bicycle": "moped"}])
def test_the_database_holds_the_earlier_name(opened, renamed):
    with pytest.raises(IntegrityError), transaction.atomic():
        Project.objects.filter(pk=opened.pk).update(classes=["moped", *CLASSES[1:]], renamed_classes=renamed)
    Project.objects.filter(pk=opened.pk).update(classes=["moped", *CLASSES[1:]], renamed_classes={"bike": "moped"})
