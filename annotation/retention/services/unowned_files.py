"""Files of uploads that no upload knows: whoever received them, or wrote them, died before it was stored."""

from collections.abc import Iterator
from datetime import timedelta

from django.core.files.storage import default_storage
from django.db.models import Q
from django.utils import timezone

from annotation.data.services import pool_files, uploads
from annotation.models import Dataset
from annotation.models.drafts import UploadDraft
from annotation.work.services import files

# Longer than the slowest request that brings a file.
UNOWNED_AFTER = timedelta(hours=6)


def forget_unowned_files(*, older_than: timedelta = UNOWNED_AFTER) -> int:
    """Delete files no upload knows: whoever received them died before the upload was stored; return how many.

    They may name contributors, and nobody will ever read them.
    """
    owned = {name for pair in Dataset.objects.values_list("upload", "pixels").iterator() for name in pair if name}
    owned |= set(UploadDraft.objects.values_list("upload", flat=True))
    owned |= pool_files.known_files()
    deleted = 0
    for name in _kept_files():
        if name in owned or timezone.now() - default_storage.get_modified_time(name) < older_than:
            continue
        # Its upload may have been stored since the others were listed.
        stored = Dataset.objects.filter(Q(upload=name) | Q(pixels=name)).exists() or pool_files.is_known(name)
        if not stored and not UploadDraft.objects.filter(upload=name).exists():
            default_storage.delete(name)
            deleted += 1
    return deleted


def _kept_files() -> Iterator[str]:
    """Yield the names under which uploads, their pixels and their columns are kept."""
    for name in files.names_in(uploads.FOLDER):
        _, folder, file = name.rsplit("/", 2)
        if folder == uploads.DRAFTS or file.startswith(("upload", "pixels-", pool_files.PREFIX)):
            yield name
