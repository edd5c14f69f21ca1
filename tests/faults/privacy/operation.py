"""A process that starts once and forks for every job asked of it, to be killed at any step of what it does.

It reads one JSON object a line: `{"start": job, ...}` answers with a process id, `{"wait": id}` with how that ended.
"""

import hashlib
import json
import os
import sys
import threading
import time
import traceback
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import django

django.setup()

from django.conf import settings  # noqa: E402  # needs Django's apps
from django.contrib.auth.models import Group  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import Error, transaction  # noqa: E402

from dpal_site.operations import preparation  # noqa: E402
from privacy.accounting.events import GaussianEvent  # noqa: E402
from privacy.ledger import counter, entries  # noqa: E402
from privacy.ledger import services as ledger  # noqa: E402
from privacy.ledger.faults import fault_point  # noqa: E402
from privacy.ledger.models import BudgetAccount, LedgerEntry  # noqa: E402
from privacy.ledger.selectors import last_entry  # noqa: E402

THREADS = 4


def migrate() -> None:
    call_command("migrate", "privacy", verbosity=0, skip_checks=True)
    call_command("migrate", "auth", verbosity=0, skip_checks=True)
    with preparation.as_owner():
        counter.begin_counter()


def open_account(scope: str) -> None:
    ledger.open_account(
        scope=scope,
        label="Test pool",
        unit="record",
        filter="zcdp",
        epsilon_limit=9,
        delta_limit=1e-6,
        actor="ada",
        reason="opened for a test",
    )


def operate(folder: str, scope: str, key: str, step: str = "", pause: bool = False) -> None:
    """Reserve, read, draw, store the output with the commit, publish; each step leaves a trace.

    At `step` the process dies, or with `pause` waits until its folder holds a file `go`.
    """
    traces = Path(folder)
    traces.mkdir(exist_ok=True)
    os.environ["DPAL_FAULT_POINT"] = step
    if pause:
        wait_at_fault_points(traces)
    account = BudgetAccount.objects.get(scope=scope)
    fault_point("before_reserve")
    event = GaussianEvent(sensitivity_l2=1.0, sigma=100.0)
    reservation = ledger.reserve(account=account, event=event, purpose="a test", key=UUID(key))
    (traces / "read").touch()
    fault_point("after_read")
    output = os.urandom(16).hex()
    fault_point("after_draw")
    # So that the counter of the commit can be told from the counter of the reservation.
    os.environ["DPAL_FAULT_POINT"] = step.replace("commit:", "")
    with transaction.atomic():
        # A group stands for the output: any row of the same database will do.
        Group.objects.create(name=output)
        fault_point("after_output")
        ledger.commit(reservation=reservation, output_digest=hashlib.sha256(output.encode()).hexdigest())
    fault_point("before_publish")
    (traces / "published").write_text(output)
    fault_point("after_publish")


def wait_at_fault_points(traces: Path) -> None:
    def wait(reached: str) -> None:
        if os.environ["DPAL_FAULT_POINT"] == reached:
            (traces / "paused").touch()
            while not (traces / "go").exists():
                time.sleep(0.002)

    for module in (sys.modules[__name__], ledger, entries):
        module.fault_point = wait  # type: ignore[attr-defined]


def spend(scope: str, keys: str) -> None:
    """Reserve with several threads until the database is gone; write the key of every reservation that came back."""
    account = BudgetAccount.objects.get(scope=scope)
    event = GaussianEvent(sensitivity_l2=1.0, sigma=10_000.0)

    def reserve_without_end() -> None:
        while True:
            key = uuid4()
            try:
                ledger.reserve(account=account, event=event, purpose="a test", key=key)
            except Error:
                return
            file.write(f"{key}\n")

    with Path(keys).open("a", buffering=1) as file:
        threads = [threading.Thread(target=reserve_without_end) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def report(scope: str) -> dict[str, Any]:
    account = BudgetAccount.objects.get(scope=scope)
    last = last_entry(account)
    assert last is not None
    told = StringIO()
    call_command("audit_ledger", "--json", stdout=told)
    kinds = LedgerEntry.objects.filter(account=account)
    return {
        "rho_spent_nano": last.rho_spent_nano,
        "open": last.open_reservations,
        "keys": [str(key) for key in kinds.filter(kind="reserve").values_list("idempotency_key", flat=True)],
        "committed": list(kinds.filter(kind="commit").values_list("output_digest", flat=True)),
        "outputs": list(Group.objects.values_list("name", flat=True)),
        "sound": all(json.loads(line)["sound"] for line in told.getvalue().splitlines()),
    }


JOBS = {job.__name__: job for job in (migrate, open_account, operate, spend, report)}


def fork(job: str, counter: str, given: dict[str, Any]) -> tuple[int, int]:
    """Run a job in a child; returns its process id and where its result can be read."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        return child, reading
    code = 1
    try:
        settings.LEDGER_COUNTER_PATH = counter
        result = JOBS[job](**given)
        os.write(writing, json.dumps(result).encode())
        code = 0
    finally:
        # Whatever happened, a child must not go on as its parent.
        if code:
            traceback.print_exc()
        os._exit(code)


def main() -> None:
    results: dict[int, int] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "start" in asked:
            child, results[child] = fork(asked["start"], asked["counter"], asked["given"])
            answer: Any = child
        else:
            with os.fdopen(results.pop(asked["wait"])) as pipe:
                told = pipe.read()
            code = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
            answer = [code, json.loads(told) if told else None]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
