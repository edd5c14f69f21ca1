"""A class has another name: answers keep their number, and what speaks of the class goes along."""

import pytest
from django.db import IntegrityError, transaction

from annotation.choices.classes import NOT_BEFOREHAND
from annotation.data.services.label_files import ExportFormat, export_labels
from annotation.data.services.mappings import layout_of
from annotation.errors import InvalidConfiguration
from annotation.models import Label, Project
from annotation.projects.services import configuring
from annotation.projects.services.classes import merge_class, rename_class
from tests.db.annotation.projects.test_classes import other_projects
from tests.db.annotation.projects.test_merged_classes import answer
from tests.factories import make_project, open_records

pytestmark = pytest.mark.django_db(transaction=True)
CLASSES = ["bike", "car: old", "bicycle"]
LOOKS = {
    "class_descriptions": ["bike: two wheels", "car: old: four wheels", "bike: a motor"],
    "class_groups": ["bike: on roads", "bicycle: bike lanes"],
    "class_colours": ["bike: red", "bike lanes: green"],
    "class_keys": ["bike: m"],
}


@pytest.fixture
def project():
    opened = make_project(classes=CLASSES, **LOOKS)
    open_records(opened, 3)
    return opened


def rename(project, name="bike", to="motor bike", known=True):
    return rename_class(project=project, name=name, to=to, known_beforehand=known, actor=project.created_by)


def refused(project, **renamed):
    with pytest.raises(InvalidConfiguration) as refusal:
        rename(project, **renamed)
    assert Project.objects.get(pk=project.pk).classes == project.classes
    return refusal.value.broken


def test_answers_keep_their_number_and_lines_go_along(project):
    given = [answer(project, choice).pk for choice in (0, 1, 2)]
    project = rename(merge_class(project=project, name="bike", into="bicycle", known_beforehand=True))
    project = rename(project, "bicycle", "push bike")
    assert project.classes == ["motor bike", "car: old", "push bike"]
    assert {name: one["into"] for name, one in project.merged_classes.items()} == {"motor bike": "push bike"}
    assert {name: list(project.settings[name]) for name in LOOKS} == {
        "class_descriptions": ["motor bike: two wheels", "car: old: four wheels", "motor bike: a motor"],
        "class_groups": ["motor bike: on roads", "push bike: bike lanes"],
        "class_colours": ["motor bike: red", "bike lanes: green"],
        "class_keys": ["motor bike: m"],
    }
    assert list(Label.objects.filter(pk__in=given).order_by("pk").values_list("choice", flat=True)) == [0, 1, 2]
    written = b"".join(export_labels(project=project, format=ExportFormat.CSV)).decode()
    assert ("motor bike" in written, ",bike," in written) == (True, False)


def test_a_file_may_use_every_earlier_name(project):
    project = rename(rename(project), "motor bike", "moped")
    assert project.renamed_classes == {"bike": "moped", "motor bike": "moped"}
    layout = layout_of(project, "public_test", {"values": {"B": "bike"}})
    assert dict(layout.spelled) == {"bike": "moped", "motor bike": "moped", "B": "moped"}


def test_a_class_gets_its_earlier_name_back(project):
    project = rename(rename(project), "motor bike", "bike")
    assert (project.classes, project.renamed_classes) == (CLASSES, {"motor bike": "bike"})
    assert rename(project, to="Bike").classes[0] == "Bike"


def test_before_anything_rests_on_a_class_its_earlier_name_is_forgotten():
    project = rename(make_project(classes=CLASSES, **LOOKS))
    assert (project.classes[0], project.renamed_classes) == ("motor bike", {})
    assert project.settings["class_keys"] == ["motor bike: m"]


def test_a_name_that_another_class_has_or_had_is_refused_with_the_rule(project):
    renamed = rename(project)
    for taken in ("BICYCLE", "motor bike"):
        assert refused(renamed, name="car: old", to=taken)["to"] == "This class already exists."
    assert refused(renamed, name="car: old", to="bike")["to"] == "This class already exists."
    assert refused(renamed, name="bike")["name"] == "There is no class of this name."
    assert refused(renamed, name="bicycle", to=" \u200b")["to"] == "A class has a name of at most 200 letters."
    assert refused(renamed, name="bicycle", to="b", known=False) == {"known_beforehand": NOT_BEFOREHAND}
    changes = {"classes": [*renamed.classes, "bike"]}
    with pytest.raises(InvalidConfiguration, match="already exists"):
        configuring.configure_project(project=renamed, changes=changes, actor=project.created_by)


def test_a_crowd_and_a_stream_rename_what_they_list_and_steps_stay(manager):
    crowd, stream, steps = other_projects(manager).values()
    for project in (crowd, stream):
        assert rename(project, project.classes[0], "renamed").classes[0] == "renamed"
    assert "Not for ratings or yes/no questions." in refused(steps, name=steps.classes[0], to="renamed")["name"]


@pytest.mark.parametrize("renamed", [{}, {"bike": "car: old"}, {"bike": "gone"}, {"bicycle": "moped"}])
def test_the_database_holds_the_earlier_name(project, renamed):
    with pytest.raises(IntegrityError), transaction.atomic():
        Project.objects.filter(pk=project.pk).update(classes=["moped", *CLASSES[1:]], renamed_classes=renamed)
    Project.objects.filter(pk=project.pk).update(classes=["moped", *CLASSES[1:]], renamed_classes={"bike": "moped"})
