"""A process whose threads reserve without end and print the key of every reservation that came back."""

import sys
import threading
from uuid import uuid4

import django

django.setup()

from django.db import Error  # noqa: E402  # needs Django's apps

from privacy.accounting.events import GaussianEvent  # noqa: E402
from privacy.models import BudgetAccount  # noqa: E402
from privacy.services import ledger  # noqa: E402


def main(scope: str) -> None:
    """Spend until the database is gone."""
    account = BudgetAccount.objects.get(scope=scope)
    event = GaussianEvent(sensitivity_l2=1.0, sigma=10_000.0)

    def spend() -> None:
        while True:
            key = uuid4()
            try:
                ledger.reserve(account=account, event=event, purpose="a test", key=key)
            except Error:
                return
            sys.stdout.write(f"{key}\n")
            sys.stdout.flush()

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
