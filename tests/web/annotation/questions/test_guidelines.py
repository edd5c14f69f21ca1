import io
import time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from PIL import Image

from annotation.models import GuidelinePicture, Guidelines, Membership, Role
from annotation.models.people import IdempotentAnswer
from annotation.projects.services.configuring import configure_project
from annotation.questions.services.guidelines import picture_content, save_guidelines
from annotation.work.services.tokens import Scope
from tests.bombs import jpeg_of_scans
from tests.clients import browser_of, program_of
from tests.factories import a_png, add_members, make_annotators, make_manager, make_project, make_user, open_records
from tests.programs import Caller

pytestmark = pytest.mark.django_db


def test_a_change_is_a_new_version_and_the_old_one_stays(project, web):
    address = reverse("annotation:guidelines", args=(project.slug,))
    sent = {"text": "As it will be.", "examples": "rain? | music | no, a song\n\ngoal | sport"}
    assert web.post(address, sent).status_code == 302
    html = web.get(address).content.decode()
    assert "Version 2." in html
    assert "rain? | music | no, a song" in html
    assert "As it is." in html
    assert Guidelines.objects.get(version=2).examples == [
        {"text": "rain?", "choice": 1, "reason": "no, a song"},
        {"text": "goal", "choice": 0, "reason": ""},
    ]


def test_a_preview_shows_them_and_stores_nothing(project, web):
    address = reverse("annotation:guidelines", args=(project.slug,))
    sent = {"text": "# Songs\n\n- *all* of them <b>", "examples": "rain? | music | no, a song", "preview": "1"}
    html = web.post(address, sent).content.decode()
    assert '<h2 dir="auto">Songs</h2>' in html
    assert "<em>all</em> of them &lt;b&gt;" in html
    assert "no, a song</span>" in html
    assert not Guidelines.objects.exists()


@pytest.mark.parametrize("examples", ["rain?", "rain? | weather", "| music"])
def test_an_example_that_cannot_be_read_is_named(project, web, examples):
    address = reverse("annotation:guidelines", args=(project.slug,))
    response = web.post(address, {"text": "New.", "examples": "goal | sport\n" + examples})
    assert response.status_code == 422
    assert "Line 2" in response.content.decode()
    assert not Guidelines.objects.exists()


EXAMPLE = {"text": "a pear", "choice": 1, "reason": "it is round | sweet"}


@pytest.fixture
def program(project):
    return Caller(make_manager(project))


def test_a_version_is_written_read_and_known(project, program):
    (ann,) = make_annotators(project, 1)
    at, reader = f"projects/{project.slug}/guidelines", Caller(ann)
    before = reader.get(at).json()["version"]
    versions = [program.post(at, {"text": "# Fruit", "examples": [EXAMPLE]}, key=key).json() for key in ("a", "a", "")]
    # The same words again are the version that stands.
    assert versions == 3 * [{"version": versions[0]["version"]}]
    assert versions[0]["version"] >= before
    assert reader.get(at).json() == versions[0] | {"text": "# Fruit", "examples": [EXAMPLE], "classes": []}
    assert Guidelines.objects.filter(text="# Fruit").count() == 1
    assert not IdempotentAnswer.objects.filter(body__icontains="fruit").exists()
    assert reader.post(f"{at}/read").status_code == 204
    assert Membership.objects.get(user=ann).guidelines_seen == versions[0]["version"]


def test_what_each_class_means_comes_with_them(project):
    lines = ["music: what is played", 'music: "a song"', "Sport: what is trained"]
    configure_project(project=project, changes={"class_descriptions": lines}, actor=project.created_by)
    (ann,) = make_annotators(project, 1)
    assert Caller(ann).get(f"projects/{project.slug}/guidelines").json()["classes"] == [
        {"name": "sport", "words": ["what is trained"], "examples": []},
        {"name": "music", "words": ["what is played"], "examples": ["a song"]},
    ]


def test_they_are_added_listed_and_deleted():
    project, manager = make_project(), make_user()
    add_members(project, manager, role=Role.MANAGER)
    scopes = [Scope.PROJECTS_READ, Scope.PROJECTS_WRITE]
    client = program_of(manager, *scopes)
    address = f"/api/v1/projects/{project.slug}/guidelines/pictures"

    def add(data):
        return client.post(address, {"file": SimpleUploadedFile("a.png", data), "description": "a ripe tomato"})

    made = add(a_png()).json()
    assert (made["width"], made["height"], made["description"]) == (3, 2, "a ripe tomato")
    assert made["markdown"] == f"![a ripe tomato](picture:{made['digest'][:16]})"
    assert add(a_png()).json() == made
    assert client.get(address).json() == [made]
    (ann,) = make_annotators(project, 1)
    for name in (made["digest"], made["digest"][:16]):
        seen = Caller(ann).get(f"projects/{project.slug}/guidelines/pictures/{name}")
        assert (seen["Content-Type"], Image.open(io.BytesIO(seen.content)).size) == ("image/webp", (3, 2))
    for name in (made["digest"][:15], "0" * 16, "%"):
        assert Caller(ann).get(f"projects/{project.slug}/guidelines/pictures/{name}").status_code == 404
    wrong = add(b"none")
    assert (wrong.status_code, wrong["Content-Type"]) == (422, "application/problem+json")
    assert wrong.json()["detail"] == "file: is not a readable PNG, JPEG or WebP image"
    save_guidelines(project=project, text=made["markdown"], examples=[], author=manager)
    kept = f"{address}/{made['digest']}"
    assert client.delete(kept).status_code == 422
    save_guidelines(project=project, text="none", examples=[], author=manager)
    assert client.delete(kept).status_code == 204
    assert client.delete(kept).status_code == 404
    assert client.get(address).json() == []


