"""Reservations on one account beside the least a durable ledger can do: `ledger.py [--seconds S] [--entries N]`.

Limits: 1,000 a second from some number of processes where the peer reaches 1.5 times that, at least 0.35 of the peer
everywhere, and on an account with N entries at most 1.3 times as long as on one with 1,000.
"""

import argparse
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from uuid import uuid4

from _embedded import own_site

THREADS = (1, 8)
PROCESSES = (2, 4)
TURNS = 5
FEW_ENTRIES = 1000
SAMPLES = 400
WARM_UP_SECONDS = 0.5
RATE_LIMIT, PEER_LIMIT, FLAT_LIMIT = 1000, 0.35, 1.3
FAST_PEER = 1.5
FILL_AT_ONCE = 20_000
UNDER_SNAPSHOT = 5000

PEER_TABLES = """
CREATE TABLE peer_account (id bigint PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE peer_entry (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account_id bigint NOT NULL,
    key uuid NOT NULL UNIQUE, event text NOT NULL, amount bigint NOT NULL);
INSERT INTO peer_account VALUES (1, 0), (2, 0);
GRANT SELECT, INSERT, UPDATE ON peer_account, peer_entry TO PUBLIC
"""
PEER_SPENDS = """
DO $$ BEGIN FOR i IN 1..%s LOOP UPDATE peer_account SET total = total + 1 WHERE id = 1; END LOOP; END $$
"""
FILL = """
INSERT INTO privacy_ledgerentry (account_id, kind, mechanism, purpose, idempotency_key, event_json, epsilon_nano,
    rho_nano)
SELECT %s, 'reserve', %s, 'a benchmark', gen_random_uuid(), %s, %s, %s FROM generate_series(1, %s)
"""


def per_second(threads: int, seconds: float, work: Callable[[], object]) -> float:
    """Count how often all threads together finish `work` in a second."""
    from django.db import connection

    counts = [0] * threads
    ready, deadline = threading.Barrier(threads + 1), [0.0]

    def run(number: int) -> None:
        work()  # opens the connection and plans the statements
        ready.wait()
        while time.perf_counter() < deadline[0]:
            work()
            counts[number] += 1
        connection.close()

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    deadline[0] = float("inf")
    ready.wait()
    start = time.perf_counter()
    deadline[0] = start + seconds
    for thread in running:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


def per_second_of_processes(processes: int, seconds: float, work: Callable[[], object]) -> float:
    """Count how often all processes together finish `work` in a second."""
    from django.db import connection

    connection.close()  # each child opens its own
    start = time.perf_counter() + WARM_UP_SECONDS
    readers = []
    for _ in range(processes):
        reading, writing = os.pipe()
        if os.fork():
            os.close(writing)
            readers.append(reading)
            continue
        count = 0
        try:
            work()
            while time.perf_counter() < start:
                time.sleep(0.001)
            while time.perf_counter() < start + seconds:
                work()
                count += 1
        finally:
            os.write(writing, str(count).encode())
            os._exit(0)
    done = sum(int(os.read(reading, 100)) for reading in readers)
    for reading in readers:
        os.close(reading)
        os.wait()
    return done / seconds


