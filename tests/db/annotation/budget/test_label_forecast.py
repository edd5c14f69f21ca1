from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from annotation.budget.label_budget import label_budget_forecast
from annotation.models import Label, Project, Role
from annotation.questions.services import labelling, labels, queue
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_project, make_user, open_records
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)


def answered(project: Project, count: int, *, hours_ago: float) -> None:
    open_records(project, count)
    (annotator,) = make_annotators(project, 1)
    for _ in range(count):
        assignment = queue.claim_next(project=project, user=annotator)
        assert assignment is not None
        label = labels.submit_label(assignment=assignment, choice=0)
        with as_owner(), connection.cursor() as cursor:
            # Labels are never rewritten; a test may still say when one was given.
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(
                "UPDATE annotation_label SET created_at = now() - %s WHERE id = %s",
                [timedelta(hours=hours_ago), label.pk],
            )
            cursor.execute("SET session_replication_role = DEFAULT")
    assert Label.objects.count() >= count


def limited(project: Project, **limits: object) -> Project:
    values = {"labels_limit": None, "money_limit": None, "price_per_label": None, "currency": ""}
    return labelling.set_label_budget(project=project, **(values | limits))


def test_without_answers_there_is_no_pace() -> None:
    found = label_budget_forecast(limited(make_project(), labels_limit=100))
    assert (found.per_day, found.ends_on, found.rounds, found.questions) == (0.0, None, 10, 100)


def test_a_project_that_began_lately_is_judged_by_its_own_time() -> None:
    project = make_project()
    answered(project, 6, hours_ago=48)
    limited(project, labels_limit=36, price_per_label=Decimal("0.5"), currency="EUR")
    found = label_budget_forecast(project)
    # Six in two days are three a day; thirty more take ten days.
    assert found.per_day == pytest.approx(3, rel=0.01)
    assert found.days in (9, 10)
    assert found.ends_on is not None
    assert found.ends_on > timezone.now() + timedelta(days=9.8)
    assert found.cost_per_week == pytest.approx(Decimal("10.5"), rel=Decimal("0.01"))
    assert (found.rounds, found.questions) == (3, 30)


def test_the_page_says_when_it_ends() -> None:
    project, manager = make_project(), make_user("manager")
    add_members(project, manager, role=Role.MANAGER)
    answered(project, 6, hours_ago=48)
    limited(project, money_limit=Decimal(18), price_per_label=Decimal("0.5"), currency="EUR")
    client = browser_of(manager)
    page = client.get(reverse("annotation:label_budget", args=[project.slug])).content.decode()
    assert "answers a day lately" in page
    assert "Limit reached on" in page
    assert "Left under the limit: 30 questions, 3 rounds." in page
    assert "15.00 EUR left." in page
