import pytest

from tests.factories import answer_next, asked_project, make_annotators, make_project, open_records

pytestmark = pytest.mark.django_db(transaction=True)


class TestDisagreement:
    def test_one_more_is_asked_up_to_the_limit(self):
        project, (query,), people = asked_project(1, 4, overlap=2, overlap_limit=3)
        for person, choice in zip(people[:2], (0, 1), strict=True):
            answer_next(project, person, choice)
        query.refresh_from_db()
        assert (query.state, query.overlap, query.open_slots) == ("open", 3, 1)
        answer_next(project, people[2], 2)
        query.refresh_from_db()
        assert query.state == "disputed"

    def test_the_annotation_budget_is_not_overdrawn(self):
        project = make_project(overlap=2, overlap_limit=3, labels_limit=2)
        (query,) = open_records(project, 1)
        for person, choice in zip(make_annotators(project, 2), (0, 1), strict=True):
            answer_next(project, person, choice)
        query.refresh_from_db()
        assert query.state == "disputed"
