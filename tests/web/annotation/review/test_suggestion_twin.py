import re
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection
from django.urls import reverse

from annotation.models import Assignment, Query
from annotation.questions import selectors
from annotation.questions.views import label_parts
from annotation.review.suggestion_effect import Effect, effect_of
from tests.clients import browser_of
from tests.factories import asked_project, make_annotators, make_project, open_records
from tests.markup import tight

pytestmark = [pytest.mark.django_db, pytest.mark.statistical]
QUESTIONS = 80
# How long a person takes who follows the model, and one who has nobody to follow.
QUICK_SECONDS, SLOW_SECONDS = (10, 30), (40, 120)
SUGGESTED = 1


def answered_through_pages(seed: int) -> Effect:
    rng = np.random.default_rng(seed)
    project = make_project()
    (person,) = make_annotators(project, 1)
    for query in open_records(project, QUESTIONS):
        shown = {"suggested": SUGGESTED, "suggested_percent": 72, "suggestion_shown": bool(rng.random() < 0.5)}
        Query.objects.filter(pk=query.pk).update(**shown)
    client = browser_of(person)
    page = client.get(reverse("annotation:label", args=[project.slug]))
    for _question in range(QUESTIONS):
        seen = "The model suggests" in tight(page.content.decode())
        held = Assignment.objects.get(project=project, state="leased")
        seconds = rng.uniform(*(QUICK_SECONDS if seen else SLOW_SECONDS))
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE annotation_assignment SET created_at = now() - make_interval(secs => %s) WHERE id = %s",
                [seconds, held.pk],
            )
        choice = SUGGESTED if seen or rng.random() < 0.5 else 0
        sent = {"choice": str(choice), "key": str(uuid4())}
        assert client.post(reverse("annotation:submit", args=[held.pk]), sent).status_code == 303
        page = client.get(reverse("annotation:label", args=[project.slug]))
    found = effect_of(project)
    assert found is not None
    assert found.shown.questions + found.blind.questions == QUESTIONS
    return found


def parts(effect: Effect) -> bool:
    assert effect.shown.minutes_high is not None
    assert effect.blind.minutes_low is not None
    return effect.anchoring_low > 0 and effect.shown.minutes_high < effect.blind.minutes_low


def always_shown(assignment: Assignment, text: str | None = None) -> selectors.Suggestion | None:
    query = assignment.query
    if query.suggested is None or query.suggested_percent is None:
        return None
    name = str(assignment.project.classes[query.suggested])
    return selectors.Suggestion(query.suggested, name, query.suggested_percent)


def never_shown(assignment: Assignment, text: str | None = None) -> selectors.Suggestion | None:
    return None


@pytest.mark.slow
def test_a_page_that_keeps_to_the_coins_shows_what_suggestions_do():
    """Seeded. Forty a group, none against half of them differing: the intervals touch with less than 1e-4."""
    effect = answered_through_pages(5)
    assert parts(effect)
    assert effect.shown.differing == 0
    assert 30 <= effect.anchoring <= 70


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("planted", [always_shown, never_shown])
def test_a_page_that_does_not_is_rejected(planted, monkeypatch):
    """Seeded. Both groups then follow one law, and part in answers and in minutes with less than 1 in 1,000."""
    for module in (selectors, label_parts):
        monkeypatch.setattr(module, "suggestion_of", planted)
    effect = answered_through_pages(5)
    assert not parts(effect)
    assert effect.anchoring_low <= 0 <= effect.anchoring_high


def test_the_page_says_nothing_of_a_blind_one_anywhere():
    """Neither its keys nor its classes name a suggestion where the coin left it out."""
    project, (query,), (person,) = asked_project()
    Query.objects.filter(pk=query.pk).update(suggested=SUGGESTED, suggested_percent=72, suggestion_shown=False)
    client = browser_of(person)
    page = client.get(reverse("annotation:label", args=[project.slug])).content.decode()
    assert not re.search(r"suggest(ed|s)\b|data-shortcut=\"[^\"]*\ba\"", page)
