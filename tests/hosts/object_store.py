"""A private OpenStack Swift with its S3 interface: an object store as people run it, on one loopback address.

It is asked over HTTP with AWS Signature Version 4 and refuses whoever signs with another key.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from dpal_site.embedded import host
from tests.faults.storm.site import quiet_port

INSTALL = "apt-get install --no-install-recommends swift-proxy swift-account swift-container swift-object"
KINDS = ("account", "container", "object")
PATIENCE_SECONDS = 120
USER = "test:dpal"
PIPELINE = (
    "catch_errors gatekeeper cache listing_formats s3api tempauth copy slo dlo versioned_writes symlink proxy-server"
)
PROXY = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {folder}
workers = 0
user = {user}
[pipeline:main]
pipeline = {pipeline}
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{nothing}
[filter:s3api]
use = egg:swift#s3api
location = {region}
s3_acl = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_dpal = {secret} .admin
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_object_versioning = true
[filter:symlink]
use = egg:swift#symlink
"""
SERVER = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 0
user = {user}
fallocate_reserve = 0
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
RINGS = """
import sys
from swift.common.ring import RingBuilder
for kind, _, port in (word.partition(":") for word in sys.argv[1:]):
    builder = RingBuilder(2, 1, 0)
    builder.add_dev({"region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "port": int(port), "device": "disk"})
    builder.rebalance()
    builder.get_ring().save(f"{kind}.ring.gz")
"""


class PrivateStore:
    """A store of one test session: a folder, four processes, a key and a bucket."""

    region = "eu-central-1"
    access_key = USER

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._taken: set[int] = set()
        self.port = quiet_port(self._taken)
        self.secret_key = secrets.token_hex(20)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def endpoint(self) -> str:
        return f"http://{host.LOOPBACK}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}

    def url(self, bucket: str, prefix: str = "site") -> str:
        return f"s3://{bucket}/{prefix}?endpoint_url={self.endpoint}&region={self.region}"

    def start(self) -> None:
        """Start it and wait until it lists its buckets; skip where it is not installed."""
        if not all(_program(f"swift-{kind}-server") for kind in (*KINDS, "proxy")):
            pytest.skip(f"tests of the object store skipped: no Swift found; {INSTALL}")
        self.folder.mkdir(mode=0o700)
        (self.folder / "devices" / "disk").mkdir(parents=True)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        words: dict[str, Any] = {"folder": self.folder, "user": user, "region": self.region}
        # It must be told of a memcache, and does without one.
        words |= {"nothing": quiet_port(self._taken), "secret": self.secret_key, "pipeline": PIPELINE}
        (self.folder / "swift.conf").write_text(
            f"[swift-hash]\nswift_hash_path_suffix = {secrets.token_hex(8)}\n"
            "[storage-policy:0]\nname = Policy-0\ndefault = yes\n"
        )
        ports = {kind: quiet_port(self._taken) for kind in KINDS}
        self._rings(ports)
        for kind, port in ports.items():
            (self.folder / f"{kind}.conf").write_text(SERVER.format(kind=kind, port=port, **words))
            self._run(kind)
        (self.folder / "proxy.conf").write_text(PROXY.format(port=self.port, **words))
        self._run("proxy")
        assert host.wait_until(self._answers, PATIENCE_SECONDS, 0.2), host.tail(self.folder / "proxy.log")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        self._processes.clear()

    def client(self, **changed: Any) -> Any:
        words = {
            "endpoint_url": self.endpoint,
            "region_name": self.region,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "config": Config(signature_version="s3v4", retries={"max_attempts": 1}),
        }
        return boto3.client("s3", **(words | changed))

    def make_bucket(self) -> str:
        name = f"dpal-{secrets.token_hex(6)}"
        self.client().create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": self.region})
        return name

    def keys(self, bucket: str) -> list[str]:
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def _rings(self, ports: dict[str, int]) -> None:
        """Say which server keeps what: one of each, on one disk. Swift is installed for the system's Python."""
        places = " ".join(f"{kind}:{port}" for kind, port in ports.items())
        command = ["/usr/bin/python3", "-I", "-c", RINGS, *places.split()]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def _run(self, kind: str) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"}
        with (self.folder / f"{kind}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(_program(f"swift-{kind}-server")), str(self.folder / f"{kind}.conf"), "--verbose"],
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def _answers(self) -> bool:
        try:
            self.client().list_buckets()
        except (BotoCoreError, ClientError):
            return False
        return True


def _program(name: str) -> str | None:
    return shutil.which(name)
