import json
import subprocess
import sys

import pytest

from privacy.ledger.auditor.merkle import consistency_proof, leaf_hash, root_of
from privacy.ledger.auditor.notes import Checkpoint, sign_checkpoint
from privacy.ledger.auditor.witness import LedgerRefused, ShownAccount, Site, Witness, witness_site
from privacy.ledger.keys import SiteKey

KEY = SiteKey.from_secret("a secret of the test, long enough to derive a key")
OTHER = SiteKey.from_secret("another secret of the test, as long as the other")
ENTRIES = [leaf_hash(str(each).encode()) for each in range(20)]


class Ledger:
    def __init__(self, **logs: list[bytes]) -> None:
        self.logs, self.key = logs, KEY

    def checkpoints(self) -> list[ShownAccount]:
        return [
            ShownAccount(name, sign_checkpoint(Checkpoint(f"site/{name}", len(leaves), root_of(leaves)), self.key))
            for name, leaves in self.logs.items()
        ]

    def proof(self, account: str, old: int, size: int) -> list[bytes]:
        return consistency_proof(self.logs[account][:size], old)


@pytest.fixture
def witness(tmp_path):
    seen = Witness.at(tmp_path / "seen.json", public_key=KEY.public_key)
    witness_site(Ledger(pool=ENTRIES[:12], answers=ENTRIES[:3]), seen)
    return Witness.at(tmp_path / "seen.json", public_key=KEY.public_key)


def test_what_grows_is_taken_and_remembered(witness):
    found = witness_site(Ledger(pool=ENTRIES[:17], answers=ENTRIES[:3], more=ENTRIES[:1]), witness)
    assert [checkpoint.size for checkpoint in found] == [17, 3, 1]
    again = Witness.at(witness.path, public_key=KEY.public_key)
    assert again.notes == witness.notes
    with pytest.raises(LedgerRefused, match="ROLLBACK of site/pool: 17 entries were seen, 16 are shown"):
        witness_site(Ledger(pool=ENTRIES[:16], answers=ENTRIES[:3], more=ENTRIES[:1]), again)


FORKED = [*ENTRIES[:11], leaf_hash(b"rewritten"), *ENTRIES[12:]]
REFUSED = {
    "cut": (Ledger(pool=ENTRIES[:11], answers=ENTRIES[:3]), "ROLLBACK of site/pool"),
    "emptied": (Ledger(pool=[], answers=ENTRIES[:3]), "ROLLBACK of site/pool"),
    "rewritten": (Ledger(pool=FORKED[:12], answers=ENTRIES[:3]), "FORK of site/pool: other entries"),
    "restored and grown again": (Ledger(pool=FORKED[:15], answers=ENTRIES[:3]), "FORK of site/pool: the 15"),
    "gone": (Ledger(pool=ENTRIES[:12]), "gone: site/answers"),
    "second cut": (Ledger(pool=ENTRIES[:15], answers=ENTRIES[:2]), "ROLLBACK of site/answers"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_forgot_or_forked_is_refused_and_nothing_is_kept_of_it(witness, how):
    shown, reason = REFUSED[how]
    kept = witness.path.read_bytes()
    with pytest.raises(LedgerRefused, match=reason):
        witness_site(shown, witness)
    assert witness.path.read_bytes() == kept
    # And again: what was refused once is not what is compared with next.
    with pytest.raises(LedgerRefused, match=reason):
        witness_site(shown, Witness.at(witness.path, public_key=KEY.public_key))


def test_another_key_is_refused(witness):
    forged = Ledger(pool=ENTRIES[:12], answers=ENTRIES[:3])
    forged.key = OTHER
    with pytest.raises(LedgerRefused, match="not the site's"):
        witness_site(forged, witness)
    with pytest.raises(LedgerRefused, match="another key"):
        Witness.at(witness.path, public_key=OTHER.public_key)


def test_a_log_shown_twice_is_refused(witness):
    class Twice(Ledger):
        def checkpoints(self):
            return super().checkpoints() * 2

    with pytest.raises(LedgerRefused, match="twice"):
        witness_site(Twice(pool=ENTRIES[:12], answers=ENTRIES[:3]), witness)


@pytest.mark.parametrize("answer", [None, [b"x"], [ENTRIES[0]] * 5, "text"])
def test_an_answer_that_proves_nothing_is_refused(witness, answer):
    class Vague(Ledger):
        def proof(self, account, old, size):
            if answer is None:
                raise KeyError("hashes")
            return answer

    with pytest.raises(LedgerRefused, match=r"FORK|not what it should be"):
        witness_site(Vague(pool=ENTRIES[:15], answers=ENTRIES[:3]), witness)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"public_key": "x"}'])
def test_a_damaged_file_is_refused(witness, content):
    """Beginning anew would be to forget; whoever witnesses decides that by removing the file."""
    witness.path.write_text(content)
    with pytest.raises(LedgerRefused, match="damaged"):
        Witness.at(witness.path, public_key=KEY.public_key)


def test_what_is_kept_is_checked_too(witness):
    kept = json.loads(witness.path.read_text())
    kept["checkpoints"]["site/pool"] = kept["checkpoints"]["site/pool"].replace("\n12\n", "\n2\n")
    witness.path.write_text(json.dumps(kept))
    with pytest.raises(LedgerRefused, match="not the site's"):
        witness_site(Ledger(pool=ENTRIES[:3], answers=ENTRIES[:3]), Witness.at(witness.path, public_key=KEY.public_key))


@pytest.mark.parametrize("address", ["http://labels.example", "ftp://labels.example", "labels.example", ""])
def test_a_token_is_not_sent_in_the_clear(address):
    with pytest.raises(ValueError, match="https"):
        Site(address, "voice", "token")


def test_no_module_of_an_auditor_needs_django():
    program = (
        "import sys; import privacy.audit, privacy.ledger.auditor.account; "
        "sys.exit(any(name.partition('.')[0] in ('django', 'celery', 'psycopg') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
