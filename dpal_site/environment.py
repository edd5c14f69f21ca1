"""Reading settings from the environment, or from files that the environment names."""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def read(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file that `NAME_FILE` names, as containers hand over secrets."""
    value, path = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    if value and path:
        raise ImproperlyConfigured(f"set {name} or {name}_FILE, not both")
    if not path:
        return value or default
    try:
        return Path(path).read_text(encoding="utf-8").strip() or default
    except OSError as error:
        raise ImproperlyConfigured(f"the file that {name}_FILE names cannot be read: {error.strerror}") from error
