from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import dpal
from annotation.models import Project, Role
from annotation.people.services import members
from annotation.work.services import tokens
from dpal import errors
from learner.releases import storage
from learner.releases.services import versions
from tests import learning
from tests.between import Between
from tests.db.learner.trainings.test_spans import open_spans, released
from tests.factories import make_user
from tests.tls_front import TlsFront

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = ["an example", "What's THIS \u2013 a pear, or a hammer?", "apple apple saw", "", "naïve 東京"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DPAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DPAL_CONFIG", str(tmp_path / "config"))
    monkeypatch.delenv("DPAL_TOKEN", raising=False)
    monkeypatch.delenv("DPAL_SITE", raising=False)
    return tmp_path


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user(), features="static_encoder", text_columns=16)
    learning.fill_trusted(opened)
    return opened


def token_for(project, *scopes: str, role: str = Role.ENGINEER) -> str:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))[1]


def kept(home: Path) -> set[str]:
    files = {path for path in (home / "cache").rglob("*") if path.is_file() and not path.name.startswith(".")}
    for path in files:
        if path.parent.parent.name == "files":
            assert dpal.files.sha256_of(path) == path.name
    return {path.name for path in files}


def refused(error: type[errors.DpalError], sentence: str, *asked: Any, **given: Any) -> None:
    with pytest.raises(error) as caught:
        dpal.load(*asked, **given)
    said = str(caught.value)
    assert sentence in said, said
    assert len(said.splitlines()) == 1
    assert said.endswith((".", "`."))


@pytest.mark.slow
def test_a_model_in_three_lines_and_then_without_a_network(live_site, project, home):
    release = learning.run_to_release(project, make_user(), version=1)
    secret, site = token_for(project, "models:read"), live_site.url

    model = dpal.load(site, project.slug, token=secret)
    answer = requests.post(
        f"{site}/api/v1/projects/{project.slug}/models/latest/predict",
        json={"texts": TEXTS},
        headers={"Authorization": f"Bearer {secret}"},
        timeout=120,
    ).json()
    assert model.predict(TEXTS).tolist() == answer["labels"]
    np.testing.assert_allclose(model.predict_proba(TEXTS), answer["probabilities"], rtol=0, atol=1e-12)
    assert np.ptp(model.predict_proba(TEXTS)[:, 0]) > 1e-3

    assert (model.version, model.classes) == (1, ("fruit", "tool"))
    (terms,) = release.guarantee
    assert model.guarantee.limit == dpal.Budget(terms["limit_epsilon"], terms["limit_delta"])
    assert model.guarantee.spent == dpal.Budget(terms["spent_epsilon"], terms["spent_delta"])
    assert model.guarantee.unit == "record"
    assert "anyone who sees the released models" in model.guarantee.adversary
    assert model.card == storage.card_of(release=release)

    with Between(urlsplit(site).port).running() as line:
        # Known by its digest, from wherever it comes: the table of 7.5 MB is not fetched again.
        dpal.load(line.url, project.slug, token=secret)
        assert line.passed < 50_000
    live_site.stop()
    again = dpal.load(site, project.slug, offline=True)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert dpal.load(site, project.slug, 1, offline=True).version == 1
    refused(errors.NotCached, "was never downloaded here", site, project.slug, 2, offline=True)
    for version in ("latest", 1):
        with pytest.warns(errors.OfflineWarning, match="comes from the cache. Whether it was retired since"):
            found = dpal.load(site, project.slug, version, token=secret)
        np.testing.assert_array_equal(found.predict_proba(TEXTS), model.predict_proba(TEXTS))
    refused(errors.NotCached, "was never downloaded here", site, project.slug, 2, token=secret)
    (stored,) = (home / "cache").rglob(release.digests["weights.json"])
    stored.write_bytes(stored.read_bytes().replace(b"1", b"2", 1))
    refused(errors.NotGenuine, "weights.json in the cache differs", site, project.slug, offline=True)


@pytest.mark.slow
def test_a_model_of_spans_is_loaded_and_finds_them_without_a_network(live_site, home):
    spans = open_spans(class_descriptions=["name: please call {Anna|Olga} now", "day: come on {monday|friday}"])
    released(spans)
    secret, texts = token_for(spans, "models:read"), ["please call Olga on friday", "stop all of it", ""]
    model = dpal.load(live_site.url, spans.slug, token=secret)
    found = model.predict(texts)
    assert [[(span.start, span.end, span.type) for span in each] for each in found] == [
        [(12, 16, "name"), (20, 26, "day")],
        [],
        [],
    ]
    live_site.stop()
    assert dpal.load(live_site.url, spans.slug, offline=True).predict(texts).tolist() == found.tolist()


