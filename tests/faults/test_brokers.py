"""A site's whole loop on brokers as Debian ships them: killed, emptied and restarted like the embedded one.

`make test-brokers` runs this; without the servers it says what to install, and fails.
"""

import pytest
from django.db import connections

from dpal_site.embedded import host
from dpal_site.environment import broker_tls
from learner.models import ModelRelease
from tests.faults.storm import stage, verdict
from tests.faults.storm.brokers import KINDS
from tests.faults.storm.load import Load
from tests.faults.storm.site import BorrowedSite
from tests.faults.test_storm import SEED, borrowed, judged, storm, told

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.brokers, pytest.mark.django_db(transaction=True)]
__all__ = ["borrowed"]


class SiteOn(BorrowedSite):
    def __init__(self, site, broker):
        self.processes, self._owner_url, self.broker = site.processes, site._owner_url, broker

    def strike_broker(self, dead_for):
        if dead_for < 0.5:
            self.broker.empty()
            return
        self.broker.kill()
        self.broker.start()


@pytest.fixture(params=KINDS)
def broker_of_its_own(request, tmp_path):
    started = KINDS[request.param](tmp_path / request.param)
    try:
        started.start()
        yield started
    finally:
        started.kill()


def test_a_site_runs_its_loop_whatever_befalls_its_broker(borrowed, broker_of_its_own):
    supervisor = borrowed.processes
    supervisor._environment["CELERY_BROKER_URL"] = broker_of_its_own.url
    supervisor._environment["BROKER_CA_FILE"] = broker_of_its_own.authority
    if broker_of_its_own.tls:
        assert_nobody_comes_otherwise(broker_of_its_own)
    site = SiteOn(borrowed, broker_of_its_own)
    load_of = stage.open_projects(annotators=1)
    site.start_all(host.free_port())
    load = Load(site.url, load_of, SEED)
    connections.close_all()
    struck = storm(site, load, seconds=15, first=["broker", "worker", "broker", "broker"])
    told(load, struck, judged(site, lambda: verdict.judge(load.told())))
    assert ModelRelease.objects.exists()


def assert_nobody_comes_otherwise(broker):
    plain = broker.url.replace("rediss:", "redis:").replace("amqps:", "amqp:")
    assert not broker.answers(url=plain, ssl=None)
    assert not broker.answers(ssl=broker_tls(broker.url))
    assert not broker.answers(url=broker.url.replace("@localhost:", f"@{host.LOOPBACK}:"))
    assert broker.answers()
