"""Settings of webhooks."""

from typing import Any

from environs import Env

BEAT_SCHEDULE = {
    "tell-webhooks": {"task": "addons.webhooks.tasks.record_webhooks_task", "schedule": 10.0},
}
OUTSIDE_TASKS = ("addons.webhooks.tasks.send_webhook_task",)


def read_settings(env: Env) -> dict[str, Any]:
    return {
        # Hosts that webhooks may be sent to, by comma, `host:port` where the port is not 443.
        "WEBHOOK_HOSTS": [name.strip().lower() for name in env.list("WEBHOOK_HOSTS", [], subcast=str) if name.strip()],
        # Certificates that sign those of the hosts, where the usual authorities do not.
        "WEBHOOK_CA_FILE": env.str("WEBHOOK_CA_FILE", ""),
        # The one host:port of this machine that tests may send to; nothing in the environment can set it.
        "WEBHOOK_LOOPBACK_IN_TESTS": "",
    }
