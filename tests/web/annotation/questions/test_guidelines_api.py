import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from annotation.models import Guidelines, Membership, Role
from annotation.models.people import IdempotentAnswer
from annotation.projects.services.configuring import configure_project
from annotation.questions.services.guidelines import save_guidelines
from annotation.work.services.tokens import Scope
from tests.clients import program_of
from tests.factories import a_png, add_members, make_annotators, make_manager, make_project, make_user
from tests.programs import Caller

pytestmark = pytest.mark.django_db
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
