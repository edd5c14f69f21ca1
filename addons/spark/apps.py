"""Application configuration."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from annotation import addons


class SparkConfig(addons.AddonConfig):
    name = "addons.spark"

    def ready(self) -> None:
        from addons.spark import services  # noqa: PLC0415 - tables are known by now
        from addons.spark.iceberg import iceberg_table  # noqa: PLC0415 - as above
        from annotation.data.services.registered import FORMATS  # noqa: PLC0415 - as above
        from annotation.gates.services import ENGINES  # noqa: PLC0415 - as above
        from learner.pools.features import BATCH_ENGINES  # noqa: PLC0415 - as above

        super().ready()
        ENGINES.append(services.gate_engine)
        BATCH_ENGINES.append(services.batch_engine)
        FORMATS.append(iceberg_table)
        register(check_cluster, Tags.security, deploy=True)


def check_cluster(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    if not settings.SPARK_MASTER or find_spec("pyspark"):
        return []
    hint = "Install the extra spark, or unset SPARK_MASTER."
    return [Error("SPARK_MASTER names a cluster and pyspark is not installed.", hint=hint, id="dpal.E007")]
