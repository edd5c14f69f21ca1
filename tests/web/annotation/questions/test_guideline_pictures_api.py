import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from annotation.models import Role
from annotation.questions.services.guidelines import save_guidelines
from annotation.work.services.tokens import Scope
from tests.clients import program_of
from tests.factories import a_png, add_members, make_annotators, make_project, make_user
from tests.rest_caller import Caller

pytestmark = pytest.mark.django_db


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
