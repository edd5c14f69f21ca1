"""Guidelines come in versions that stay, and each person knows one of them."""

from hashlib import sha256
from io import BytesIO

import pytest
from django.core.files.storage import default_storage
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.models import GuidelinePicture, Guidelines, Membership
from annotation.models.history import ProjectChange
from annotation.projects.services import lifecycle, opening
from annotation.questions.guidelines import (
    NAME_LENGTH,
    current_guidelines,
    guidelines_context,
    picture_names,
    snippet_of,
)
from annotation.questions.services import guidelines
from annotation.questions.services.guidelines import picture_content, save_guidelines
from tests.factories import a_png, make_annotators, make_manager, make_project, make_user
from tests.refusing import refused

pytestmark = pytest.mark.django_db
EXAMPLE = {"text": "rain tomorrow?", "choice": 1, "reason": "asks for the weather"}


def test_the_first_words_are_version_one_and_a_change_is_version_two():
    project = make_project(guidelines="Take the first.")
    manager = project.created_by
    saved = guidelines.save_guidelines(project=project, text="Take the best.", examples=[EXAMPLE], author=manager)
    assert saved.version == project.guidelines_version == 2
    assert list(Guidelines.objects.order_by("version").values_list("version", "text")) == [
        (1, "Take the first."),
        (2, "Take the best."),
    ]
    project.refresh_from_db()
    assert current_guidelines(project).examples == [EXAMPLE]
    assert project.guidelines == "Take the best."


def test_words_where_there_were_none_are_version_one():
    project = make_project()
    saved = guidelines.save_guidelines(project=project, text="New.", examples=[], author=project.created_by)
    assert (saved.version, Guidelines.objects.count()) == (1, 1)


def test_the_same_words_again_are_no_change():
    project = make_project(guidelines="As it is.")
    same = guidelines.save_guidelines(project=project, text="As it is.", examples=[], author=project.created_by)
    assert (same.version, Guidelines.objects.count()) == (1, 0)


def test_what_a_person_knows_is_noted_for_them_alone():
    project = make_project(guidelines_version=4)
    person, other = make_annotators(project, 2)
    guidelines.mark_guidelines_seen(project=project, user=person)
    seen = dict(Membership.objects.values_list("user", "guidelines_seen"))
    assert seen == {person.pk: 4, other.pk: None}


def add(project, data=None, description="a ripe tomato"):
    return guidelines.add_guideline_picture(
        project=project, data=a_png() if data is None else data, description=description, by=project.created_by
    )


def opened(person, text):
    return opening.create_project(
        name="copy",
        preset="pool-experts",
        owner=person,
        data_kind="text",
        classes=["a", "b"],
        question="Which?",
        guidelines=text,
    )


def show(project, picture):
    text = "Look.\n\n" + snippet_of(picture.digest[:NAME_LENGTH], picture.description)
    return save_guidelines(project=project, text=text, examples=[], author=project.created_by)


def test_it_is_made_anew_and_kept_once_under_its_digest(project):
    said = PngInfo()
    said.add_text("Comment", "taken at home")
    kept = add(project, a_png(width=30, height=20, pnginfo=said), "  a ripe\n tomato ")
    content = picture_content(kept)
    assert (kept.width, kept.height, kept.description) == (30, 20, "a ripe tomato")
    assert kept.digest == sha256(content).hexdigest()
    assert b"taken at home" not in content
    assert Image.open(BytesIO(content)).format == "WEBP"
    assert add(project, a_png(width=30, height=20)).pk == kept.pk
    assert GuidelinePicture.objects.count() == 1