def test_what_does_not_verify_is_refused_and_leaves_nothing(live_server, project, home, monkeypatch):
    release = learning.run_to_release(project, make_user(), version=1)
    secret = token_for(project, "models:read")
    site = live_server.url

    refused(errors.NotAllowed, "There is no token", site, project.slug)
    refused(errors.NotAllowed, "does not accept the token", site, project.slug, token=secret + "x")
    without = token_for(project, "ledger:read")
    refused(errors.NotInScope, "lacks the scope models:read", site, project.slug, token=without)
    refused(errors.NotThere, "no version latest of project nothing", site, "nothing", token=secret)
    refused(errors.NotThere, "no version 7", site, project.slug, 7, token=secret)
    other = storage.Signer.from_secret("another secret of the test, long enough for a key").public_key
    refused(errors.NotGenuine, "another key", site, project.slug, token=secret, public_key=other)
    refused(errors.DpalError, "is not encrypted", "http://dpal.example.org", "p", token=secret)
    assert kept(home) == set()

    # Somebody on the way who changes a file, the list of files, or a digest in what the site says.
    digest = release.digests["manifest.json"].encode()
    for place, change in enumerate(
        (
            (b'"coef"', b'"cOef"'),
            (b'"dpal-manifest/1"', b'"dpal-manifest/9"'),
            (b'"Ed25519"', b'"Ed25518"'),
            (digest, digest[::-1]),
        )
    ):
        monkeypatch.setenv("DPAL_CACHE", str(home / "cache" / str(place)))
        with Between(urlsplit(site).port).running() as line:
            line.change = change
            refused(errors.NotGenuine, "", line.url, project.slug, token=secret)
            assert line.changed
        assert not list((home / "cache").rglob("*.json")), change
        assert not list((home / "cache").rglob("*.part")), change
    # A genuine release of one project in the place of another's.
    Project.objects.filter(pk=project.pk).update(slug="another")
    refused(
        errors.NotGenuine, f"sent version 1 of {project.slug} where version 1 of another", site, "another", token=secret
    )
    Project.objects.filter(pk=project.pk).update(slug=project.slug)
    assert not list((home / "cache").rglob("*.json"))

    model = dpal.load(site, project.slug, token=secret)
    # The key of the first release is the site's for good, also where the site says another one later.
    dpal.settings.remember(site, public_key=other)
    refused(errors.NotGenuine, "`dpal trust", site, project.slug, token=secret)
    dpal.settings.remember(site, public_key=storage.signer().public_key)

    versions.retire_release(release=project.releases.get(version=1), reason="Wrong guidelines.")
    refused(errors.Retired, "was retired (Wrong guidelines)", site, project.slug, 1, token=secret)
    assert dpal.load(site, project.slug, 1, token=secret, retired=True).classes == model.classes
    refused(errors.Retired, "was retired (Wrong guidelines)", site, project.slug, 1, offline=True)
    refused(errors.NotThere, "no version latest", site, project.slug, token=secret)


@pytest.mark.slow
def test_a_download_that_breaks_off_goes_on_from_there(live_server, project, home, monkeypatch):
    release = learning.run_to_release(project, make_user(), version=1)
    secret = token_for(project, "models:read")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    size = (storage.folder_of(release) / "encoder.npz").stat().st_size
    with Between(urlsplit(live_server.url).port).running() as line:
        line.cut_after = 3_000_000
        refused(errors.Broken, "broke off: run the same again", line.url, project.slug, token=secret)
        assert "latest.json" not in kept(home)
        assert release.digests["encoder.npz"] not in kept(home)
        (partial,) = (home / "cache").rglob(f".{release.digests['encoder.npz']}.part")
        have = partial.stat().st_size
        assert 1_000_000 < have < size
        line.cut_after, line.passed = None, 0
        assert dpal.load(line.url, project.slug, token=secret).predict(["a pear"]).shape == (1,)
        assert size - have < line.passed < size - have + 100_000
    assert {"latest.json", "1.json", *release.digests.values()} == kept(home)
    assert not list((home / "cache").rglob("*.part"))


def certificate(folder: Path, *, until: timedelta) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{until.days}.crt", folder / f"{until.days}.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return paths


def test_certificates_are_checked(live_server, project, home, monkeypatch):
    learning.run_to_release(project, make_user(), version=1)
    secret = token_for(project, "models:read")
    behind = urlsplit(live_server.url).port
    good, expired = (certificate(home, until=timedelta(days=days)) for days in (5, -5))
    for (path, key), sentence in ((good, ""), (expired, "has expired, so nothing was sent")):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(path))
        with TlsFront(behind, path, key).running() as front:
            address = f"https://localhost:{front.port}"
            if sentence:
                refused(errors.NotTrusted, sentence, address, project.slug, token=secret)
            else:
                assert dpal.load(address, project.slug, token=secret).version == 1
                monkeypatch.delenv("REQUESTS_CA_BUNDLE")
                refused(errors.NotTrusted, "not trusted here", address, project.slug, token=secret)
