import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
# What the installation chapter puts before `docker compose up`.
COMMAND = re.search(r"^export SITE=(\S+)\n(ALLOWED_HOSTS.*?) \\$", (ROOT / "docs" / "operations.md").read_text(), re.M)
SAYS = """
import json
from dpal_site import settings
names = ("SECURE_SSL_REDIRECT SECURE_HSTS_SECONDS SESSION_COOKIE_NAME SESSION_COOKIE_SECURE CSRF_COOKIE_SECURE"
         " CSRF_COOKIE_NAME LANGUAGE_COOKIE_NAME ZONE_COOKIE_NAME LANGUAGE_COOKIE_SECURE DEBUG"
         " PSEUDONYM_KEY SIGNING_KEY").split()
said = {name: getattr(settings, name) for name in names}
print(json.dumps(said | {"SECOND_FACTOR": sorted(settings.SECOND_FACTOR)}))
"""


def documented(service):
    shell = {key: value.replace("$SITE", COMMAND[1]) for key, value in (w.split("=", 1) for w in COMMAND[2].split())}

    def filled(value):
        return re.sub(r"\$\{(\w+):?-(.*)\}", lambda found: shell.get(found[1], found[2]), str(value))

    return {key: filled(value) for key, value in SERVICES[service]["environment"].items()}


@pytest.fixture
def run(tmp_path):
    made = {"SECRETS": str(tmp_path / "secrets"), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", ROOT / "deploy" / "secrets.sh"], env=made, check=True, capture_output=True)

    def in_environment_of(service, *command, without=(), **changed):
        given = documented(service) | {"DPAL_VAR": str(tmp_path / "var"), "PATH": os.environ["PATH"]} | changed
        given = {
            key: value.replace("/run/secrets", str(tmp_path / "secrets"))
            for key, value in given.items()
            if key not in without
        }
        return subprocess.run([sys.executable, *command], cwd=ROOT, env=given, capture_output=True, text=True)

    return in_environment_of


CHECK = ("manage.py", "check", "--deploy", "--fail-level", "INFO")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("service", ["web", "label"])
def test_the_check_finds_nothing_in_the_documented_deployment(run, service):
    done = run(service, *CHECK)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.slow
def test_the_check_can_fail(run):
    done = run("web", *CHECK, HTTPS="0")
    assert done.returncode == 1
    assert "security.W008" in done.stderr


@pytest.mark.one_in(2)
@pytest.mark.parametrize("service", ["web", "label"])
def test_tls_is_demanded_and_no_key_is_where_it_is_not_used(run, service):
    done = run(service, "-c", SAYS)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    keys = said.pop("PSEUDONYM_KEY"), said.pop("SIGNING_KEY")
    assert [bool(key) for key in keys] == [service == "web"] * 2
    assert said == {
        "SECURE_SSL_REDIRECT": True,
        "SECURE_HSTS_SECONDS": 31536000,
        "SESSION_COOKIE_NAME": "__Host-session",
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "CSRF_COOKIE_NAME": "__Host-csrf",
        "LANGUAGE_COOKIE_NAME": "__Host-language",
        "ZONE_COOKIE_NAME": "__Host-timezone",
        "LANGUAGE_COOKIE_SECURE": True,
        "DEBUG": False,
        "SECOND_FACTOR": ["all"],
    }


@pytest.mark.slow
def test_a_deployed_site_asks_everybody_for_a_second_factor(run):
    """Unless somebody says otherwise, which the check of a deployment remarks."""
    said = [
        json.loads(run("web", "-c", SAYS, SECOND_FACTOR=asked, HTTPS=https).stdout)["SECOND_FACTOR"]
        for asked, https in (("", "1"), ("", "0"), ("managers, engineers", "0"))
    ]
    assert said == [["all"], [], ["engineers", "managers"]]
    assert "dpal.W002" in run("web", *CHECK, SECOND_FACTOR="none").stderr
    wrong = run("web", "-c", SAYS, SECOND_FACTOR="everybody")
    assert "SECOND_FACTOR must be" in wrong.stderr


@pytest.mark.one_in(3)
@pytest.mark.parametrize("secret", ["SECRET_KEY", "PSEUDONYM_KEY", "SIGNING_KEY"])
def test_a_site_with_its_own_database_has_no_default_for_a_secret(run, secret):
    done = run("web", "-c", "import dpal_site.settings", without={f"{secret}_FILE"})
    assert done.returncode != 0
    assert f"{secret} must be set" in done.stderr


@pytest.mark.slow
def test_the_check_finds_nothing_in_several_hosts_with_tls(run):
    addresses = {
        "DATABASE_URL": "postgresql://dpal:x@db.example.org/dpal?sslmode=verify-full",
        "CELERY_BROKER_URL": "amqps://dpal:x@broker.example.org//",
        "STORAGE_URL": "s3://bucket/prefix?endpoint_url=https%3A%2F%2Fs3.example.org",
        "DATABASE_POOLER": "transaction",
    }
    done = run("web", *CHECK, without={f"{name}_FILE" for name in addresses}, **addresses)
    assert done.returncode == 0, done.stderr


def test_the_label_process_refuses_the_password_of_the_owner(run):
    done = run("label", "-c", "import dpal_site.settings", DATABASE_URL="postgresql://dpal:x@postgres/dpal")
    assert "gets LABEL_DATABASE_URL and no DATABASE_URL" in done.stderr


@pytest.mark.parametrize("service", ["web", "label"])
def test_what_serves_pages_refuses_the_address_of_the_owner(run, service):
    done = run(service, "-c", "import dpal_site.settings", DATABASE_OWNER_URL="postgresql://dpal:x@postgres/dpal")
    assert "must not know DATABASE_OWNER_URL" in done.stderr


@pytest.mark.slow
def test_tables_are_changed_by_nobody_who_is_not_told_who_owns_them(run):
    done = run("worker", "manage.py", "migrate")
    assert done.returncode != 0
    assert "set DATABASE_OWNER_URL" in done.stderr
