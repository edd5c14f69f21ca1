"""A site of its own whose gates a cluster of Spark counts, and kill -9 of what counts: executors, drivers, workers."""

import os
import random
import signal
from pathlib import Path

from dpal_site.embedded import host
from tests.faults.storm.site import OwnSite, descendants
from tests.spark_cluster import Cluster, command_line

EXECUTORS = 2
# Between two gates a cluster is idle for a while, and on a busy machine Spark takes minutes to start.
NOBODY_SECONDS = 240


class ClusteredSite(OwnSite):
    # Gates that wait for their turn take half a minute each.
    patience_seconds = 900

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.lake, self.cluster = folder / "lake", cluster
        self.lake.mkdir()
        told = cluster.configuration("storm", **{"spark.cores.max": EXECUTORS})
        super().__init__(folder, told | {"SPARK_MASTER": cluster.address, "POOL_SOURCES": self.lake.as_uri()})

    def strike_spark(self, part: str, dead_for: float, rng: random.Random) -> str:
        """Kill an executor, a driver, or Spark's worker with all its executors; return what was struck."""
        if part == "spark worker":
            self.cluster.strike_worker(dead_for)
            return part
        found = self.cluster.executors if part == "executor" else self.drivers
        if not host.wait_until(lambda: bool(found()), NOBODY_SECONDS, 0.1):
            return f"{part} (nobody there)"
        try:
            os.kill(rng.choice(found()), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            return f"{part} (just gone)"
        return part

    def drivers(self) -> list[int]:
        pids = descendants(self.processes.pid("worker"))
        return [pid for pid in pids if b"addons.spark.driver" in command_line(pid)]
