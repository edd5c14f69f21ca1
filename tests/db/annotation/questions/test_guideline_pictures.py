"""Pictures of guidelines: made anew, few and small, shown where they are named, and gone with their project."""

from hashlib import sha256
from io import BytesIO

import pytest
from django.db import connection
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.models import GuidelinePicture
from annotation.projects.services import lifecycle, opening
from annotation.questions.guidelines import NAME_LENGTH, snippet_of
from annotation.questions.services import guidelines
from annotation.questions.services.guidelines import save_guidelines
from dpal_site.operations import roles
from tests.db.annotation.models.test_constraints import refused
from tests.factories import a_png, make_annotators, make_manager, make_project, make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project()


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
    content = bytes(kept.content)
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
    monkeypatch.setattr(guidelines, "MOST_BYTES", 50)
    monkeypatch.setattr(guidelines, "MOST_PICTURES", 9)
    with pytest.raises(InvalidConfiguration, match="of 50 bytes together"):
        add(project, a_png(colour="green"))


def test_the_database_holds_what_is_promised_of_them(project):
    kept = add(project)

    def another(number, **changed):
        content = changed.pop("content", b"%d" % number)
        told = {"digest": sha256(content).hexdigest(), "description": "x", "width": 1, "height": 1} | changed
        return GuidelinePicture(project=project, content=content, added_by=project.created_by, **told)

    with refused("annotation_guidelinepicture_once"):
        another(1, content=bytes(kept.content), digest=kept.digest).save()
    with refused("annotation_guidelinepicture_digest"):
        another(1, digest="0" * 64).save()
    with refused("annotation_guidelinepicture_described"):
        another(1, description="").save()
    with refused("annotation_guidelinepicture_sides"):
        another(1, width=2049).save()
    with refused("annotation_guidelinepicture_bytes"):
        another(1, content=b"x" * (2**20 + 1)).save()
    with as_owner(), refused("annotation_guidelinepicture_fixed"):
        GuidelinePicture.objects.update(description="something else")
    for number in range(guidelines.MOST_PICTURES - 1):
        another(number).save()
    with refused("annotation_guidelinepicture_room"):
        another(99).save()


def test_all_of_them_together_are_bounded(project):
    size = 2**20

    def keep(content):
        told = {"digest": sha256(content).hexdigest(), "description": "x", "width": 1, "height": 1}
        GuidelinePicture.objects.create(project=project, content=content, added_by=project.created_by, **told)

    for number in range(16):
        keep(bytes([number]) * size)
    with refused("annotation_guidelinepicture_room"):
        keep(b"one more")
    with pytest.raises(InvalidConfiguration, match="bytes together"):
        add(project)


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
    with pytest.raises(InvalidConfiguration, match="Line 3: the project has no picture of that name"):
        show(project, kept)
    (shown,) = guidelines.shown_pictures(
        kept.project, f"![x](picture:{kept.digest[:16]})", view="annotation:told_picture"
    )
    assert shown.url == f"/projects/{kept.project.slug}/label/guidelines/{kept.digest}/"
    assert guidelines.shown_pictures(kept.project, "none", view="annotation:told_picture") == ()
    assert guidelines.names_of_pictures(kept.project) == {kept.digest[:16]}
    assert list(guidelines.guideline_pictures(kept.project)) == [kept]


def test_they_come_along_to_a_copy_of_who_manages_both(project):
    kept = add(project)
    text = snippet_of(kept.digest[:NAME_LENGTH], kept.description)
    assert guidelines.names_of_pictures(opened(make_user(), text)) == set()
    # Who only labels by them takes none along.
    annotator = make_annotators(project, 1)[0]
    assert guidelines.names_of_pictures(opened(annotator, text)) == set()
    copied = opened(make_manager(project), text + "\n\n![gone](picture:0123456789abcdef)")
    (brought,) = copied.guideline_pictures.all()
    assert (brought.digest, bytes(brought.content)) == (kept.digest, bytes(kept.content))
    assert (brought.description, brought.width, brought.height) == (kept.description, kept.width, kept.height)
    guidelines.delete_guideline_picture(picture=kept)
    assert guidelines.names_of_pictures(copied) == {brought.digest[:NAME_LENGTH]}


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
    assert list(GuidelinePicture.objects.all()) == [other]


def test_the_label_pages_read_them_and_do_nothing_else():
    assert roles.LABEL_GRANTS["annotation_guidelinepicture"] == ("SELECT",)
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('annotation_guidelinepicture', 'UPDATE')")
        assert cursor.fetchone() == (False,)
