from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from dpal_site.accounts import sessions
from dpal_site.accounts.logins import ByEmail, ByUserName, NotWritable, SessionMiddleware, SessionStore, session_digest
from dpal_site.models import Session

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def ann():
    return User.objects.create_user("ann", email="ann@example.org", password=PASSWORD)


def is_in(client):
    return client.get(reverse("annotation:tokens")).status_code == 200


class TestAPersonComesWithTheSession:
    @pytest.fixture
    def store(self, ann, client):
        client.force_login(ann)
        SessionMiddleware(lambda request: None).process_request(HttpRequest())
        return SessionStore(secret=client.cookies[settings.SESSION_COOKIE_NAME].value)

    def test_nothing_more_is_asked(self, ann, store, django_assert_num_queries):
        with django_assert_num_queries(1):
            store.load()
            found = ByUserName().get_user(ann.pk)
        assert {field.attname: getattr(found, field.attname) for field in User._meta.concrete_fields} == {
            field.attname: getattr(User.objects.get(pk=ann.pk), field.attname) for field in User._meta.concrete_fields
        }

    def test_whoever_asks_again_reads_what_is_stored_by_then(self, ann, store):
        store.load()
        User.objects.filter(pk=ann.pk).update(first_name="Anna")
        assert [ByUserName().get_user(ann.pk).first_name for _ in range(2)] == ["", "Anna"]

    def test_another_one_is_looked_up(self, store):
        store.load()
        other = User.objects.create_user("bob")
        assert ByUserName().get_user(other.pk) == other

    def test_the_next_request_begins_without(self, ann, store):
        store.load()
        User.objects.filter(pk=ann.pk).update(is_active=False)
        SessionMiddleware(lambda request: None).process_request(HttpRequest())
        assert ByUserName().get_user(ann.pk) is None

    def test_somebody_deactivated_is_out(self, ann, store):
        User.objects.filter(pk=ann.pk).update(is_active=False)
        store.load()
        assert ByUserName().get_user(ann.pk) is None


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
    def test_it_reads_by_its_secret_what_django_reads_by_its_key(self, ann, client):
        client.force_login(ann)
        secret = client.cookies[settings.SESSION_COOKIE_NAME].value
        (row,) = Session.objects.all()
        assert SessionStore(secret=secret).load() == SessionStore(row.session_key).load() != {}
        assert super(SessionStore, SessionStore(row.session_key)).load() == SessionStore(secret=secret).load()
        assert row.person == ann

    def test_one_that_is_over_is_empty_and_loses_its_key(self, ann, client):
        client.force_login(ann)
        secret = client.cookies[settings.SESSION_COOKIE_NAME].value
        (key,) = Session.objects.values_list("session_key", flat=True)
        Session.objects.update(expire_date=F("expire_date") - timedelta(days=365))
        for session in (SessionStore(secret=secret), SessionStore(key)):
            assert (session.load(), session.session_key) == ({}, None)
        assert not is_in(client)

    def test_one_that_never_was_is_empty(self):
        for session in (SessionStore("0" * 40), SessionStore(secret="0" * 32)):
            assert (session.load(), session.session_key) == ({}, None)

    def test_what_the_database_holds_opens_nothing(self, ann, client):
        client.post(reverse("login"), {"login": "ann", "password": PASSWORD})
        assert is_in(client)
        secret = client.cookies[settings.SESSION_COOKIE_NAME].value
        (row,), (listed,) = Session.objects.all(), UserSession.objects.all()
        held = {str(value) for value in (*vars(row).values(), *vars(listed).values())}
        assert row.session_key == listed.session_key == session_digest(secret)
        assert secret not in held
        for key in held:
            client.cookies[settings.SESSION_COOKIE_NAME] = key
            assert not is_in(client)
        client.cookies[settings.SESSION_COOKIE_NAME] = secret
        assert is_in(client)

    def test_database_and_program_make_the_same_digest(self):
        with connection.cursor() as cursor:
            cursor.execute("SELECT dpal_site_session_digest(%s)", ["é" * 32])
            assert cursor.fetchone() == (session_digest("é" * 32),)

    @pytest.mark.parametrize("shown", ["", "a", "A" * 32, "a" * 33, "a" * 31 + "\0", "é" * 32, "'; --"])
    def test_what_is_no_secret_is_not_looked_up(self, client, shown, django_assert_num_queries):
        client.cookies[settings.SESSION_COOKIE_NAME] = shown
        with django_assert_num_queries(0):
            assert client.get("/healthz").status_code == 200
        assert not is_in(client)


