from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from annotation.data.services import retention
from tests.factories import make_project, make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]


def test_files_whose_receiver_died_are_deleted_and_no_others():
    dataset = receive_upload(
        project=make_project(), file=ContentFile(b"text\na\n"), name="rows.csv", uploaded_by=make_user(), send=False
    )
    kept = dataset.upload.name
    orphan = default_storage.save(f"datasets/{dataset.project_id}/orphan/upload.csv", ContentFile(b"text,who\na,eve\n"))
    assert retention.forget_unowned_files() == 0  # its receiver may still be at it
    assert retention.forget_unowned_files(older_than=timedelta(0)) >= 1
    assert not default_storage.exists(orphan)
    assert default_storage.exists(kept)
