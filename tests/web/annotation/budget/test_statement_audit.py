import contextlib
import copy
import hashlib
import json
import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import settings as site_settings
from django.core.management import CommandError, call_command
from django.db import transaction
from django.urls import reverse

from annotation.models import Role
from privacy.accounting.events import BernoulliScreenEvent, GaussianEvent, LabelTrainingEvent, TopCEvent
from privacy.ledger import services as ledger
from privacy.ledger.auditor.chain import HASHED_FIELDS, NO_HASH
from privacy.ledger.auditor.statement import (
    ACCOUNT,
    ENTRY,
    SIGNED_BEFORE,
    StatementRefused,
    audit_statement,
    signature_of,
)
from privacy.ledger.checkpoints import log_of, site_key
from privacy.ledger.keys import SiteKey
from tests.clients import browser_of
from tests.factories import add_members, make_account, make_project, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_counter")]
DIGEST = "ab" * 32
FORGER = SiteKey.from_secret("a forger's secret, long enough to derive a key from")


@pytest.fixture
def project():
    pool = make_account(epsilon_limit=100.0, delta_limit=1e-6)
    terms = {"unit": "answer", "adjacency": "replace", "filter": "zcdp", "epsilon_limit": 10, "delta_limit": 1e-6}
    answers = ledger.open_account(scope="answers", label="answers", actor="ada", reason="a test", **terms)
    made = make_project(oracle="crowd", pool_account=pool, labels_account=answers)
    add_members(made, make_user("engineer"), role=Role.ENGINEER)

    def reserve(event, account=pool):
        return ledger.reserve(account=account, event=event, purpose="a test", key=uuid4(), subject="round:1")

    opened = reserve(TopCEvent(pool_size=1000, picks=5, scale=0.05, series="opened"))
    with transaction.atomic():
        ledger.commit(reservation=opened, output_digest=DIGEST)
    continued = reserve(TopCEvent(pool_size=1000, picks=5, scale=0.05, series="continued"))
    ledger.void(reservation=continued, reason="no row was read", actor="ada")
    told = {"operation": "rank", "purpose": "questions", "output_digest": DIGEST}
    ledger.record_post_processing(account=pool, parent=opened, key=uuid4(), **told)
    reserve(BernoulliScreenEvent(q_hi=0.6, q_lo=0.4))
    ledger.charge_stale(older_than=timedelta(0))
    ledger.change_account_limits(account=pool, epsilon_limit=200, delta_limit=2e-6, actor="ada", reason="more")
    reserve(LabelTrainingEvent(GaussianEvent(sensitivity_l2=1.0, sigma=50.0)), answers)
    return made


@pytest.fixture
def content(project) -> bytes:
    client = browser_of(project.memberships.get(role=Role.ENGINEER).user)
    response = client.get(reverse("annotation:statement_json", args=[project.slug]))
    return b"".join(response.streaming_content)


def audited(content: bytes, **options):
    return audit_statement(content, **{"public_key": site_key().public_key} | options)


def found(content: bytes, **options) -> set[tuple[str, int, str]]:
    verdicts = audited(content, **options).verdicts
    return {
        (verdict.scope, difference.sequence, difference.field)
        for verdict in verdicts
        for difference in verdict.differences
    }


def written(document: dict, key: SiteKey | None = None) -> bytes:
    """Write a document: with the old signature as a clumsy forger leaves it, or signed by another key."""
    body = {name: value for name, value in document.items() if name != "signature"}
    before = json.dumps(body, ensure_ascii=False).encode()[:-1]
    if key is not None:
        return before + signature_of(hashlib.sha256(before).hexdigest(), key)
    return before + SIGNED_BEFORE + json.dumps(document["signature"]).encode() + b"}\n"


def other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return {"list": ["x"], "dict": {**(value or {}), "x": 1}}.get(type(value).__name__, 1)


def test_an_honest_statement_is_sound_without_the_site(content, tmp_path):
    (tmp_path / "statement.json").write_bytes(content)
    assert found(content) == set()
    assert [verdict.entries for verdict in audited(content).verdicts] == [0, 9, 2]
    command = [sys.executable, "-m", "privacy.audit", "statement", str(tmp_path / "statement.json")]
    told = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=site_settings.BASE_DIR, env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "9 entries" in done.stdout
    assert f"signed by {site_key().public_key}" in done.stdout


def test_every_changed_field_of_every_entry_is_named(content):
    """Who changes a field and nothing else is told entry and field; the signature does not fit either way."""
    honest = json.loads(content)
    for place, account in enumerate(honest["accounts"]):
        for number, entry in enumerate(account["entries"], start=1):
            for name in ENTRY:
                document = copy.deepcopy(honest)
                changed = document["accounts"][place]["entries"][number - 1]
                changed[name] = other(entry[name])
                differing = found(written(document))
                assert ("", 0, "signature") in differing, name
                assert account["scope"], name
                assert number in {where for scope, where, _ in differing if scope == account["scope"]}, (number, name)


