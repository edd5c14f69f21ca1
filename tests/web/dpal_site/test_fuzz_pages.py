import contextlib
import random
import re
from typing import ClassVar
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import NoReverseMatch, get_resolver, path, reverse

import dpal_site.urls
from tests.counting import new_counter
from tests.fuzzing import TIMES
from tests.permission_scene import Scene, api_routes, named_patterns
from tests.web.dpal_site.test_openapi import ROUTES

pytestmark = pytest.mark.django_db
ROUNDS = max(1, TIMES)
SEED = 20_261_121
ODD = (
    *("", " ", "0", "-1", "1", "1e999", "NaN", "9" * 30, "true", "null", "[]", "{}", '{"a": [1]}', "[[[["),
    *("\x00", "\x7f", "\ud7ff", "é\u0301", "\u202e\u2066", "\U0001f4a3", "a\r\nb: c", "a" * 5000),
    *("' OR 1=1 --", "%s%n{0}", "../../etc/passwd", "<script>", "2020-13-45", "25:61", "=1+1", str(UUID(int=0))),
)
FIELD = re.compile(r"<(?:input|select|textarea|button)\b[^>]*?\bname=\"([^\"]+)\"")
NONE = re.compile("")
NUMBERS = (0, 1, 2**31, 2**63 - 1, 2**63, 10**30)
WORDS = ("a", "x" * 200, "nul%00", "..", "é", "a.b", "latest")


def answered(send):
    with transaction.atomic():
        answer = send()
        b"".join(answer)
        transaction.set_rollback(True)
    return answer


def odd_fields(names, rng):
    fields = {name: rng.choice(ODD) for name in names}
    for name in rng.sample(sorted(fields), k=min(2, len(fields))):
        fields[name] = [rng.choice(ODD), rng.choice(ODD)]
    if rng.random() < 0.3:
        fields[rng.choice(["file", "upload", *fields])] = SimpleUploadedFile("a\u202e.csv", rng.randbytes(50))
    return {name: value for name, value in fields.items() if name != "csrfmiddlewaretoken"}


def odd_addresses(name, pattern, scene, rng):
    wanted = pattern.pattern.converters or dict.fromkeys(getattr(pattern.pattern, "regex", NONE).groupindex)
    known = {"object_id": 1} | scene.arguments | scene.own.get(name, {})
    with contextlib.suppress(NoReverseMatch):
        yield reverse(name, kwargs={key: known.get(key, 1) for key in wanted})
    odd = {
        "int": rng.choice(NUMBERS),
        "uuid": UUID(int=rng.getrandbits(128)),
        "slug": "none",
        "string": rng.choice(WORDS),
    }
    if wanted:
        # An address of the sign-in library is a pattern, whose parts are words and numbers.
        kinds = {key: type(each or 1).__name__.removesuffix("Converter").lower() for key, each in wanted.items()}
        with contextlib.suppress(NoReverseMatch):
            yield reverse(name, kwargs={key: odd.get(kind, "a") for key, kind in kinds.items()})


def broken(clients, scene, patterns):
    """Return the requests that were answered by an error of ours, and every status that came; `clients` by name."""
    seed = SEED if ROUNDS == 1 else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    found, statuses = [], set()
    for _ in range(ROUNDS):
        for name, pattern in patterns:
            client = clients(name, rng)
            for address in odd_addresses(name, pattern, scene, rng):
                seen = answered(lambda client=client, address=address: client.get(address))
                names = sorted({*FIELD.findall(seen.content.decode(errors="replace"))} if not seen.streaming else ())
                names = names or ["choice", "key", "page"]
                query, form = odd_fields(names[:6], rng), odd_fields(names, rng)
                query = {key: value for key, value in query.items() if isinstance(value, str | list)}
                looked = answered(lambda client=client, address=address, query=query: client.get(address, query))
                sent = answered(lambda client=client, address=address, form=form: client.post(address, form))
                for answer in (seen, looked, sent):
                    statuses.add(answer.status_code)
                    # Readiness says 503 while no worker was heard of.
                    if answer.status_code >= 500 and name != "readyz":
                        found.append(f"{name} {answer.request['REQUEST_METHOD']}")
    return sorted(set(found)), statuses


@pytest.mark.slow
def test_no_page_breaks(monkeypatch, settings, tmp_path):
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    scene = Scene()
    people = {name: scene.client(name) for name in ("manager", "annotator", "administrator", "anonymous")}

    def somebody(name, rng):
        if name.startswith(("admin:", "operations:")):
            return people["administrator"]
        if name.startswith(("account_", "mfa_", "socialaccount_", "openid_connect_", "usersessions_")):
            return people[rng.choice(["manager", "anonymous"])]
        return people[rng.choice(["manager", "annotator"])]

    patterns = addresses()
    assert len(patterns) > 200
    found, statuses = broken(somebody, scene, patterns)
    assert found == []
    # Pages were shown, forms were read and refused, and what is not there was not found.
    assert statuses >= {200, 302, 404, 422}


def addresses():
    routes = {f"api:{name}" for name, _method in api_routes()}
    return [each for each in named_patterns(get_resolver().url_patterns) if each[0] and each[0] not in routes]


def test_no_address_is_left_out():
    """What is neither asked here nor a route that `ROUTES` of test_openapi.py counts has no name and shows nothing."""
    asked = {name for name, _pattern in addresses()} | {f"api:{name}" for name, _method in api_routes()}
    everything = list(named_patterns(get_resolver().url_patterns))
    left = {str(pattern.pattern) for name, pattern in everything if name not in asked}
    # The administration's last address, which says that there is no such page, and old ones that lead to new ones.
    moved = {f"social/{each}/" for each in ("connections", "login/cancelled", "login/error", "signup")}
    assert left <= {"(?P<url>.*)$", *moved}
    assert len(list(api_routes())) == ROUTES


def test_a_page_that_breaks_is_noticed(settings):
    class Nothing:
        arguments: ClassVar = {}
        own: ClassVar = {}

    settings.ROOT_URLCONF = (
        path("planted/", lambda request: 1 / 0 if request.GET else HttpResponse("whole"), name="planted"),
        *dpal_site.urls.urlpatterns,
    )
    planted = [("planted", each) for each in settings.ROOT_URLCONF[:1]]
    found, _statuses = broken(lambda _name, _rng: Client(raise_request_exception=False), Nothing(), planted)
    assert found == ["planted GET"]
