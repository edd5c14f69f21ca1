"""Label Studio with the same queue, in an environment that has label-studio, psycopg2-binary and gunicorn."""

import http.client
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Run by Label Studio's own Python. Nothing of a user's settings is read: the environment names it all.
PREPARE = """
import json, os, sys, time
from importlib import import_module
import label_studio
sys.path.insert(0, os.path.dirname(label_studio.__file__))
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
from organizations.models import Organization
from projects.models import Project
from tasks.models import Task
from users.models import User
people, tasks, classes = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
users = [User.objects.create_user(email=f"a{n}@example.org", password="x", username=f"a{n}") for n in range(people)]
company = Organization.create_organization(created_by=users[0], title="Bench")
for user in users:
    company.add_user(user)
    user.active_organization = company
    user.save()
config = '<View><Text name="t" value="$text"/><Choices name="c" toName="t">' + "".join(
    f'<Choice value="{name}"/>' for name in classes) + "</Choices></View>"
project = Project.objects.create(title="Bench", created_by=users[0], organization=company, label_config=config)
for start in range(0, tasks, 10000):
    Task.objects.bulk_create(
        Task(project=project, data={"text": f"a text to label, number {n}"}, overlap=1)
        for n in range(start, min(tasks, start + 10000)))
sessions = []
for user in users:
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session["_auth_user_backend"] = "django.contrib.auth.backends.ModelBackend"
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session["last_login"] = time.time()
    session.save()
    sessions.append(session.session_key)
print("READY " + json.dumps({"project": project.pk, "sessions": sessions}))
"""
SERVE = """
import os, sys
import label_studio
sys.path.insert(0, os.path.dirname(label_studio.__file__))
from gunicorn.app.wsgiapp import run
sys.argv = ["gunicorn", "core.wsgi:application", *sys.argv[1:]]
run()
"""
CSRF = "bench" * 6 + "ab"
START_SECONDS = 120


class LabelStudio:
    """A running Label Studio with a filled queue."""

    def __init__(self, python: Path, folder: Path, database: Mapping[str, Any], port: int) -> None:
        import psycopg

        self._database = dict(database) | {"dbname": f"label_studio_{os.getpid()}"}
        with psycopg.connect(**database, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self._database['dbname']}")
        self._python, self._port = python, port
        (folder / "studio").mkdir()
        self._log = (folder / "studio.log").open("wb")
        self._environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
            "DJANGO_DB": "default",
            "POSTGRE_NAME": self._database["dbname"],
            "POSTGRE_USER": str(database["user"]),
            "POSTGRE_PASSWORD": str(database.get("password", "")),
            "POSTGRE_HOST": str(database["host"]),
            "POSTGRE_PORT": str(database.get("port") or 5432),
            "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "studio"),
            "SECRET_KEY": "a key for a benchmark",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "COLLECT_ANALYTICS": "0",
            "DEBUG": "0",
            "LATEST_VERSION_CHECK": "0",
        }
        self._server: subprocess.Popen[bytes] | None = None
        self.version = ""

    def start(self, people: int, tasks: int, classes: Sequence[str]) -> None:
        """Fill the queue, with a choice among so many classes, and wait until the site answers."""
        result = [{"value": {"choices": [classes[0]]}, "from_name": "c", "to_name": "t", "type": "choices"}]
        self._answer = json.dumps({"lead_time": 1, "result": result})
        prepared = subprocess.run(
            [self._python, "-c", PREPARE, str(people), str(tasks), json.dumps(classes)],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
            check=True,
        )
        line = next(row for row in prepared.stdout.decode().splitlines() if row.startswith("READY "))
        found = json.loads(line.removeprefix("READY "))
        self._project, self._sessions = found["project"], found["sessions"]
        self.version = (
            subprocess.run(
                [self._python, "-c", "import importlib.metadata as m; print(m.version('label-studio'))"],
                stdout=subprocess.PIPE,
                check=True,
            )
            .stdout.decode()
            .strip()
        )
        options = ["--bind", f"127.0.0.1:{self._port}", "--workers", "2", "--worker-class", "gthread", "--threads", "4"]
        self._server = subprocess.Popen(
            [self._python, "-c", SERVE, *options, "--keep-alive", "30"],
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
        )
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                if self._get(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30), "/health").status == 200:
                    return
            except OSError:
                time.sleep(0.5)
        raise RuntimeError("Label Studio did not start")

    def stop(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait(30)
        self._log.close()

    def step_of(self, n: int) -> Callable[[], bool]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {
            "Cookie": f"sessionid={self._sessions[n]}; csrftoken={CSRF}",
            "X-CSRFToken": CSRF,
            "Content-Type": "application/json",
        }
        state: dict[str, int | None] = {"task": None}

        def ask() -> None:
            connection.request("GET", f"/api/projects/{self._project}/next", headers=headers)
            response = connection.getresponse()
            body = response.read()
            if response.status not in (200, 404):
                raise RuntimeError(f"Label Studio's next answered {response.status}")
            state["task"] = json.loads(body)["id"] if response.status == 200 else None

        def step() -> bool:
            if state["task"] is None:
                return False
            connection.request("POST", f"/api/tasks/{state['task']}/annotations/", self._answer, headers)
            response = connection.getresponse()
            response.read()
            if response.status != 201:
                raise RuntimeError(f"Label Studio's submit answered {response.status}")
            ask()
            return True

        ask()
        return step

    def analyze(self) -> None:
        """Let its database learn what its tables hold."""
        import psycopg

        with psycopg.connect(**self._database, autocommit=True) as connection:
            connection.execute("ANALYZE")

    def distinct_labelled(self) -> int:
        import psycopg

        with psycopg.connect(**self._database) as connection:
            row = connection.execute("SELECT count(DISTINCT task_id) FROM task_completion").fetchone()
        assert row is not None
        return int(row[0])

    @staticmethod
    def _get(connection: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
        connection.request("GET", path)
        return connection.getresponse()