@pytest.mark.parametrize(
    ("data", "description", "why"),
    [
        (b"GIF89a" + b"\0" * 40, "x", "is not a readable PNG, JPEG or WebP image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "x", "is not a readable"),
        (b"", "x", "is not a readable"),
        (b"x" * (guidelines.LARGEST_FILE + 1), "x", "is larger than 10,485,760 bytes"),
        (None, " ", "what the picture shows"),
        (None, "x" * 301, "what the picture shows"),
    ],
)
def test_what_is_no_picture_or_says_nothing_is_refused(project, data, description, why):
    with pytest.raises(InvalidUpload, match=why):
        add(project, data, description)
    assert not GuidelinePicture.objects.exists()


def test_a_project_keeps_a_few(project, monkeypatch):
    monkeypatch.setattr(guidelines, "MOST_PICTURES", 1)
    first = add(project)
    with pytest.raises(InvalidConfiguration, match="at most 1 pictures"):
        add(project, a_png(colour="red"))
    guidelines.delete_guideline_picture(picture=first)
    add(project, a_png(colour="red"))


def test_the_database_refuses_a_second_row_and_one_without_words(project):
    kept = add(project)
    told = {"project": project, "width": 1, "height": 1, "added_by": project.created_by}
    with refused("annotation_guidelinepicture_once"):
        GuidelinePicture.objects.create(digest=kept.digest, description="x", **told)
    with refused("annotation_guidelinepicture_described"):
        GuidelinePicture.objects.create(digest="0" * 64, description="", **told)


def test_one_that_is_shown_stays_and_one_that_was_is_told_by_its_words(project):
    kept = add(project)
    show(project, kept)
    with pytest.raises(InvalidConfiguration, match="The guidelines show this picture"):
        guidelines.delete_guideline_picture(picture=kept)
    save_guidelines(project=project, text="Look.", examples=[], author=project.created_by)
    guidelines.delete_guideline_picture(picture=kept)
    assert not GuidelinePicture.objects.exists()


def test_guidelines_show_pictures_of_their_own_project_alone(project):
    kept = add(make_project())
    with pytest.raises(InvalidConfiguration, match="Line 3: add the picture under Pictures"):
        show(project, kept)
    show(kept.project, kept)
    shown = guidelines_context(kept.project, view="annotation:told_picture")["guidelines_shown"]
    assert f"/projects/{kept.project.slug}/label/guidelines/{kept.digest}/" in shown
    assert picture_names(kept.project) == {kept.digest[:16]}


def test_they_come_along_to_a_copy_of_who_manages_both(project):
    kept = add(project)
    text = snippet_of(kept.digest[:NAME_LENGTH], kept.description)
    assert picture_names(opened(make_user(), text)) == set()
    # Who only labels by them takes none along.
    annotator = make_annotators(project, 1)[0]
    assert picture_names(opened(annotator, text)) == set()
    copied = opened(make_manager(project), text + "\n\n![gone](picture:0123456789abcdef)")
    (brought,) = copied.guideline_pictures.all()
    assert (brought.digest, picture_content(brought)) == (kept.digest, picture_content(kept))
    assert (brought.description, brought.width, brought.height) == (kept.description, kept.width, kept.height)
    guidelines.delete_guideline_picture(picture=kept)
    assert picture_names(copied) == {brought.digest[:NAME_LENGTH]}


def test_a_copy_brings_no_more_than_a_project_keeps(project, monkeypatch):
    shown = [add(project, a_png(colour=colour)) for colour in ("red", "green")]
    text = "\n\n".join(snippet_of(kept.digest[:NAME_LENGTH], "x") for kept in shown)
    monkeypatch.setattr(guidelines, "MOST_PICTURES", 1)
    with pytest.raises(InvalidConfiguration, match="at most 1 pictures"):
        opened(make_manager(project), text)


def test_they_go_with_their_project(project):
    kept, other = add(project), add(make_project())
    show(project, kept)
    lifecycle.archive_project(project=project)
    lifecycle.request_deletion(project=project, typed=project.slug, keep_releases=False, actor="t", send=False)
    lifecycle.erase_content(project=project)
    lifecycle.erase_uploads(project=project)
    assert list(GuidelinePicture.objects.all()) == [other]
    assert not default_storage.exists(kept.file)
    assert picture_content(other)


def test_the_log_tells_that_guidelines_changed_and_never_quotes_them(project):
    save_guidelines(project=project, text="Like: my account is 4711.", examples=[], author=project.created_by)
    save_guidelines(project=project, text="Like: any account.", examples=[], author=project.created_by)
    lifecycle.archive_project(project=project)
    lifecycle.request_deletion(project=project, typed=project.slug, keep_releases=False, actor="t", send=False)
    changes = [change.fields for change in ProjectChange.objects.filter(project=project).order_by("pk")]
    assert changes[0] == {"guidelines": [None, "changed"]} | changes[0]
    assert {"guidelines": [None, "changed"], "guidelines_version": [1, 2]} in changes
    assert "4711" not in str(changes)
    lifecycle.erase_content(project=project)
    assert not Guidelines.objects.filter(project=project).exists()
