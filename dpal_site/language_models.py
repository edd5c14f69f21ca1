"""The language models an administrator names in the environment, with their keys."""

import re

from django.core.exceptions import ImproperlyConfigured

from dpal_site.environment import env

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


def named() -> dict[str, tuple[str, str, str]]:
    """Return address, model and key of each `name=address model` in LANGUAGE_MODELS, which are separated by commas.

    The address is that of the chat completions interface; the key of one called NAME is LANGUAGE_MODEL_KEY_NAME.
    """
    found = {}
    for entry in filter(None, (part.strip() for part in env.list("LANGUAGE_MODELS", [], subcast=str))):
        name, equals, rest = entry.partition("=")
        parts = rest.split()
        if not equals or not NAME.fullmatch(name) or len(parts) != 2:
            raise ImproperlyConfigured(f"LANGUAGE_MODELS: write name=address model, got an entry named {name[:40]!r}")
        variable = f"LANGUAGE_MODEL_KEY_{name.upper().replace('-', '_')}"
        found[name] = (parts[0], parts[1], env.str(variable, ""))
    return found


def hosts(variable: str) -> list[str]:
    """Return hosts in lower case, as webhooks' are listed; those listed as local may have plain HTTP and be private."""
    return [host.strip().lower() for host in env.list(variable, [], subcast=str) if host.strip()]
