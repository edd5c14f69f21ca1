import pytest

from annotation.errors import InvalidConfiguration
from annotation.models import Query
from annotation.models.history import Action
from annotation.review.services.changing import Change, change_chosen
from tests.factories import make_annotators, make_project, open_records

pytestmark = pytest.mark.django_db


def test_each_question_that_changed_has_a_line():
    project = make_project()
    (ann,) = make_annotators(project, 1)
    open_records(project, 2)
    ids = sorted(Query.objects.values_list("pk", flat=True))

    def change(action, **wanted):
        done = change_chosen(project=project, query_ids=ids, wanted=Change(action, **wanted), actor="mia")
        lines = Action.objects.filter(project=project, route=f"question:{action}", actor="mia")
        assert sorted(line.target["query_id"] for line in lines) == done
        return done

    assert change("assign", person=ann.pk) == ids
    assert change("unassign") == ids
    assert change("set_aside") == ids
    assert change("send_back", comment="sure?") == []
    with pytest.raises(InvalidConfiguration, match="Only an annotator"):
        change("assign")
