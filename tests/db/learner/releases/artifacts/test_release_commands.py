import zipfile
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from learner.releases import storage
from learner.releases.services import versions
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def release(broker):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    return learning.run_to_release(project, make_user(), version=1)


def said(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_a_release_leaves_and_is_found_genuine(release, tmp_path):
    target = tmp_path / "release.zip"
    told = said("export_release", release.project.slug, "latest", str(target))
    key = storage.signer().public_key
    assert key in told
    with zipfile.ZipFile(target) as archive:
        assert set(archive.namelist()) == set(release.digests)
        archive.extractall(tmp_path / "there")
    checked = said("verify_release", str(tmp_path / "there"), "--public-key", key)
    assert all(f"{digest}  {name}" in checked for name, digest in release.digests.items())
    (tmp_path / "there" / "card.md").write_text("epsilon 0")
    with pytest.raises(CommandError, match=r"NOT GENUINE.*card\.md"):
        said("verify_release", str(tmp_path / "there"))
    with pytest.raises(CommandError, match="exists already"):
        said("export_release", release.project.slug, "1", str(target))
    versions.retire_release(release=release, reason="labels were wrong")
    assert "is retired: labels were wrong" in said("export_release", release.project.slug, "1", str(tmp_path / "b.zip"))
    with pytest.raises(CommandError, match="no such version"):
        said("export_release", release.project.slug, "latest", str(tmp_path / "c.zip"))
