import pytest

from annotation.choices.classes import FurtherClass
from annotation.projects.services.classes import add_class
from learner.pools.records import refuse_leaving_series
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def add(project, name):
    return add_class(project=project, further=FurtherClass(name), known_beforehand=True, actor=project.created_by)


def test_before_a_series_is_opened_and_without_one_any_number_will_do():
    for project in (learning.open_secret(make_user()), learning.open_trusted(make_user())):
        refuse_leaving_series(project=project, before=["one", "two", "three"])
