"""Who asks is found by session and id, with the same refusals as Django's own stores and backends."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models import F
from django.urls import reverse

from dpal_site.logins import ByEmail, ByUserName, SessionStore

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return User.objects.create_user("ann", email="ann@example.org")


def is_in(client):
    return client.get(reverse("annotation:tokens")).status_code == 200


@pytest.mark.parametrize("backend", [ByUserName, ByEmail])
class TestPeople:
    def test_every_field_is_there(self, backend, ann):
        found = backend().get_user(ann.pk)
        stored = User.objects.get(pk=ann.pk)
        assert {field.attname: getattr(found, field.attname) for field in User._meta.concrete_fields} == {
            field.attname: getattr(stored, field.attname) for field in User._meta.concrete_fields
        }

    def test_nobody_has_that_id(self, backend, ann):
        assert backend().get_user(ann.pk + 1) is None

    def test_a_deactivated_person_is_out_at_the_next_click(self, backend, ann, client):
        client.force_login(ann, backend=f"{backend.__module__}.{backend.__qualname__}")
        assert is_in(client)
        User.objects.filter(pk=ann.pk).update(is_active=False)
        assert backend().get_user(ann.pk) is None
        assert not is_in(client)


class TestSessions:
    def test_it_reads_what_djangos_own_store_wrote(self, ann, client):
        client.force_login(ann)
        key = client.cookies[settings.SESSION_COOKIE_NAME].value
        assert SessionStore(key).load() == db.SessionStore(key).load() != {}

    def test_one_that_is_over_is_empty_and_loses_its_key(self, ann, client):
        client.force_login(ann)
        key = client.cookies[settings.SESSION_COOKIE_NAME].value
        Session.objects.update(expire_date=F("expire_date") - timedelta(days=365))
        session = SessionStore(key)
        assert (session.load(), session.session_key) == ({}, None)
        assert not is_in(client)

    def test_one_that_never_was_is_empty(self):
        session = SessionStore("0" * 32)
        assert (session.load(), session.session_key) == ({}, None)
