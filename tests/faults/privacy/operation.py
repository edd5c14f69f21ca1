"""A process that does one private operation from reservation to publication, to be killed at any step of it."""

import hashlib
import os
import sys
from pathlib import Path
from uuid import UUID

import django

django.setup()

from django.contrib.auth.models import Group  # noqa: E402  # needs Django's apps
from django.db import transaction  # noqa: E402

from privacy.accounting.events import GaussianEvent  # noqa: E402
from privacy.models import BudgetAccount  # noqa: E402
from privacy.services import ledger  # noqa: E402
from privacy.services.faults import fault_point  # noqa: E402


def main(folder: Path, scope: str, key: UUID) -> None:
    """Reserve, read, draw, store the output with the commit, publish; each step leaves a trace."""
    account = BudgetAccount.objects.get(scope=scope)
    fault_point("before_reserve")
    event = GaussianEvent(sensitivity_l2=1.0, sigma=100.0)
    reservation = ledger.reserve(account=account, event=event, purpose="a test", key=key)
    (folder / "read").touch()
    fault_point("after_read")
    output = os.urandom(16).hex()
    (folder / "drawn").touch()
    fault_point("after_draw")
    # So that the counter of the commit can be told from the counter of the reservation.
    os.environ["DPAL_FAULT_POINT"] = os.environ.get("DPAL_FAULT_POINT", "").replace("commit:", "")
    with transaction.atomic():
        # A group stands for the output: any row of the same database will do.
        Group.objects.create(name=output)
        fault_point("after_output")
        ledger.commit(reservation=reservation, output_digest=hashlib.sha256(output.encode()).hexdigest())
    fault_point("before_publish")
    (folder / "published").write_text(output)
    fault_point("after_publish")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], UUID(sys.argv[3]))
