"""Settings of a site under attack, which may send to one receiver of this machine."""

import os

from dpal_site.settings import *  # noqa: F403 - all of them

WEBHOOK_LOOPBACK_IN_TESTS = os.environ["ATTACK_RECEIVER"]
