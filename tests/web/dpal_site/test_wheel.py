import hashlib
import io
import re
import subprocess
import sys
import zipfile

import pytest
from django.urls import reverse

from dpal.errors import NotGenuine
from dpal.releases import fetch_wheel
from dpal_site import wheel
from dpal_site.embedded.servers import REPOSITORY
from tests.clean import UV


def test_the_index_names_the_wheel_of_the_sources_by_its_digest(client):
    page = client.get(reverse("wheel:index")).content.decode()
    ((address, digest),) = re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page)
    listed = client.get(reverse("wheel:index"), headers={"Accept": wheel.JSON_FORM})
    assert listed.headers["Content-Type"] == wheel.JSON_FORM
    (file,) = listed.json()["files"]
    assert (file["url"], file["hashes"]["sha256"]) == (address, digest)
    content = client.get(address).content
    assert hashlib.sha256(content).hexdigest() == digest
    inside = zipfile.ZipFile(io.BytesIO(content))
    for path in (REPOSITORY / "client" / "src").rglob("*.py"):
        name = path.relative_to(REPOSITORY / "client" / "src").as_posix()
        assert inside.read(name) == path.read_bytes()
    assert client.get(reverse("wheel:file", args=["other.whl"])).status_code == 404
    # Each process builds its own, and all serve the same bytes.
    built = wheel.client_wheel()
    wheel.client_wheel.cache_clear()
    assert wheel.client_wheel() == built


@pytest.mark.django_db(transaction=True)
def test_it_installs_from_the_site_alone(live_server, tmp_path, monkeypatch):
    command = [UV, "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", tmp_path / "packages"]
    command += ["--python", sys.executable, "--find-links", f"{live_server.url}/simple/dpal-client/", "dpal-client"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "packages" / "dpal" / "model.py").exists()
    assert fetch_wheel(live_server.url, "any").content == wheel.client_wheel()[1]
    monkeypatch.setattr("dpal.site.Site.file", lambda site, path: iter([b"something else"]))
    with pytest.raises(NotGenuine, match="not the file that its index names"):
        fetch_wheel(live_server.url, "any")
