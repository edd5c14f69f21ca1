from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.models import Query
from annotation.questions.services import labelling
from tests import learning
from tests.clients import browser_of
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crowd(manager):
    return learning.open_crowd(manager)


def page_of(project, person):
    client = browser_of(person)
    return client.get(reverse("learner:ranked_pool", args=[project.slug]))


def text_of(response):
    return tight(response.content.decode())


def test_what_is_left_in_answers_in_money_and_in_questions(crowd, manager):
    learning.fill_crowd(crowd)
    assert text_of(page_of(crowd, manager)).count("no limit") == 3
    limits = {"labels_limit": 900, "money_limit": Decimal("50.10"), "price_per_label": Decimal("0.10")}
    labelling.set_label_budget(project=crowd, currency="EUR", **limits)
    html = text_of(page_of(crowd, manager))
    assert "<dd>501</dd>" in html
    assert "<dd>50.10 EUR</dd>" in html
    assert "random order" in html
    opened = list(Query.objects.values_list("pk", flat=True)[:5])
    Query.objects.filter(pk__in=opened).update(state="open", round_number=1, open_slots=1)
    html = text_of(page_of(crowd, manager))
    assert "<dd>496</dd>" in html
    assert "<dd>49.60 EUR</dd>" in html
