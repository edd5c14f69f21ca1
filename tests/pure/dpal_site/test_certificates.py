import datetime
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

ROOT = Path(__file__).resolve().parents[3]
SERVERS = ("postgres", "valkey")


def make(folder):
    """Run the script; return how it ended."""
    given = {"SECRETS": str(folder), "PATH": os.environ["PATH"]}
    return subprocess.run(
        ["sh", ROOT / "deploy" / "secrets.sh"], env=given, capture_output=True, text=True, check=False
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def read(folder, name):
    return x509.load_pem_x509_certificate((folder / name).read_bytes())


def public(key):
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def belong_together(folder, server):
    authority, certificate = read(folder, "authority"), read(folder, f"{server}_certificate")
    certificate.verify_directly_issued_by(authority)
    key = serialization.load_pem_private_key((folder / f"{server}_key").read_bytes(), None)
    return public(certificate.public_key()) == public(key.public_key())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "secrets"
    done = make(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def secrets(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "secrets"))


def test_each_server_has_a_certificate_for_its_name_alone(secrets):
    for server in SERVERS:
        assert belong_together(secrets, server)
        extensions = read(secrets, f"{server}_certificate").extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
        assert names == [server, "localhost"]
        assert extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
        uses = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(uses) == [ExtendedKeyUsageOID.SERVER_AUTH]
    limits = read(secrets, "authority").extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == (True, 0)


def test_the_authoritys_key_is_for_its_owner_and_for_no_container(secrets):
    assert (secrets / "authority_key").stat().st_mode & 0o777 == 0o600
    assert secrets.stat().st_mode & 0o777 == 0o700
    assert "authority_key" not in (ROOT / "docker-compose.yml").read_text()
    # Nothing half made is left.
    assert not [name for name in contents(secrets) if name.endswith(".new") or name in ("request", "extensions")]


def test_the_addresses_demand_a_checked_certificate(secrets):
    for name in ("database_owner_url", "database_url", "label_database_url"):
        address = (secrets / name).read_text()
        assert address.endswith("@postgres:5432/dpal?sslmode=verify-full&sslrootcert=/run/secrets/authority")
    assert (secrets / "broker_url").read_text().startswith("rediss://:")


def test_what_is_still_good_stays(secrets):
    before = contents(secrets)
    assert make(secrets).returncode == 0
    assert contents(secrets) == before


def sign(secrets, server, days):
    request = secrets.parent / "request"
    key, authority = secrets / f"{server}_key", secrets / "authority"
    subprocess.run(["openssl", "req", "-new", "-subj", "/CN=x", "-key", key, "-out", request], check=True)
    words = ["-CA", authority, "-CAkey", secrets / "authority_key", "-set_serial", "7", "-days", str(days)]
    made = secrets / f"{server}_certificate"
    command = ["openssl", "x509", "-req", "-in", request, *words, "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    return made.read_bytes()


@pytest.mark.parametrize(("days", "renewed"), [(100, True), (300, False)])
def test_a_certificate_that_ends_soon_is_made_anew(secrets, days, renewed):
    old = sign(secrets, "postgres", days)
    before = contents(secrets)
    done = make(secrets)
    after = contents(secrets)
    assert (after["postgres_certificate"] != old) is renewed
    assert {name for name in after if after[name] != before[name]} == (
        {"postgres_certificate", "postgres_key"} if renewed else set()
    )
    assert ("restart postgres" in done.stdout) is renewed
    if renewed:
        assert belong_together(secrets, "postgres")
        left = read(secrets, "postgres_certificate").not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        assert left > datetime.timedelta(days=800)


def test_an_interrupted_renewal_is_finished(secrets):
    """The key was put in place and the certificate was not."""
    (secrets / "valkey_key").write_bytes((secrets / "postgres_key").read_bytes())
    assert make(secrets).returncode == 0
    assert all(belong_together(secrets, server) for server in SERVERS)


def test_another_authority_signs_everything_anew(secrets):
    before = contents(secrets)
    for name in ("authority", "authority_key"):
        (secrets / name).unlink()
    assert make(secrets).returncode == 0
    assert all(belong_together(secrets, server) for server in SERVERS)
    changed = {name for name, content in contents(secrets).items() if content != before[name]}
    assert changed == {"authority", "authority_key"} | {
        f"{server}_{part}" for server in SERVERS for part in ("certificate", "key")
    }
