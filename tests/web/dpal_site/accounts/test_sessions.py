import math
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from allauth.core import ratelimit
from allauth.usersessions.models import UserSession
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.core import mail, signing
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from annotation.errors import TooOften
from annotation.models.joining import RateCount
from annotation.work.services import idempotency
from dpal_site.accounts import guessing, sessions
from dpal_site.models import CachedCount, Session

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_limits")]
PASSWORD = "correct horse battery"


@pytest.fixture
def ann():
    return User.objects.create_user("ann", email="ann@example.org", password=PASSWORD)


def log_in(client, name="ann", password=PASSWORD, **more):
    return client.post(reverse("login"), {"login": name, "password": password}, **more)


def is_in(client):
    return client.get(reverse("annotation:tokens")).status_code == 200


class TestLimits:
    @pytest.fixture
    def clock(self, monkeypatch):
        class Clock:
            now = 1_800_000_000.0

            def time(self):
                return self.now

        clock = Clock()
        monkeypatch.setattr(sessions, "time", clock)
        return clock

    def test_an_idle_session_ends(self, ann, clock, settings):
        client = Client()
        log_in(client)
        clock.now += settings.SESSION_IDLE_SECONDS - 1
        assert is_in(client)
        clock.now += settings.SESSION_IDLE_SECONDS - 1
        assert is_in(client)
        clock.now += settings.SESSION_IDLE_SECONDS + 1
        key = client.session.session_key
        assert not is_in(client)
        assert not Session.objects.filter(session_key=key).exists()

    def test_a_busy_session_ends_too(self, ann, clock, settings):
        client = Client()
        log_in(client)
        began = clock.now
        while clock.now + 3600 <= began + settings.SESSION_LIFETIME_SECONDS:
            clock.now += settings.SESSION_IDLE_SECONDS // 2
            assert is_in(client)
        clock.now = began + settings.SESSION_LIFETIME_SECONDS + 1
        assert not is_in(client)

    def test_the_row_is_not_written_at_every_click(self, ann, clock, django_assert_num_queries):
        client = Client()
        log_in(client)
        is_in(client)
        clock.now += sessions.NOTED_EVERY_SECONDS - 1
        before = client.session[sessions.SEEN]
        is_in(client)
        assert client.session[sessions.SEEN] == before
        clock.now += 2
        is_in(client)
        assert client.session[sessions.SEEN] == int(clock.now)

    def test_a_session_without_a_clock_gets_one(self, ann, clock):
        client = Client()
        log_in(client)
        session = client.session
        del session[sessions.BEGAN]
        session.save()
        assert is_in(client)
        assert client.session[sessions.BEGAN] == int(clock.now)


class TestRotation:
    def test_a_login_takes_a_new_key(self, ann):
        client = Client()
        session = client.session
        session["before"] = "the login"
        session.save()
        planted = client.cookies["sessionid"].value if "sessionid" in client.cookies else session.session_key
        client.cookies["sessionid"] = planted
        log_in(client)
        assert client.session.session_key != planted
        assert not Session.objects.filter(session_key=planted).exists()

    def test_logging_out_ends_it_on_the_server(self, ann):
        client = Client()
        log_in(client)
        key = client.session.session_key
        client.post(reverse("logout"))
        assert not Session.objects.filter(session_key=key).exists()

    def test_a_new_password_ends_every_other_session(self, ann):
        here, there = Client(), Client()
        log_in(here)
        log_in(there)
        fields = {"oldpassword": PASSWORD, "password1": "another long one", "password2": "another long one"}
        assert here.post(reverse("account_change_password"), fields).status_code == 302
        assert not is_in(there)


class TestAccountsThatEnd:
    def test_who_is_locked_out_or_deleted_is_out_at_once(self, ann):
        User.objects.create_user("bob", password=PASSWORD)
        anns, bobs = Client(), Client()
        log_in(anns)
        log_in(bobs, "bob")
        User.objects.filter(username="ann").update(is_active=False)
        User.objects.get(username="bob").delete()
        assert [is_in(client) for client in (anns, bobs)] == [False, False]

    def test_an_administrator_ends_the_sessions_of_one_or_of_all(self, ann, capsys):
        User.objects.create_user("bob", password=PASSWORD)
        anns, other, bobs = Client(), Client(), Client()
        log_in(anns)
        log_in(other)
        log_in(bobs, "bob")
        call_command("end_sessions", "ann")
        assert capsys.readouterr().out == "2 sessions ended\n"
        assert [is_in(client) for client in (anns, other, bobs)] == [False, False, True]
        call_command("end_sessions", "--all")
        assert not is_in(bobs)
        with pytest.raises(CommandError, match="nobody is called carol"):
            call_command("end_sessions", "carol")


