"""Settings of studies on Prolific."""

from typing import Any

from environs import Env

BEAT_SCHEDULE = {
    "follow-studies": {"task": "addons.prolific.tasks.follow_studies_task", "schedule": 30.0},
    "fetch-signing-keys": {"task": "addons.prolific.tasks.fetch_signing_keys_task", "schedule": 30.0},
}
OUTSIDE_TASKS = (
    "addons.prolific.tasks.follow_study_task",
    "addons.prolific.tasks.fetch_signing_keys_task",
    "addons.prolific.tasks.check_platform_account_task",
)


def read_settings(env: Env) -> dict[str, Any]:
    return {
        # Prolific's interface, https://api.prolific.com, where an administrator lets projects open studies; else empty.
        "PROLIFIC_URL": env.str("PROLIFIC_URL", ""),
        # The one host:port of this machine that tests ask instead, in plain HTTP; no environment sets it.
        "PROLIFIC_LOOPBACK_IN_TESTS": "",
    }
