"""`python -m dpal_site.operations.healthcheck web|worker|beat`: exit 0 if the process does its work, else 1."""

import http.client
import os
import socket
import sys
import time
from pathlib import Path

READINESS = "/readyz?check=database&check=disk"
SCHEDULE = "/tmp/celerybeat-schedule"  # noqa: S108 - where docker-compose.yml puts it
# The clock writes down what it sent every three minutes.
BEAT_SILENCE_SECONDS = 600


def web() -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(os.environ.get("PORT", "8000")), timeout=4)
        # By a name the site answers to; `.example.org` stands for every name below it.
        name = os.environ.get("ALLOWED_HOSTS", "").split(",")[0].lstrip(".*") or "127.0.0.1"
        connection.request("GET", READINESS, headers={"Host": name})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


def worker() -> bool:
    from dpal_site.celery import app  # noqa: PLC0415 - the other checks need none of it

    answers = app.control.ping(destination=[f"celery@{socket.gethostname()}"], timeout=10)
    return bool(answers)


def beat() -> bool:
    written = [path.stat().st_mtime for path in Path(SCHEDULE).parent.glob(f"{Path(SCHEDULE).name}*")]
    return bool(written) and time.time() - max(written) < BEAT_SILENCE_SECONDS


def main(arguments: list[str]) -> int:
    checks = {"web": web, "worker": worker, "beat": beat}
    if len(arguments) != 1 or arguments[0] not in checks:
        print(f"usage: python -m dpal_site.operations.healthcheck {'|'.join(checks)}", file=sys.stderr)
        return 2
    return 0 if checks[arguments[0]]() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
