"""The language models an administrator names in the environment, with their keys."""

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environs import Env, validate

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
BEAT_SCHEDULE = {
    "start-machines": {"task": "addons.language_models.tasks.start_machines_task", "schedule": 30.0},
}
OUTSIDE_TASKS = ("addons.language_models.tasks.draft_words_task",)
HEAVY_TASKS = ("addons.language_models.tasks.answer_by_machine_task",)


def read_settings(env: Env) -> dict[str, Any]:
    return {
        "LANGUAGE_MODELS": named(env),
        # Where they may be asked; those listed as local may have plain HTTP and be private.
        "LANGUAGE_MODEL_HOSTS": hosts(env, "LANGUAGE_MODEL_HOSTS"),
        "LANGUAGE_MODEL_LOCAL_HOSTS": hosts(env, "LANGUAGE_MODEL_LOCAL_HOSTS"),
        "LANGUAGE_MODEL_SECONDS": env.float("LANGUAGE_MODEL_SECONDS", 20.0, validate=validate.Range(min=1)),
    }


def named(env: Env) -> dict[str, tuple[str, str, str]]:
    """Return address, model and key of each `name=address model` in LANGUAGE_MODELS, which are separated by commas."""
    found = {}
    for entry in filter(None, (part.strip() for part in env.list("LANGUAGE_MODELS", [], subcast=str))):
        name, equals, rest = entry.partition("=")
        parts = rest.split()
        if not equals or not NAME.fullmatch(name) or len(parts) != 2:
            raise ImproperlyConfigured(f"LANGUAGE_MODELS: write name=address model, got an entry named {name[:40]!r}")
        variable = f"LANGUAGE_MODEL_KEY_{name.upper().replace('-', '_')}"
        found[name] = (parts[0], parts[1], env.str(variable, ""))
    return found


def hosts(env: Env, variable: str) -> list[str]:
    return [host.strip().lower() for host in env.list(variable, [], subcast=str) if host.strip()]
