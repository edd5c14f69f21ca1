import shutil
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from annotation.models import Project
from learner.models import ModelRelease
from privacy.ledger.models import LedgerEntry
from tests import learning, remembering
from tests.counting import begin_over
from tests.emptying import empty_tables
from tests.factories import make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kept() -> dict[str, remembering.Beginning]:
    return {}


def empty_site(storage: Path) -> None:
    empty_tables()
    begin_over()
    shutil.rmtree(storage)
    storage.mkdir()


def begin(kept, own_storage, tmp_path) -> Project:
    return remembering.begin(kept, "released", learning.released_experts, storage=own_storage, room=tmp_path / "room")


def in_order(rows: dict[str, bytes]) -> dict[str, list[bytes]]:
    """Return the rows of each table sorted: where a vacuum left room, a table gives them in an order of its own."""
    return {table: sorted(copied.splitlines()) for table, copied in rows.items()}


@pytest.mark.slow
def test_it_is_put_back_as_it_was_and_goes_on(kept, own_storage, tmp_path):
    built = begin(kept, own_storage, tmp_path)
    release = built.releases.get()
    card = own_storage / release.folder / "card.md"
    said = card.read_bytes()
    later = make_user("later")
    learning.run_to_release(built, later, version=2)
    card.unlink()
    empty_site(own_storage)
    assert not Project.objects.exists()

    again = begin(kept, own_storage, tmp_path)
    assert again == built
    assert ModelRelease.objects.get() == release
    assert in_order(remembering.written_rows()) == in_order(kept["released"].rows)
    assert card.read_bytes() == said
    assert make_user("another").pk > later.pk
    call_command("audit_ledger")
    assert learning.run_to_release(again, make_user(), version=2).version == 2


def test_every_rule_holds_again(kept, own_storage, tmp_path):
    begin(kept, own_storage, tmp_path)
    empty_site(own_storage)
    project = begin(kept, own_storage, tmp_path)
    entry = project.pool_account.entries.earliest("sequence")
    with as_owner(), pytest.raises(IntegrityError), transaction.atomic():
        LedgerEntry.objects.filter(pk=entry.pk).update(purpose="another")
    entry.pk = None
    with as_owner(), pytest.raises(IntegrityError), transaction.atomic():
        entry.save(force_insert=True)
