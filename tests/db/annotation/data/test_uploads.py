import errno

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from annotation.data.services import uploads
from annotation.errors import InvalidUpload, StorageFull
from tests.factories import make_project, make_user, open_preset

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_storage")]
NAME = f"{uploads.FOLDER}/1/a/upload.csv"


class BreaksOff(ContentFile):
    def __init__(self, number):
        super().__init__(b"text\na\n")
        self.number = number

    def chunks(self, chunk_size=None):
        yield b"text\n"
        raise OSError(self.number, "as the disk says it")


def kept():
    return default_storage.exists(NAME)


def test_a_file_is_kept_as_it_was_sent():
    assert uploads.keep_file(ContentFile(b"text\na\n"), NAME) == NAME
    with default_storage.open(NAME) as file:
        assert file.read() == b"text\na\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_file_without_room_is_refused_and_its_half_deleted(number):
    with pytest.raises(StorageFull, match="Nothing was stored"):
        uploads.keep_file(BreaksOff(number), NAME)
    assert not kept()


def test_a_disk_that_fails_says_so_and_keeps_no_half():
    with pytest.raises(OSError, match="as the disk says it") as failure:
        uploads.keep_file(BreaksOff(errno.EIO), NAME)
    assert failure.value.errno == errno.EIO
    assert not kept()


@pytest.mark.parametrize(
    ("role", "bad_rows", "size", "message"),
    [
        ("private", "keep_good", 1, "role: must be one of"),
        ("pool", "guess", 1, "bad_rows: must be one of"),
        ("pool", "keep_good", 101, "file: is larger than 100 bytes"),
    ],
)
def test_what_no_file_could_mend_is_named_by_field(settings, role, bad_rows, size, message):
    settings.UPLOAD_MAX_BYTES = 100
    project = make_project()
    with pytest.raises(InvalidUpload, match=message):
        uploads.check_upload(project=project, role=role, bad_rows=bad_rows, size=size)
    uploads.check_upload(project=project, role="pool", bad_rows="keep_good", size=100)


def test_a_stream_takes_private_records_one_by_one_and_public_files_as_files():
    project = open_preset(make_user(), "fraud-stream")
    with pytest.raises(InvalidUpload, match="role: post private records of a"):
        uploads.check_upload(project=project, role="pool", bad_rows="keep_good", size=1)
    uploads.check_upload(project=project, role="public_test", bad_rows="keep_good", size=1)