@pytest.fixture
def manager(project):
    person = make_user("manager")
    add_members(project, person, role=Role.MANAGER)
    return browser_of(person)


def add(manager, project, data=None, description="a [ripe] tomato"):
    file = SimpleUploadedFile("tomato.png", a_png() if data is None else data)
    return manager.post(
        reverse("annotation:add_guideline_picture", args=[project.slug]), {"file": file, "description": description}
    )


def test_a_picture_comes_with_its_line_and_is_shown_where_the_line_is(project, manager):
    page = reverse("annotation:guidelines", args=[project.slug])
    assert add(manager, project).status_code == 302
    kept = GuidelinePicture.objects.get()
    line = f"![a \\[ripe\\] tomato](picture:{kept.digest[:16]})"
    assert f'<code dir="auto">{line}</code>' in manager.get(page).content.decode()
    typed = {"text": f"Look:\n{line}", "examples": ""}
    source = reverse("annotation:guideline_picture", args=[project.slug, kept.digest])
    preview = manager.post(page, typed | {"preview": "1"}).content.decode()
    assert f'<img src="{source}" alt="a [ripe] tomato" width="3" height="2" loading="lazy">' in preview
    assert not Guidelines.objects.exists()
    assert manager.post(page, typed).status_code == 302
    (person,) = make_annotators(project, 1)
    open_records(project, 1)
    told = reverse("annotation:told_picture", args=[project.slug, kept.digest])
    assert (
        f'<img src="{told}"'
        in browser_of(person).get(reverse("annotation:label", args=[project.slug])).content.decode()
    )
    drop = reverse("annotation:drop_guideline_picture", args=[project.slug, kept.digest])
    assert "The guidelines show this picture" in manager.post(drop).content.decode()
    manager.post(page, {"text": "Look.", "examples": ""})
    assert manager.post(drop).status_code == 302
    assert manager.post(drop).status_code == 404
    # The version before says what it showed.
    assert not GuidelinePicture.objects.exists()


def test_a_small_file_that_takes_minutes_to_draw_is_refused_at_once(project, manager):
    """Ten of these, of 105 kB each, silenced the site for a minute."""
    began = time.process_time()
    response = add(manager, project, jpeg_of_scans(600))
    assert "is a JPEG of more than 32 scans" in response.content.decode()
    assert not GuidelinePicture.objects.exists()
    assert time.process_time() - began < 5


def test_it_is_served_with_its_digest_to_those_who_are_asked_and_to_managers(project, manager):
    add(manager, project)
    kept = GuidelinePicture.objects.get()
    (person,) = make_annotators(project, 1)
    engineer, reviewer, stranger = make_user(), make_user(), make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    add_members(project, reviewer, role=Role.REVIEWER)
    told, written = (
        reverse(f"annotation:{name}", args=[project.slug, kept.digest])
        for name in ("told_picture", "guideline_picture")
    )
    for browser, address in ((browser_of(person), told), (manager, written), (browser_of(reviewer), written)):
        answer = browser.get(address)
        assert (answer.status_code, answer.content) == (200, picture_content(kept))
        assert answer["Content-Type"] == "image/webp"
        assert answer["ETag"] == f'"{kept.digest}"'
        assert answer["Cache-Control"] == "private, no-cache"
        again = browser.get(address, headers={"If-None-Match": answer["ETag"]})
        assert (again.status_code, again["Cache-Control"]) == (304, "private, no-cache")
        assert browser.get(address.replace(kept.digest, "0" * 64)).status_code == 404
    assert {browser_of(stranger).get(address).status_code for address in (told, written)} == {404}
    assert browser_of(engineer).get(written).status_code == 404
    assert browser_of(engineer).get(told).status_code == 403
    assert browser_of(reviewer).get(told).status_code == 403
    # What a browser keeps opens to nobody who may not see it any more.
    gone = browser_of(person)
    person.memberships.filter(project=project).delete()
    assert gone.get(told, headers={"If-None-Match": f'"{kept.digest}"'}).status_code == 404
    assert browser_of(person).get(written).status_code == 404
    # A picture has the address of its own project alone.
    assert manager.get(written.replace(project.slug, make_project().slug)).status_code == 404
    assert Client().get(told).status_code == 302
    assert "img-src 'self'" in manager.get(written)["Content-Security-Policy"]


def test_whoever_reviews_sees_them_beside_the_question(project, manager):
    add(manager, project, description="a tomato")
    name = GuidelinePicture.objects.get().digest
    manager.post(
        reverse("annotation:guidelines", args=[project.slug]),
        {"text": f"![a tomato](picture:{name[:16]})", "examples": ""},
    )
    reviewer = make_user()
    add_members(project, reviewer, role=Role.REVIEWER)
    page = browser_of(reviewer).get(reverse("annotation:review", args=[project.slug])).content.decode()
    source = reverse("annotation:guideline_picture", args=[project.slug, name])
    assert f'<img src="{source}" alt="a tomato"' in page


def test_the_page_says_which_picture_did_not_come_with_a_copy(manager, project):
    other, person = make_project(guidelines="Look.\n\n![a tomato](picture:0123456789abcdef)"), make_user("second")
    add_members(other, person, role=Role.MANAGER)
    page = browser_of(person).get(reverse("annotation:guidelines", args=[other.slug])).content.decode()
    assert "Line 3: add the picture under Pictures" in page
    plain = manager.get(reverse("annotation:guidelines", args=[project.slug])).content.decode()
    assert "add the picture under Pictures" not in plain