def test_a_session_from_before_a_rotation_goes_on_under_the_new_key(ann, client, settings):
    client.force_login(ann, backend="dpal_site.accounts.logins.ByUserName")
    settings.SECRET_KEY, old = "another key of the same length, more or less", settings.SECRET_KEY
    settings.SECRET_KEY_FALLBACKS = [old]
    assert is_in(client)
    settings.SECRET_KEY_FALLBACKS = []
    assert is_in(client)
    settings.SECRET_KEY = "a third key that nobody announced"
    assert not is_in(client)


class TestTheLabelProcess:
    @pytest.fixture
    def visitor(self, ann, client, settings):
        """Log somebody in, and go on as the label process; gives the secret."""
        client.force_login(ann, backend="dpal_site.accounts.logins.ByUserName")
        settings.SERVES_LABELS_ALONE = True
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    def asked_with(self, secret):
        request = HttpRequest()
        request.COOKIES[settings.SESSION_COOKIE_NAME] = secret
        SessionMiddleware(lambda request: None).process_request(request)
        return request

    def test_it_knows_who_asks_and_no_more_of_them(self, visitor, ann):
        found = get_user(self.asked_with(visitor))
        assert found == ann
        assert (found.username, found.is_active, found.is_superuser) == ("ann", True, False)
        assert found.get_deferred_fields() >= {"password", "email", "last_login"}

    def test_the_password_is_verified_as_django_does(self, visitor, ann):
        assert get_user(self.asked_with(visitor)).get_session_auth_hash() == ann.get_session_auth_hash()
        ann.set_password("another long password")
        ann.save()
        assert get_user(self.asked_with(visitor)).is_anonymous

    def test_a_session_from_before_a_rotation_counts_while_the_old_key_is_kept(self, visitor, ann, settings):
        settings.SECRET_KEY, old = "another key of the same length, more or less", settings.SECRET_KEY
        settings.SECRET_KEY_FALLBACKS = [old]
        assert get_user(self.asked_with(visitor)) == ann
        settings.SECRET_KEY_FALLBACKS = ["some other key"]
        assert get_user(self.asked_with(visitor)).is_anonymous

    def test_nobody_else_is_known(self, visitor, ann):
        other = User.objects.create_user("bob")
        self.asked_with(visitor)
        assert ByUserName().get_user(other.pk) is None
        self.asked_with("0" * 32)
        assert ByUserName().get_user(ann.pk) is None
        Session.objects.update(expire_date=F("expire_date") - timedelta(days=365))
        self.asked_with(visitor)
        assert ByUserName().get_user(ann.pk) is None

    def test_it_writes_no_session(self, visitor):
        session = self.asked_with(visitor).session
        session["_auth_user_id"] = "1"
        for write in (session.save, session.create, session.cycle_key):
            with pytest.raises(NotWritable):
                write()

    def test_it_notes_that_somebody_was_here_and_the_other_process_believes_it(self, visitor, client, settings):
        stored = SessionStore(secret=visitor)
        settings.SERVES_LABELS_ALONE = False
        stored[sessions.SEEN] -= settings.SESSION_IDLE_SECONDS - 60
        stored.save()
        settings.SERVES_LABELS_ALONE = True
        assert client.get("/readyz?check=database").status_code == 200
        seen_at = Session.objects.get().seen_at
        assert seen_at is not None
        settings.SERVES_LABELS_ALONE = False
        stored[sessions.SEEN] -= 120
        stored.seen_at = seen_at
        stored.save()
        assert is_in(client)
        Session.objects.update(seen_at=None, session_data=stored.encode(stored.load() | {sessions.SEEN: 1}))
        assert not is_in(client)

    def test_it_ends_the_session_it_was_shown_and_no_other(self, visitor):
        other = Session.objects.create(session_key="f" * 40, session_data="", expire_date=timezone.now())
        session = self.asked_with(visitor).session
        session.delete(other.session_key)
        assert Session.objects.count() == 2
        session.flush()
        assert list(Session.objects.all()) == [other]
