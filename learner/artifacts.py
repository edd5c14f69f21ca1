"""The files of a released model: written all at once, readable without this project, checked by digest."""

import hashlib
import io
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from learner.errors import ArtifactCorrupt
from learner.features.base import Featurizer
from learner.features.matrix import file_sha256
from learner.linear_model import LinearModel
from learner.model_card import Card, Privacy, render_card
from learner.onnx_export import onnx_bytes
from learner.privacy_document import privacy_document
from learner.signatures import Signer, check_signature
from privacy.wording import say

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_artifacts(
    directory: Path, *, model: LinearModel, featurizer: Featurizer, card: Card, privacy: Privacy, signer: Signer
) -> dict[str, str]:
    """Write a release into a new directory, which appears complete or not at all.

    Parameters
    ----------
    directory : Path
        Must not exist; its parent is created where missing.
    model : LinearModel
        The released weights.
    featurizer : Featurizer
        What turns records into the model's features.
    card, privacy : dict
        See `learner.model_card`.
    signer : Signer
        Signs the manifest.

    Returns
    -------
    dict of str to str
        SHA-256 of each file by name: model.skops, model.onnx, weights.json, features.json, card.md, privacy.json,
        manifest.json and manifest.sig. The same input gives the same bytes under the same library versions.

    Raises
    ------
    FileExistsError
        If the directory exists.
    ValueError
        If the model does not fit the featuriser.
    """
    if model.dimension != featurizer.dimension:
        raise ValueError(f"model has {model.dimension} features, the featurizer makes {featurizer.dimension}")
    if directory.exists():
        raise FileExistsError(f"{directory.name} exists already")
    estimator = sklearn_estimator(model)
    contents = {
        "model.skops": skops_bytes(model),
        "model.onnx": onnx_bytes(estimator, model, featurizer=featurizer.version),
        "weights.json": json_bytes(model.to_json()),
        "features.json": json_bytes({**json.loads(featurizer.to_json()), "version": featurizer.version}),
        "card.md": render_card(model, feature_kind=featurizer.kind, card=card, privacy=privacy).encode(),
        "privacy.json": json_bytes(privacy_document(privacy)),
    }
    files = {name: {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)} for name, body in contents.items()}
    contents[MANIFEST] = json_bytes({"schema": "dpal-manifest/1", "files": files})
    contents[SIGNATURE] = json_bytes(signer.sign(contents[MANIFEST]))
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        for name, body in contents.items():
            (partial / name).write_bytes(body)
        partial.chmod(0o755)
        partial.rename(directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return {name: hashlib.sha256(body).hexdigest() for name, body in contents.items()}


def read_weights(path: Path) -> LinearModel:
    """Read weights.json, every float bit for bit.

    Raises
    ------
    ArtifactCorrupt
        If the file is no complete model.
    """
    try:
        return LinearModel.from_json(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ArtifactCorrupt(say("{name} holds no complete model", name=path.name)) from error


def verify_manifest(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file once all of them match the manifest and none is missing or extra.

    Raises
    ------
    ArtifactCorrupt
        If anything differs; the message names the files.
    """
    try:
        listed = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]
        expected = {name: (entry["bytes"], entry["sha256"]) for name, entry in listed.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactCorrupt(say("{name} has no readable manifest", name=directory.name)) from error
    listed_files = (path for path in directory.iterdir() if path.name not in (MANIFEST, SIGNATURE))
    found = {path.name: (path.stat().st_size, file_sha256(path)) for path in listed_files}
    different = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if different:
        raise ArtifactCorrupt(
            say("{name}: {files} do not match the manifest", name=directory.name, files=", ".join(different))
        )
    signed = {name: file_sha256(directory / name) for name in (MANIFEST, SIGNATURE) if (directory / name).exists()}
    return {name: digest for name, (_, digest) in expected.items()} | signed


def verify_release(directory: Path, *, public_key: str) -> dict[str, str]:
    """Return the SHA-256 of each file once the trusted key signed the manifest and every file matches it.

    Parameters
    ----------
    directory : Path
        A downloaded release, all its files.
    public_key : str
        The site's key, base64, from a source other than the release itself.

    Raises
    ------
    ArtifactCorrupt
        If a file is missing, extra or changed, or the signature does not fit.
    """
    try:
        manifest, signature = ((directory / name).read_bytes() for name in (MANIFEST, SIGNATURE))
    except OSError as error:
        raise ArtifactCorrupt(
            say("{name} lacks {manifest} or {signature}", name=directory.name, manifest=MANIFEST, signature=SIGNATURE)
        ) from error
    check_signature(manifest, signature, public_key=public_key)
    return verify_manifest(directory)


def json_bytes(body: dict[str, Any]) -> bytes:
    """Return readable JSON with sorted keys."""
    return (json.dumps(body, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def skops_bytes(model: LinearModel) -> bytes:
    """Return the model as a skops file of standard scikit-learn types, the same bytes every time."""
    import skops.io  # noqa: PLC0415  # slow import: it imports all of scikit-learn, and most processes release nothing

    return canonical_skops(skops.io.dumps(sklearn_estimator(model), compression=zipfile.ZIP_STORED))


def sklearn_estimator(model: LinearModel) -> "LogisticRegression | OneVsRestClassifier":
    """Return a fitted scikit-learn classifier with the released weights."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # slow import
    from sklearn.multiclass import OneVsRestClassifier  # noqa: PLC0415  # slow import
    from sklearn.preprocessing import LabelBinarizer  # noqa: PLC0415  # slow import

    classes = np.array(model.classes)
    if len(model.coef) == 1 or model.multiclass == "softmax":
        return _logistic(model.coef, model.intercept, classes)
    ensemble = OneVsRestClassifier(LogisticRegression())
    ensemble.estimators_ = [
        _logistic(model.coef[row : row + 1], model.intercept[row : row + 1], np.array([0, 1]))
        for row in range(len(model.coef))
    ]
    # Prediction asks the binarizer only for the kind of target, and takes names from `classes_`.
    ensemble.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    ensemble.classes_ = classes
    ensemble.n_features_in_ = model.dimension
    return ensemble


def canonical_skops(content: bytes) -> bytes:
    """Rewrite a skops archive so that memory addresses and the clock leave no trace in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read("schema.json"))
        members = {name: archive.read(name) for name in archive.namelist() if name != "schema.json"}
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}
    schema = _renumbered(schema, numbers, names)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for old, new in names.items():
            archive.writestr(zipfile.ZipInfo(new, ZIP_EPOCH), members[old], zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("schema.json", ZIP_EPOCH), json.dumps(schema), zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _renumbered(node: Any, numbers: dict[int, int], names: dict[str, str]) -> Any:
    """Replace object addresses by the order in which they turn up, and member names likewise."""
    if isinstance(node, list):
        return [_renumbered(item, numbers, names) for item in node]
    if not isinstance(node, dict):
        return node
    renewed = {key: _renumbered(value, numbers, names) for key, value in node.items()}
    if isinstance(node.get("__id__"), int):
        renewed["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
    if isinstance(node.get("file"), str):
        renewed["file"] = names.setdefault(node["file"], f"array-{len(names)}{Path(node['file']).suffix}")
    return renewed


def _logistic(coef: Any, intercept: Any, classes: Any) -> "LogisticRegression":
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # slow import

    estimator = LogisticRegression()
    estimator.coef_ = np.ascontiguousarray(coef)
    estimator.intercept_ = np.ascontiguousarray(intercept)
    estimator.classes_ = classes
    estimator.n_features_in_ = coef.shape[1]
    estimator.n_iter_ = np.zeros(1, dtype=np.int32)
    return estimator
