"""Release as MLflow keeps models: a folder for `mlflow.pyfunc`, which verifies the release before it is used."""

# Nothing here imports MLflow; it imports this module, whose name stands in the folder.

import json
import os
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dpal.errors import NotFitting
from dpal.features.sentences import VOCABULARY
from dpal.files import sha256_of, write_whole
from dpal.model import Model
from dpal.releases import Fetched, Wheel, copy_to, folder_in_the_making, open_folder

MLMODEL, RELEASE, KEY = "MLmodel", "release", "public_key"
TEXT = "text"
REQUIREMENTS, VIRTUALENV, CONDA = "requirements.txt", "python_env.yaml", "conda.yaml"
# The key that signs is part of what is trusted: whoever can change the folder could change the one in it.
KEY_VARIABLE = "DPAL_PUBLIC_KEY"


class Predictor:
    def __init__(self, model: Model) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return the class of each record, or with the parameter `probabilities` those of all classes."""
        records = model_input
        if self.model.records == "texts" and hasattr(records, "columns"):
            names = list(records.columns)
            if TEXT not in names and len(names) != 1:
                raise NotFitting(f"This model reads texts: call their column {TEXT}.")
            records = records[TEXT if TEXT in names else names[0]]
        if (params or {}).get("probabilities"):
            return self.model.predict_proba(records)
        return self.model.predict(records)


def _load_pyfunc(path: str) -> Predictor:
    """Verify the release and load it; MLflow calls this by its name with what the folder calls its data."""
    key = os.environ.get(KEY_VARIABLE) or (Path(path).parent / KEY).read_text(encoding="utf-8").strip()
    return Predictor(open_folder(path, public_key=key))


def write_folder(fetched: Fetched, folder: Path, *, public_key: str, wheel: Wheel) -> Model:
    """Write a release as a folder for MLflow, complete or not at all, with this package's wheel; return its model."""
    extra = "[text]" if VOCABULARY in fetched.files else ""
    requirements = ["mlflow>=3,<4", f"./{wheel.name}{extra}"]
    python = platform.python_version()
    with folder_in_the_making(folder) as partial:
        copy_to(fetched, partial / RELEASE)
        model = open_folder(partial / RELEASE, public_key=public_key)
        if model.finds_spans:
            raise NotFitting("Models of spans are not registered in MLflow yet: use dpal.load.")
        write_whole(partial / wheel.name, wheel.content)
        # JSON is YAML, too.
        files = {
            KEY: public_key,
            REQUIREMENTS: "\n".join(requirements),
            VIRTUALENV: json.dumps(
                {"python": python, "build_dependencies": ["pip"], "dependencies": [f"-r {REQUIREMENTS}"]}
            ),
            CONDA: json.dumps(
                {"name": "dpal", "dependencies": [f"python={python}", "pip", {"pip": requirements}]}
                | {"channels": ["conda-forge"]}
            ),
            MLMODEL: json.dumps(_described(model), indent=1, sort_keys=True),
        }
        for name, content in files.items():
            (partial / name).write_text(f"{content}\n", encoding="utf-8")
    return model


def _described(model: Model) -> dict[str, Any]:
    parameters = [{"name": "probabilities", "type": "boolean", "default": False, "shape": None}]
    named: dict[str, Any] = {"type": "string", "required": True}
    named_set = {"type": "array", "items": {"type": "string"}, "required": True}
    signature: dict[str, Any] = {
        "params": json.dumps(parameters),
        "inputs": json.dumps([named]) if model.records == "texts" else None,
        "outputs": json.dumps([named_set if model.names_sets else named]),
    }
    return {
        "artifact_path": "model",
        "flavors": {
            "python_function": {
                "loader_module": __name__,
                "data": RELEASE,
                "python_version": platform.python_version(),
                "env": {"virtualenv": VIRTUALENV, "conda": CONDA},
            }
        },
        "model_uuid": sha256_of(model.files["weights.json"])[:32],
        "utc_time_created": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f"),
        "signature": signature,
        "metadata": facts_of(model),
    }


def facts_of(model: Model) -> dict[str, str]:
    found = {
        "dpal.project": model.project,
        "dpal.version": str(model.version),
        "dpal.classes": json.dumps(model.classes, ensure_ascii=False),
        "dpal.adversary": model.guarantee.adversary,
        "dpal.issued_at": model.guarantee.issued_at,
    }
    for place, account in enumerate(model.guarantee):
        found[f"dpal.guarantee.{place}"] = f"{account.protects}: {account}"
    return found
