"""Whatever a person sends to a page, the answer is none of 5xx: odd addresses, odd parameters, odd forms."""

import random
import re
from typing import ClassVar
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver, path, reverse

import dpal_site.urls
from tests.fuzzing import TIMES
from tests.web.dpal_site.test_permissions import PAGES, Scene, named_patterns

pytestmark = pytest.mark.django_db
ROUNDS = max(1, TIMES)
SEED = 20_261_121
ODD = (
    *("", " ", "0", "-1", "1", "1e999", "NaN", "9" * 30, "true", "null", "[]", "{}", '{"a": [1]}', "[[[["),
    *("\x00", "\x7f", "\ud7ff", "é\u0301", "\u202e\u2066", "\U0001f4a3", "a\r\nb: c", "a" * 5000),
    *("' OR 1=1 --", "%s%n{0}", "../../etc/passwd", "<script>", "2020-13-45", "25:61", "=1+1", str(UUID(int=0))),
)
FIELD = re.compile(r"<(?:input|select|textarea|button)\b[^>]*?\bname=\"([^\"]+)\"")
NUMBERS = (0, 1, 2**31, 2**63 - 1, 2**63, 10**30)
WORDS = ("a", "x" * 200, "nul%00", "..", "é", "a.b", "latest")


def answered(send):
    """Send a request, read its answer, take back what it did, and return its status."""
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
    """Yield the page's own address, and one about things that are not there."""
    wanted = pattern.pattern.converters
    known = scene.arguments | scene.own.get(name, {})
    yield reverse(name, kwargs={key: known.get(key, 1) for key in wanted})
    odd = {
        "int": rng.choice(NUMBERS),
        "uuid": UUID(int=rng.getrandbits(128)),
        "slug": "none",
        "string": rng.choice(WORDS),
    }
    if wanted:
        kinds = {key: type(each).__name__.removesuffix("Converter").lower() for key, each in wanted.items()}
        yield reverse(name, kwargs={key: odd.get(kind, "a") for key, kind in kinds.items()})


def broken(clients, scene, patterns):
    """Return the requests that were answered by an error of ours, and every status that came."""
    rng = random.Random(SEED if ROUNDS == 1 else None)
    found, statuses = [], set()
    for _ in range(ROUNDS):
        for name, pattern in patterns:
            client = rng.choice(clients)
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
                    if answer.status_code >= 500:
                        found.append(f"{name} {answer.request['REQUEST_METHOD']}")
    return sorted(set(found)), statuses


def test_no_page_breaks(monkeypatch, settings, tmp_path):
    settings.LEDGER_COUNTER_PATH = tmp_path / "ledger-counter.json"
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda *args, **kwargs: None)
    monkeypatch.setattr("celery.canvas.Signature.apply_async", lambda *args, **kwargs: None)
    scene = Scene()
    patterns = [each for each in named_patterns(get_resolver().url_patterns) if each[0] in PAGES]
    assert len(patterns) > 40
    found, statuses = broken([scene.client("manager"), scene.client("annotator")], scene, patterns)
    assert found == []
    # Pages were shown, forms were read and refused, and what is not there was not found.
    assert statuses >= {200, 302, 404, 422}


def test_a_page_that_breaks_is_noticed(settings):
    class Nothing:
        arguments: ClassVar = {}
        own: ClassVar = {}

    settings.ROOT_URLCONF = (
        path("planted/", lambda request: 1 / 0 if request.GET else HttpResponse("whole"), name="planted"),
        *dpal_site.urls.urlpatterns,
    )
    planted = [("planted", each) for each in settings.ROOT_URLCONF[:1]]
    found, _statuses = broken([Client(raise_request_exception=False)], Nothing(), planted)
    assert found == ["planted GET"]
