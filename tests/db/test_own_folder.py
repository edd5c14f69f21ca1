import os

from django.conf import settings
from django.core.files.storage import default_storage

from tests.conftest import RUN_DIR, WORKER


def test_files_of_this_process_stay_in_its_own_folder():
    assert os.environ.get("PYTEST_XDIST_WORKER", "main") == WORKER
    assert default_storage.path("x") == str(RUN_DIR / "storage" / "x")
    assert settings.LEDGER_COUNTER_PATH.parent == RUN_DIR
