import numpy as np
import pytest
from django.conf import settings as site
from django.urls import reverse

from annotation.models import Query, Role
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_project, make_records

pytestmark = pytest.mark.django_db
TEMPLATES = site.BASE_DIR.glob("*/templates/**/*.html")


@pytest.fixture
def project(own_storage):
    np.save(own_storage / "pixels.npy", np.zeros((1, 4, 5), dtype=np.uint8))
    made = make_project(data_kind="image", image_height=4, image_width=5, overlap=2)
    records = make_records(made, rows=1, pixels="pixels.npy")
    queue.open_queries(project=made, round_number=1, record_ids=[record.pk for record in records])
    return made


@pytest.mark.parametrize("name", ["own_answers", "review", "checks"])
def test_a_listed_picture_is_called_after_its_question(project, name):
    people = make_annotators(project, 2)
    add_members(project, people[0], role=Role.MANAGER)
    query = Query.objects.get()
    for choice, person in enumerate(people):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    if name == "checks":
        gold.keep_as_check(query=query, choice=0, owner=people[0], answered=0)
    client = browser_of(people[0])
    html = client.get(reverse(f"annotation:{name}", args=[project.slug])).content.decode()
    assert f'alt="The image of question {query.pk}"' in html


def test_no_picture_of_a_page_is_kept_from_who_listens():
    pages = list(TEMPLATES)
    assert len(pages) > 100
    assert [page.name for page in pages if 'alt=""' in page.read_text()] == []