def test_every_changed_field_of_an_account_is_named(content):
    honest = json.loads(content)
    # What the chain does not cover, and only the signature does.
    signed_alone = {"label", "opened_at"}
    for name in ACCOUNT - {"entries", "scope"}:
        document = copy.deepcopy(honest)
        account = document["accounts"][0]
        account[name] = other(account[name])
        differing = found(written(document))
        assert ("", 0, "signature") in differing, name
        if name not in signed_alone:
            assert account["scope"] in {scope for scope, _, _ in differing}, name
    for name in ("unit", "adjacency", "filter"):
        document = copy.deepcopy(honest)
        document["accounts"][0][name] = {"unit": "contributor", "adjacency": "replace", "filter": "zcdp"}[name]
        assert (honest["accounts"][0]["scope"], 1, f"event_json {name}") in found(written(document))
    for name in honest["accounts"][0]["limits"]:
        document = copy.deepcopy(honest)
        document["accounts"][0]["limits"][name] = 7
        assert (honest["accounts"][0]["scope"], 0, name) in found(written(document))


def test_an_entry_taken_out_added_or_moved_is_named(content):
    honest = json.loads(content)
    scope, entries = honest["accounts"][0]["scope"], honest["accounts"][0]["entries"]

    def differing(changed):
        document = copy.deepcopy(honest)
        document["accounts"][0]["entries"] = changed
        return {(where, name) for at, where, name in found(written(document)) if at == scope}

    assert (4, "sequence") in differing(entries[:3] + entries[4:])
    assert (5, "sequence") in differing([*entries[:4], entries[3], *entries[4:]])
    assert (3, "sequence") in differing([*entries[:2], entries[3], entries[2], *entries[4:]])
    assert (0, "checkpoint size") in differing(entries[:-1])
    assert (0, "entries") in differing([])
    assert (2, "fields") in differing([entries[0], entries[1] | {"more": 1}, *entries[2:]])
    assert (2, "entry") in differing([entries[0], "text", *entries[2:]])


def test_a_forger_who_computes_every_hash_anew_is_refused_by_the_checkpoint(content):
    """Even one who signs the file again, with any key but the site's."""
    document = json.loads(content)
    account, head = document["accounts"][0], NO_HASH
    for entry in account["entries"]:
        entry["actor"] = "nobody"
        entry["previous_hash"] = head
        text = json.dumps([entry[name] for name in HASHED_FIELDS], ensure_ascii=False)
        entry["hash"] = head = hashlib.sha256(text.encode()).hexdigest()
    account["chain_head"] = account["verdict"]["chain_head"] = head
    assert found(written(document)) >= {("", 0, "signature"), (account["scope"], 0, "checkpoint root")}
    forged = written(document, FORGER)
    assert ("", 0, "signature public_key") in found(forged)
    assert (account["scope"], 0, "checkpoint root") in found(forged)
    # Who names no key is at least told that the checkpoints are not of the key that signed the file.
    assert (account["scope"], 0, "checkpoint") in found(forged, public_key="")


def test_the_site_itself_cannot_rewrite_what_was_noted_or_witnessed(content, project):
    """The site's own key signs anything; a head or a checkpoint kept elsewhere is what it cannot change."""
    account = project.pool_account
    note = log_of(account).checkpoint(4)
    origin = note.partition("\n")[0]
    document = json.loads(content)
    heads = [document["accounts"][0]["entries"][3]["hash"]]
    assert found(content, heads=heads, seen={origin: note, "site/of-others": note}) == set()
    shorter = copy.deepcopy(document)
    shorter["accounts"][0]["entries"] = shorter["accounts"][0]["entries"][:3]
    rewritten = written(shorter, site_key())
    assert ("", 0, "chain head noted earlier") in found(rewritten, heads=heads)
    assert ("", 0, f"entries of {origin}") in found(rewritten, seen={origin: note})


@pytest.mark.parametrize("name", ["project", "made_at", "format"])
def test_what_only_the_signature_covers_is_refused(content, name):
    document = json.loads(content)
    document[name] = other(document[name])
    assert ("", 0, "signature") in found(written(document))


def test_whether_answers_are_protected_is_covered_as_well(content):
    document = json.loads(content)
    document["answers"] = "not secret" if document["answers"] == "protected" else "protected"
    assert ("", 0, "signature") in found(written(document))
    with pytest.raises(StatementRefused, match="answers"):
        audit_statement(written(document | {"answers": "sold"}))


def test_every_byte_is_signed(content):
    """One letter in twenty, and all of the last line; JSON that no longer reads is refused outright."""
    signature = content.rindex(b"\n", 0, -1)
    for place in (*range(0, signature, 97), *range(signature, len(content) - 2, 11)):
        changed = bytearray(content)
        changed[place] ^= 1
        # Nothing but the refusal may be raised.
        with contextlib.suppress(StatementRefused):
            assert not audited(bytes(changed)).sound, place


@pytest.mark.parametrize("broken", [b"", b"[]", b"{}", b"\xff", b'{"a": 1, "a": 2}', b"[" * 100_000])
def test_what_is_no_statement_is_refused(broken):
    with pytest.raises(StatementRefused, match=r"JSON|fields"):
        audit_statement(broken)


def test_the_command_of_the_site_says_the_same(content, tmp_path):
    path: Path = tmp_path / "statement.json"
    path.write_bytes(content)
    out = StringIO()
    call_command("audit_ledger", statement=path, public_key=site_key().public_key, stdout=out)
    assert "document: as the site signed it" in out.getvalue()
    path.write_bytes(content.replace(b'"actor": "ada"', b'"actor": "bob"'))
    out = StringIO()
    with pytest.raises(CommandError, match="not what the site signed"):
        call_command("audit_ledger", statement=path, stdout=out)
    assert "entry 5, hash" in out.getvalue()
    path.write_bytes(b"{}")
    with pytest.raises(CommandError, match="fields"):
        call_command("audit_ledger", statement=path)
