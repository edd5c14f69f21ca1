import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import compose_spec
import pytest
import yaml
from django.urls import get_resolver, reverse

from tests.permission_scene import named_patterns

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OWN = ("migrate", "web", "label", "worker", "helper", "outside", "beat")


def pinned(name):
    lines = (ROOT / name).read_text().splitlines()
    return {tuple(line.split(" ")[0].split("==")) for line in lines if re.match(r"[a-zA-Z0-9]", line)}


def merged():
    # The specification knows a tag or a digest; Docker takes both, and goes by the digest.
    told = re.sub(r":[\w.-]+@sha256:", "@sha256:", yaml.safe_dump(COMPOSE, sort_keys=False))
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", told)


def test_the_compose_file_follows_the_specification():
    compose_spec.PyCompose.from_yaml(merged())


def test_the_dockerfile_passes_its_linter(tmp_path):
    hadolint = Path(sys.executable).with_name("hadolint")
    good = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert good.returncode == 0, good.stdout
    planted = tmp_path / "Dockerfile"
    planted.write_text("FROM python:latest\nRUN cd /tmp && sudo pip install django\n")
    assert subprocess.run([hadolint, planted], capture_output=True).returncode == 1


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    user, _, group = service["user"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    assert 0 < service["pids_limit"] <= 2048
    assert "healthcheck" in service or name in ("web", "label")  # the image's own


def neighbours(name):
    own = set(SERVICES[name]["networks"])
    return {other for other in SERVICES if other != name and own & set(SERVICES[other]["networks"])}


def test_each_reaches_whom_it_talks_to_and_the_servers_reach_nobody_outside():
    networks = {name: set(service["networks"]) for name, service in SERVICES.items()}
    assert set().union(*networks.values()) == set(COMPOSE["networks"])
    closed = {name for name, network in COMPOSE["networks"].items() if network.get("internal")}
    assert {name for name in SERVICES if networks[name] <= closed} == {"migrate", "beat", "postgres", "valkey"}
    assert neighbours("postgres") == set(OWN)
    assert neighbours("valkey") == set(OWN) - {"migrate"}
    assert neighbours("clamav") == set()
    # Nobody but the two that answer pages stands where visitors come in.
    assert {name for name in SERVICES if "pages" in networks[name]} == {"web", "label"}
    assert all("ports" not in SERVICES[name] for name in SERVICES if "pages" not in networks[name])


def test_label_pages_come_from_the_address_of_all_others():
    assert SERVICES["web"]["environment"]["LABEL_PROCESS_URL"] == "${LABEL_PROCESS_URL:-http://label:8000}"
    assert SERVICES["label"]["environment"]["TRUSTED_PROXY_COUNT"] == "${LABEL_TRUSTED_PROXY_COUNT:-1}"


def test_the_example_of_a_proxy_logs_no_address_that_lets_somebody_in():
    example = (ROOT / "docs" / "operations.md").read_text().partition("For nginx:\n\n```\n")[2].partition("```")[0]
    (quiet,) = re.findall(
        r"^location ~ (\S+) \{ access_log off; proxy_pass http://127\.0\.0\.1:8000; \}$", example, re.M
    )
    (kept,) = re.findall(r"^log_format plain '([^']*)'", example, re.M)
    # Neither with a query, which may say where to go on, nor as where a page was asked from.
    assert set(re.findall(r"\$\w+", kept)) <= {
        "$remote_addr",
        "$time_iso8601",
        "$request_method",
        "$uri",
        "$status",
        "$body_bytes_sent",
        "$request_time",
    }
    addresses = [
        "/accounts/confirm-email/x/",
        "/accounts/password/reset/key/1-x/",
        "/accounts/password/reset/key/done/",
    ]
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if {"secret", "token"} & set(pattern.pattern.converters):
            addresses.append(reverse(name, kwargs=dict.fromkeys(pattern.pattern.converters, "x")))
    assert len(addresses) == 5
    assert [address for address in addresses if not re.match(quiet, address)] == []


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_come_from_files(name):
    service = SERVICES[name]
    plain = {"SECRET_KEY", "PSEUDONYM_KEY", "SIGNING_KEY", "DATABASE_URL", "CELERY_BROKER_URL", "POSTGRES_PASSWORD"}
    plain |= {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "DATABASE_OWNER_URL"}
    assert not plain & set(service.get("environment", ()))
    assert set(service["secrets"]) <= set(COMPOSE["secrets"])
    files = [value for value in service.get("environment", {}).values() if str(value).startswith("/run/secrets/")]
    assert {Path(value).name for value in files} <= set(service["secrets"])


def test_images_are_pinned():
    images = [service["image"] for service in SERVICES.values()]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    ours = f"dpal:{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"
    wanted = re.compile(r"[\w/]+:\d+\.[\w.-]+@sha256:[0-9a-f]{64}")
    assert [image for image in images if image != ours and not wanted.fullmatch(image)] == []


def test_only_the_web_servers_are_reached_from_outside_and_only_on_this_host():
    assert [name for name in SERVICES if "ports" in SERVICES[name]] == ["web", "label"]
    assert SERVICES["web"]["ports"] == ["${BIND:-127.0.0.1}:${PORT:-8000}:8000"]
    assert SERVICES["label"]["ports"] == ["${BIND:-127.0.0.1}:${LABEL_PORT:-8001}:8000"]


def test_servers_speak_tls_and_nothing_else():
    """What they then refuse is tried on real ones in tests/hosts."""
    valkey, postgres = SERVICES["valkey"]["command"][-1], SERVICES["postgres"]["command"][-1]
    assert "--port 0 --tls-port 6379" in valkey
    assert "-c hba_file=/etc/postgresql/pg_hba.conf -c ssl=on" in postgres
    assert SERVICES["postgres"]["configs"] == [{"source": "pg_hba", "target": "/etc/postgresql/pg_hba.conf"}]
    rules = [line.split() for line in (ROOT / COMPOSE["configs"]["pg_hba"]["file"]).read_text().splitlines()]
    network = [rule for rule in rules if rule and not rule[0].startswith("#") and rule[0] != "local"]
    assert [(rule[0], rule[-1]) for rule in network] == [("hostssl", "scram-sha-256")]
    assert "sslmode=verify-full" in SERVICES["postgres"]["healthcheck"]["test"][-1]
    assert "--tls --cacert" in " ".join(SERVICES["valkey"]["healthcheck"]["test"])


def test_the_key_of_a_server_is_given_to_that_server_alone():
    for server in ("postgres", "valkey"):
        holders = [name for name in SERVICES if f"{server}_key" in SERVICES[name]["secrets"]]
        assert holders == [server]
    # The scanner talks to none of them.
    assert [name for name in SERVICES if "authority" not in SERVICES[name]["secrets"]] == ["clamav"]
    assert all(SERVICES[name]["environment"]["BROKER_CA_FILE"] for name in OWN)


def test_the_process_of_the_label_pages_is_given_no_key_to_what_it_must_not_read():
    label = SERVICES["label"]
    own = {"label_database_url", "label_s3_key", "label_s3_secret"}
    assert set(label["secrets"]) == own | {"broker_url", "secret_key", "authority"}
    assert not {"s3_key", "s3_secret"} & set(label["secrets"])
    assert not {"DATABASE_URL_FILE", "PSEUDONYM_KEY_FILE", "SIGNING_KEY_FILE"} & set(label["environment"])
    assert label["volumes"] == ["files:/var/lib/dpal:ro"]
    assert [name for name in SERVICES if "label_database_url" in SERVICES[name].get("secrets", ())] == [
        "migrate",
        "label",
    ]


def test_who_owns_the_tables_is_told_to_nobody_but_who_migrates():
    for secret, holders in (("database_owner_url", ["migrate"]), ("postgres_password", ["postgres"])):
        assert [name for name in SERVICES if secret in SERVICES[name].get("secrets", ())] == holders
    assert [name for name in SERVICES if "DATABASE_OWNER_URL_FILE" in SERVICES[name].get("environment", ())] == [
        "migrate"
    ]
    using = {name: SERVICES[name]["environment"].get("DATABASE_URL_FILE") for name in OWN if name != "label"}
    assert set(using.values()) == {"/run/secrets/database_url"}


def test_the_scanner_is_reached_through_a_volume_and_by_nobody_else():
    scanner = SERVICES["clamav"]
    assert scanner["profiles"] == ["antivirus"]
    assert not {"ports", "expose"} & set(scanner)
    told = (ROOT / "deploy" / "clamd.conf").read_text()
    assert "TCPSocket" not in told
    assert re.findall(r"^LocalSocket (.+)$", told, re.M) == ["/tmp/clamd.sock"]
    assert "scanner:/tmp" in scanner["volumes"]
    assert "scanner:/run/scanner:ro" in SERVICES["worker"]["volumes"]
    assert "AlertExceedsMax yes" in told


def test_a_cluster_is_known_to_the_worker_alone_and_reaches_it_at_the_ports_its_driver_takes():
    told = {"SPARK_MASTER", "PYSPARK_SUBMIT_ARGS"}
    assert {name for name in SERVICES if told & set(SERVICES[name].get("environment", ()))} == {"worker"}
    assert [name for name in SERVICES if "spark_defaults" in SERVICES[name]["secrets"]] == ["worker"]
    assert set(SERVICES["worker"]["secrets"]) == set(COMPOSE["x-site"]["secrets"]) | {"spark_defaults"}
    opened = yaml.safe_load((ROOT / "deploy" / "spark.yml").read_text())["services"]
    assert set(opened) == {"worker"}
    assert set(opened["worker"]) == {"ports"}
    page = (ROOT / "docs" / "operations.md").read_text()
    first = sorted(map(int, re.findall(r"^spark\.driver\.\S*port\s+(\d+)$", page, re.MULTILINE)))
    # A second job of the same worker finds the port taken, and takes the next.
    jobs = int(SERVICES["worker"]["command"][SERVICES["worker"]["command"].index("--concurrency") + 1])
    ranges = [f"{port}-{port + jobs - 1}" for port in first]
    assert len(first) == 2
    # Nothing is opened to everybody where nobody said to whom.
    assert opened["worker"]["ports"][0].startswith("${SPARK_BIND:?")
    assert all(each.startswith("${SPARK_BIND") for each in opened["worker"]["ports"])
    assert [":".join(each.rsplit(":", 2)[1:]) for each in opened["worker"]["ports"]] == [f"{r}:{r}" for r in ranges]


def test_the_image_holds_the_same_versions_and_no_tools():
    everything, runtime = pinned("requirements.lock.txt"), pinned("requirements.runtime.lock.txt")
    assert runtime <= everything
    names = {name for name, _ in runtime}
    assert not names & {"pytest", "mypy", "ruff", "playwright", "hypothesis"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.match(r"[\w.-]+", each)[0].lower().replace("_", "-") for each in project["dependencies"]}
    assert wanted <= names


def test_the_image_holds_what_runs_and_nothing_else():
    """Not the history, not the tests, not the secrets; but the translations."""
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert (ROOT / ".dockerignore").read_text().startswith("*\n")
    assert names == allowed
    assert not names & {".", ".git", "tests", "secrets", "var", "deploy"}
    # Whatever the settings read from beside the packages is there.
    settings = (ROOT / "dpal_site" / "settings.py").read_text()
    beside = set(re.findall(r'BASE_DIR / "(\w+)"', settings))
    assert beside <= names
    assert "locale" in beside


@pytest.mark.slow
def test_the_image_runs_without_the_demo_and_the_papers(tmp_path):
    """The site is whole without what only a look at it needs: the same files as in the image, started."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    left_out = {ROOT / line for line in lines if not line.startswith(("*", "!"))}
    assert {path.relative_to(ROOT).as_posix() for path in left_out} >= {
        "dpal_site/demo",
        "dpal_site/management/commands/demo.py",
        "learner/papers",
    }
    assert all(path.exists() for path in left_out)

    def ignored(folder, names):
        return [name for name in names if name == "__pycache__" or Path(folder) / name in left_out]

    for names, target in re.findall(r"^COPY (?!--from)(.+) (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE):
        for source in (ROOT / name for name in names.split()):
            if source.is_dir():
                shutil.copytree(source, tmp_path / target, ignore=ignored)
            else:
                shutil.copy(source, tmp_path)
    environment = {"PATH": os.environ["PATH"], "DPAL_NO_SERVERS": "1", "DPAL_VAR": str(tmp_path / "var")}

    def manage(*words):
        command = [sys.executable, "-B", "manage.py", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    # Every address, and with them every view, is loaded.
    good = manage("check")
    assert good.returncode == 0, good.stderr
    demo = manage("demo", "--exit")
    assert demo.returncode == 1
    assert "Unknown command" in demo.stderr


def test_secrets_are_made_once(tmp_path):
    def make():
        command = ["sh", ROOT / "deploy" / "secrets.sh"]
        subprocess.run(
            command, check=True, capture_output=True, env={"SECRETS": str(tmp_path), "PATH": "/usr/bin:/bin"}
        )
        return {path.name: path.read_text() for path in tmp_path.iterdir()}

    first = make()
    # The authority's key signs certificates; nothing that runs has a use for it.
    assert set(first) == set(COMPOSE["secrets"]) | {"authority_key"}
    assert make() == first
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o777 == 0o600} == {"authority_key"}
    # Mail, issuer and bucket are somebody else's, who makes the keys.
    theirs = (
        "email_url",
        "oidc_client_secret",
        "s3_key",
        "s3_secret",
        "label_s3_key",
        "label_s3_secret",
        "spark_defaults",
    )
    assert {first.pop(name) for name in theirs} == {""}
    assert first["postgres_password"] in first["database_owner_url"]
    roles = ("database_owner_url", "database_url", "label_database_url")
    assert [re.match(r"postgresql://(\w+):", first[name])[1] for name in roles] == ["dpal", "dpal_site", "dpal_label"]
    assert first["postgres_password"] not in first["database_url"] + first["label_database_url"]
    assert first["valkey_password"] in first["broker_url"]
    assert len(set(first.values())) == len(first)
    assert all(len(value) >= 64 for value in first.values())
    (tmp_path / "email_url").write_text("smtp://mail.example.org")
    assert make()["email_url"] == "smtp://mail.example.org"
