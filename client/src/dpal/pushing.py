"""A verified release into a registry that somebody runs already."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpal.errors import DpalError, install
from dpal.files import sha256_of
from dpal.manifest import MANIFEST
from dpal.mlflow_model import facts_of, write_folder
from dpal.releases import Fetched, Wheel

EXPERIMENT = "dpal"
ARTIFACTS = "model"
# What tells a version of a registry from another: the same release is pushed once.
MANIFEST_TAG = "dpal.manifest_sha256"
LONGEST_VALUE = 4000
HERE = ("localhost", "127.0.0.1", "::1")


def push(fetched: Fetched, target: str, *, public_key: str, wheel: Wheel) -> str:
    """Put a release into a registry and return where it is, in words."""
    parts = urlsplit(target)
    name = parts.path.strip("/")
    if parts.scheme != "mlflow" or not parts.hostname or not name or "/" in name:
        raise DpalError(f"{target} is no registry: write it like mlflow://registry.example.org/NAME.")
    scheme = "http" if parts.hostname in HERE else "https"
    with _sentences(f"{scheme}://{parts.netloc}"), tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model"
        return _push(fetched, made, f"{scheme}://{parts.netloc}", name, public_key=public_key, wheel=wheel)


def _push(fetched: Fetched, folder: Path, address: str, name: str, *, public_key: str, wheel: Wheel) -> str:
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - an extra, and slow

    # It would print addresses of its own between what is said here.
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    model = write_folder(fetched, folder, public_key=public_key, wheel=wheel)
    digest = sha256_of(fetched.signed[MANIFEST])
    client: Any = MlflowClient(tracking_uri=address, registry_uri=address)
    for one in client.search_model_versions(f"name = '{name}'"):
        if one.tags.get(MANIFEST_TAG) == digest:
            return f"Version {model.version} of {model.project} is version {one.version} of {name} there already."
    experiment = client.get_experiment_by_name(EXPERIMENT)
    number = client.create_experiment(EXPERIMENT) if experiment is None else experiment.experiment_id
    facts = {key: value[:LONGEST_VALUE] for key, value in facts_of(model).items()} | {MANIFEST_TAG: digest}
    run = client.create_run(number, tags=facts, run_name=f"{model.project} {model.version}")
    try:
        client.log_artifacts(run.info.run_id, str(folder), ARTIFACTS)
        client.set_terminated(run.info.run_id)
    except BaseException:
        # A run without all its files is no model.
        client.delete_run(run.info.run_id)
        raise
    if not any(one.name == name for one in client.search_registered_models(f"name = '{name}'")):
        client.create_registered_model(name)
    source = f"{run.info.artifact_uri}/{ARTIFACTS}"
    made = client.create_model_version(
        name, source, run.info.run_id, tags=facts, description=model.card, await_creation_for=0
    )
    return f"Version {model.version} of {model.project} is version {made.version} of {name} at {address}."


@contextmanager
def _sentences(address: str) -> Iterator[None]:
    try:
        import mlflow.exceptions as found  # noqa: PLC0415 - an extra, and slow
    except ImportError as error:
        raise DpalError(f"MLflow needs another package: {install('mlflow')}") from error
    try:
        yield
    except found.MlflowException as error:
        said = " ".join(str(error).split())[:300]
        raise DpalError(f"{address} did not take the release: {said}") from error