def milliseconds(works: list[Callable[[], object]], samples: int) -> list[float]:
    """Time each work in turn, so that a busy machine slows all alike, and return the medians."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(samples):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return [1000 * statistics.median(taken) for taken in times]


def measure(seconds: float, entries: int) -> dict[str, float]:
    """Compare rates with the peer, then times between a short and a long account."""
    from django.db import connection, transaction

    from dpal_site.operations.preparation import as_owner
    from privacy.accounting.events import BernoulliScreenEvent
    from privacy.ledger import services as ledger
    from privacy.ledger.models import BudgetAccount
    from privacy.ledger.rules import charge_of

    event = BernoulliScreenEvent(q_hi=0.502, q_lo=0.498)
    charge = charge_of(event, adjacency="null")

    def open_account(scope: str) -> BudgetAccount:
        return ledger.open_account(
            scope=scope,
            label=scope,
            unit="record",
            filter="pure",
            epsilon_limit=100_000,
            delta_limit=0,
            actor="benchmark",
            reason="a benchmark",
        )

    def reserve_on(account: BudgetAccount) -> Callable[[], object]:
        return lambda: ledger.reserve(account=account, event=event, purpose="a benchmark", key=uuid4())

    def insert_raw(peer: int = 1) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT total FROM peer_account WHERE id = %s FOR UPDATE", [peer])
            cursor.execute(
                "INSERT INTO peer_entry (account_id, key, event, amount) VALUES (%s, %s, %s, %s)",
                [peer, uuid4(), charge.event_json, charge.epsilon_nano],
            )
            cursor.execute("UPDATE peer_account SET total = total + %s WHERE id = %s", [charge.epsilon_nano, peer])

    def fill(account: BudgetAccount, wanted: int) -> None:
        with connection.cursor() as cursor:
            for done in range(0, wanted, FILL_AT_ONCE):
                some = min(FILL_AT_ONCE, wanted - done)
                row = [charge.mechanism, charge.event_json, charge.epsilon_nano, charge.rho_nano, some]
                cursor.execute(FILL, [account.pk, *row])

    with as_owner(), connection.cursor() as cursor:
        cursor.execute(PEER_TABLES)
    report: dict[str, float] = {"load_before": os.getloadavg()[0]}
    account = open_account("rates")
    ways = [(f"{number}_threads", per_second, number) for number in THREADS]
    ways += [(f"{number}_processes", per_second_of_processes, number) for number in PROCESSES]
    for name, rate, number in ways:
        ours, peer = [], []
        for _ in range(TURNS):
            ours.append(rate(number, seconds, reserve_on(account)))
            peer.append(rate(number, seconds, insert_raw))
        report[f"reserves_per_second_{name}"] = statistics.median(ours)
        report[f"raw_inserts_per_second_{name}"] = statistics.median(peer)
        report[f"share_of_raw_{name}"] = statistics.median(ours) / statistics.median(peer)

    few, many = open_account("few"), open_account("many")
    fill(few, FEW_ENTRIES)
    start = time.perf_counter()
    fill(many, entries)
    report["entries_filled_per_second"] = entries / (time.perf_counter() - start)
    short, long = milliseconds([reserve_on(few), reserve_on(many)], SAMPLES)
    report |= {"reserve_ms_at_1000_entries": short, f"reserve_ms_at_{entries}_entries": long, "flat": long / short}

    # A backup or a long export holds a snapshot for hours; row versions made meanwhile cannot be cleaned away.
    holder = connection.copy()
    with holder.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM privacy_budgetaccount")
        fill(many, UNDER_SNAPSHOT)
        with connection.cursor() as other:
            other.execute(PEER_SPENDS, [UNDER_SNAPSHOT])
        works = [reserve_on(few), reserve_on(many), lambda: insert_raw(2), insert_raw]
        idle, busy, raw_idle, raw_busy = milliseconds(works, SAMPLES)
    holder.close()
    return report | {"flat_under_old_snapshot": busy / idle, "raw_flat_under_old_snapshot": raw_busy / raw_idle}


def broken(report: dict[str, float]) -> list[str]:
    missed = [name for name, value in report.items() if name.startswith("share_of_raw") and value < PEER_LIMIT]
    rates = {number: report[f"reserves_per_second_{number}_processes"] for number in PROCESSES}
    fastest = max(rates, key=rates.__getitem__)
    if rates[fastest] < RATE_LIMIT <= report[f"raw_inserts_per_second_{fastest}_processes"] / FAST_PEER:
        missed.append(f"reserves_per_second_{fastest}_processes")
    return missed + [name for name in ("flat", "flat_under_old_snapshot") if report[name] > FLAT_LIMIT]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--entries", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with own_site("dpal-ledger-"):
        report = measure(arguments.seconds, arguments.entries)
    print(json.dumps({name: round(value, 3) for name, value in report.items()}, indent=2))
    missed = broken(report)
    if missed:
        print(f"beyond the limit: {', '.join(missed)}", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
