from uuid import uuid4

from privacy.ledger import selectors
from privacy.ledger import services as ledger
from privacy.ledger.tasks import charge_stale_reservations_task


def test_a_reservation_is_charged_once_the_time_for_it_is_over(account, priced, settings):
    ledger.reserve(account=account, event=priced(0.5), purpose="a test", key=uuid4())
    settings.STALE_RESERVATION_SECONDS = 3600
    assert charge_stale_reservations_task() == 0
    settings.STALE_RESERVATION_SECONDS = 0
    assert charge_stale_reservations_task() == 1
    assert charge_stale_reservations_task() == 0
    now = selectors.guarantee(account)
    assert (now.epsilon_spent, now.open_reservations) == (0.5, 0)