class TestTheList:
    def test_a_session_somebody_found_open_ends_no_other(self, ann):
        here, there = Client(), Client()
        log_in(here)
        log_in(there)
        asked = here.post(reverse("usersessions_list"))
        assert asked["Location"].startswith(reverse("account_reauthenticate"))
        assert is_in(there)

    def test_somebody_sees_their_own_sessions_and_ends_the_others(self, ann):
        User.objects.create_user("bob", password=PASSWORD)
        here, there, bobs = Client(), Client(), Client()
        log_in(here, HTTP_USER_AGENT="Laptop")
        log_in(there, HTTP_USER_AGENT="Phone")
        log_in(bobs, "bob", HTTP_USER_AGENT="Bobs")
        page = here.get(reverse("usersessions_list")).content.decode()
        assert "Laptop" in page
        assert "Phone" in page
        assert "Bobs" not in page
        here.post(reverse("account_reauthenticate"), {"password": PASSWORD})
        here.post(reverse("usersessions_list"))
        assert [is_in(client) for client in (here, there, bobs)] == [True, False, True]

    def test_nothing_is_kept_of_a_session_that_is_over(self, ann):
        here, there = Client(), Client()
        log_in(here)
        log_in(there)
        there.post(reverse("logout"))
        UserSession.objects.create(user=ann, ip="192.0.2.1", user_agent="long gone", session_key="g" * 32)
        sessions.forget_ended_sessions()
        assert [kept.session_key for kept in UserSession.objects.all()] == [here.session.session_key]


class TestThrottling:
    def refused(self, page):
        return "Too many" in page.content.decode()

    def guess(self, address, name="ann"):
        return log_in(Client(REMOTE_ADDR=address), name, "guess guess")

    def test_who_guesses_is_slowed_and_whose_account_it_is_comes_in(self, ann):
        """Five failures of a stranger locked the account for everybody."""
        pages = [self.guess("192.0.2.1") for _ in range(8)]
        assert [self.refused(page) for page in pages][:5] == [False] * 5
        assert self.refused(pages[-1])
        # Even with the right password, and under another name of the account.
        assert self.refused(log_in(Client(REMOTE_ADDR="192.0.2.1")))
        assert self.refused(self.guess("192.0.2.1", "ANN"))
        assert log_in(Client(REMOTE_ADDR="192.0.2.2")).status_code == 302

    def test_pauses_double_up_to_a_quarter_of_an_hour(self, ann):
        pauses = []
        for _ in range(16):
            self.guess("192.0.2.1")
            row = RateCount.objects.exclude(next_at=None).order_by("-next_at")[0]
            if row.tries >= guessing.CLIENT.free:
                counted_at = row.ends_at - timedelta(seconds=guessing.WINDOW_SECONDS)
                pauses.append((row.next_at - counted_at).total_seconds())
            # Its time is over, by the clock of this transaction, too, which stands; and the library's own minute.
            RateCount.objects.update(next_at=timezone.now() - timedelta(days=1))
            cache.clear()
        assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]

    def test_many_networks_together_are_slow_too_and_a_known_browser_is_let_in(self, ann, monkeypatch):
        monkeypatch.setattr(guessing, "STRANGERS", guessing.Limit("strangers", free=20, longest_seconds=30))
        known = Client(REMOTE_ADDR="198.51.100.7")
        assert log_in(known).status_code == 302
        known.post(reverse("logout"))
        for number in range(25):
            self.guess(f"192.0.2.{number + 1}")
        assert self.refused(self.guess("203.0.113.1"))
        assert log_in(known).status_code == 302
        # Another account's browser is no known one, nor is a cookie somebody made up.
        User.objects.create_user("bob", password=PASSWORD)
        other = Client(REMOTE_ADDR="198.51.100.8")
        assert log_in(other, "bob").status_code == 302
        other.post(reverse("logout"))
        assert self.refused(log_in(other))
        forged = Client(REMOTE_ADDR="198.51.100.9")
        forged.cookies["known"] = signing.dumps(["browser", ["mark"]], salt="another")
        assert self.refused(log_in(forged))

    def test_a_known_browser_guesses_no_faster(self, ann):
        known = Client(REMOTE_ADDR="198.51.100.7")
        log_in(known)
        known.post(reverse("logout"))
        pages = []
        for _ in range(12):
            pages.append(log_in(known, password="guess guess"))
            cache.clear()
        assert self.refused(pages[-1])
        assert not self.refused(pages[8])

    def test_a_flood_makes_the_site_forget_no_guess(self, ann):
        """Anonymous resets filled a cache of 300 entries, which then threw the counts of guesses away."""
        for _ in range(7):
            self.guess("192.0.2.1")
        for number in range(450):
            cache.set(f"allauth:rl:reset:{number}", [1.0], 60)
        for number in range(40):
            Client(REMOTE_ADDR=f"203.0.113.{number}").post(
                reverse("account_reset_password"), {"email": f"nobody-{number}@example.org"}
            )
        assert self.refused(log_in(Client(REMOTE_ADDR="192.0.2.1")))

    def test_a_flood_makes_the_site_forget_no_code_either(self, ann):
        for _ in range(5):
            assert ratelimit.consume(
                RequestFactory(REMOTE_ADDR="192.0.2.1").post("/"), action="login_failed", key="mfa-auth-user-1"
            )
        for number in range(450):
            cache.set(f"allauth:rl:reset:{number}", [1.0], 60)
        later = RequestFactory(REMOTE_ADDR="192.0.2.1").post("/")
        assert not ratelimit.consume(later, action="login_failed", key="mfa-auth-user-1")

    def end(self, key):
        kept = CachedCount.objects.filter(pk=guessing.cache_key(key, "", 1))
        assert kept.update(expires=timezone.now() - timedelta(seconds=1)) == 1

    def test_what_is_over_is_swept_away_and_nothing_else(self, ann):
        self.guess("192.0.2.1")
        cache.set("over", 1, 60)
        cache.set("kept", {"a": [1.5]}, 60)
        self.end("over")
        assert cache.get("over") is None
        assert cache.add("over", 2, 60)
        assert not cache.add("over", 3, 60)
        self.end("over")
        RateCount.objects.filter(pk=RateCount.objects.first().pk).update(ends_at=timezone.now() - timedelta(seconds=1))
        assert (guessing.forget_old_counts(), idempotency.forget_old_tries()) == (1, 1)
        assert cache.get("kept") == {"a": [1.5]}

    def test_of_many_accounts_from_one_address(self, ann):
        for number in range(11):
            log_in(Client(REMOTE_ADDR="192.0.2.1"), f"nobody-{number}", "guess guess")
        refused = log_in(Client(REMOTE_ADDR="192.0.2.1"))
        assert refused.status_code == 429 or self.refused(refused)
        assert log_in(Client(REMOTE_ADDR="192.0.2.2")).status_code == 302

    def test_an_address_is_not_believed_from_a_header(self, ann):
        for number in range(11):
            log_in(Client(REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR=f"198.51.100.{number}"), f"x{number}", "guess")
        refused = log_in(Client(REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR="198.51.100.99"))
        assert refused.status_code == 429 or self.refused(refused)


