"""The processes of an engine that stand below this one."""

import os

from tests.faults.storm.site import descendants
from tests.spark_cluster import command_line


def batch_workers(parent=None):
    """Return the processes that make batches, below a process or this one."""
    below = descendants(os.getpid() if parent is None else parent)
    return {pid for pid in below if b"learner.features.crew" in command_line(pid)}
