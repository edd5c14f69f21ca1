"""Reading settings from the environment, or from files that the environment names."""

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environs import FileAwareEnv, validate


class SiteEnv(FileAwareEnv):
    """Variables by type and rule, or files that `NAME_FILE` names, as containers hand over secrets.

    An empty variable is one that is not set; one that breaks its rule is named in the error.
    """

    def _get_value(self, env_key: str, default: Any) -> Any:
        if os.environ.get(env_key) and os.environ.get(f"{env_key}_FILE"):
            raise ImproperlyConfigured(f"set {env_key} or {env_key}_FILE, not both")
        return super()._get_value(env_key, default) or default


env = SiteEnv(strip_whitespace=True)
# Arrow's own allocator keeps most of what it has freed; the system's gives it back, in the same time.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
AT_LEAST_ONE = validate.Range(min=1)
NOT_NEGATIVE = validate.Range(min=0)
SCANNER_ADDRESS = validate.Regexp(
    r"(none|tcp://[^/:@]+:\d+|unix:///.+)?\Z", error="CLAMD_URL must be tcp://host:port, unix:///path or none"
)
CLUSTER_ADDRESS = validate.Regexp(
    r"(local\[(\d+|\*)\]|local-cluster\[\d+,\d+,\d+\]|spark://[^/:@]+:\d+\S*|k8s://\S+|yarn)?\Z",
    error="SPARK_MASTER must be spark://host:port, k8s://..., yarn or local[N]",
)


def one_of_words(*names: str) -> validate.OneOf:
    """Return the rule that a variable has one of these values; an empty one stands for none."""
    return validate.OneOf(names, error="must be " + " or ".join(repr(name) if name else "unset" for name in names))