@pytest.mark.django_db(transaction=True)
def test_many_guesses_at_once_are_one_after_another(monkeypatch):
    monkeypatch.setattr(guessing, "CLIENT", guessing.Limit("client", free=1, longest_seconds=900))
    # One try, then pauses: 2 ** 9 seconds from the tenth on, so that a slow machine lets few more in than a quick one.
    ready, began = Barrier(16), time.monotonic()

    def guess(_number):
        try:
            ready.wait(timeout=120)
            guessing.count_password_try(RequestFactory(REMOTE_ADDR="192.0.2.1").post("/"), "ann")
        except TooOften:
            return False
        else:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as pool:
        let_in = sum(pool.map(guess, range(16)))
    assert 1 <= let_in <= 1 + math.log2(2 + time.monotonic() - began)


class TestNobodyLearnsWhoHasAnAccount:
    @pytest.fixture
    def cost(self, monkeypatch):
        hashes = []
        slow = PBKDF2PasswordHasher.encode
        monkeypatch.setattr(
            PBKDF2PasswordHasher,
            "encode",
            lambda hasher, password, salt, iterations=None: (
                hashes.append(1),
                slow(hasher, password, salt, iterations),
            )[1],
        )

        def measure(request):
            cache.clear()
            hashes.clear()
            mail.outbox.clear()
            page = request()
            text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page.content.decode())
            return page.status_code, page.get("Location"), len(hashes), len(mail.outbox), text

        return measure

    def test_at_the_login(self, ann, cost):
        User.objects.create_user("gone", password=PASSWORD, is_active=False)
        known, unknown, off = (
            cost(lambda name=name: log_in(Client(), name, "guess guess")) for name in ("ann", "bob", "gone")
        )
        assert [answer[:4] for answer in (known, unknown, off)] == [known[:4]] * 3
        assert known[2] > 0
        assert known[4].replace("ann", "") == unknown[4].replace("bob", "")

    def test_at_a_reset(self, ann, cost):
        def reset(email):
            return lambda: Client().post(reverse("account_reset_password"), {"email": email})

        known, unknown = cost(reset("ann@example.org")), cost(reset("bob@example.org"))
        assert known[:4] == unknown[:4]
        assert known[3] == 1

    def test_at_the_sign_up(self, ann, cost, settings):
        settings.SIGNUP = "open"
        ann.emailaddress_set.create(email="ann@example.org", verified=True, primary=True)

        def sign_up(email):
            fields = {"email": email, "password1": "a quite new one", "password2": "a quite new one"}
            return lambda: Client().post(reverse("account_signup"), fields)

        known, unknown = cost(sign_up("ann@example.org")), cost(sign_up("bob@example.org"))
        assert known[:4] == unknown[:4]

    def test_a_difference_is_noticed(self, ann, cost):
        quick = cost(lambda: Client().get(reverse("login")))
        assert quick[2] != cost(lambda: log_in(Client(), "ann", "guess guess"))[2]
