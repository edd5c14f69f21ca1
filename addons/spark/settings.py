"""Settings of Spark."""

from typing import Any

from environs import Env, validate

CLUSTER_ADDRESS = validate.Regexp(
    r"(local\[(\d+|\*)\]|local-cluster\[\d+,\d+,\d+\]|spark://[^/:@]+:\d+\S*|k8s://\S+|yarn)?\Z",
    error="SPARK_MASTER must be spark://host:port, k8s://..., yarn or local[N]",
)


def read_settings(env: Env) -> dict[str, Any]:
    # The cluster that counts gates over columns and runs the sentence encoder; unset, this host does.
    return {"SPARK_MASTER": env.str("SPARK_MASTER", "", validate=CLUSTER_ADDRESS)}
