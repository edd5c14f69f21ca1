"""Pictures of guidelines over HTTP: added with words, shown by the site alone, to members alone, kept by browsers."""

import time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.models import GuidelinePicture, Guidelines, Role
from annotation.questions.services.guidelines import picture_content
from tests.bombs import jpeg_of_scans
from tests.clients import browser_of
from tests.factories import a_png, add_members, make_annotators, make_project, make_user, open_records

pytestmark = pytest.mark.django_db


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
