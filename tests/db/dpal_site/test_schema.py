import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection

OURS = ("privacy", "annotation", "learner", *settings.ADDONS)


@pytest.mark.django_db
def test_every_constraint_and_index_a_model_names_is_there():
    missing = []
    with connection.cursor() as cursor:
        for model in (model for label in OURS for model in apps.get_app_config(label).get_models()):
            found = connection.introspection.get_constraints(cursor, model._meta.db_table)
            named = [each.name for each in (*model._meta.constraints, *model._meta.indexes)]
            missing += [name for name in named if name not in found]
    assert missing == []
