"""Files of a release, written from a released model."""

import hashlib
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.pipeline import Pipeline

from dpal.errors import NotGenuine
from dpal.recompute import recomputed
from dpal.recompute.transcript import Transcript
from dpal.spans.model import SpanModel
from learner.errors import ArtifactCorrupt
from learner.features.base import Featurizer, featurizer_class
from learner.features.matrix import file_sha256
from learner.features.span_tables import span_features
from learner.linear_model import SCHEMA, LinearModel
from learner.releases.artifacts.provenance import Provenance
from learner.releases.artifacts.signatures import Signer, check_signature
from learner.releases.cards.described import VERSION as DESCRIBED
from learner.releases.cards.described import described_card, described_document
from learner.releases.cards.privacy_document import privacy_document
from learner.releases.cards.rendering import Card, Privacy, render_card
from learner.releases.evaluation import Outcomes, thresholds_document

OURS = "Apache-2.0, like the program that wrote it"
WEIGHTS = "as whoever runs the project says; the card names none of its own accord"
LICENCES = {
    "encoder.npz": "Apache-2.0 and the WordNet 3.0 licence; both notices are in encoder.md",
    "encoder.md": "the notices themselves",
    "encoder.spans.npz": OURS,
    "encoder.vocabulary.txt": "Apache-2.0; the vocabulary of all-MiniLM-L6-v2 (sentence-transformers)",
    "words.json": OURS,
    "features.json": OURS,
    "samples.json": OURS + "; its records are made up",
    "privacy.json": "CC0-1.0",
    "thresholds.json": "CC0-1.0",
    "transcript.json": "CC0-1.0",
    "card.md": "CC0-1.0",
    "licences.md": "CC0-1.0",
}


def licences_text(names: Iterable[str], *, further: str) -> str:
    """Return the document for the files of a release, with what its featuriser says of what is not among them."""
    lines = [f"| `{name}` | {LICENCES.get(name, WEIGHTS)} |" for name in sorted(names)]
    body = "\n".join(["# Licences of the parts", "", "| file | licence |", "|---|---|", *lines, ""])
    return body + further


SAMPLES_SCHEMA = "dpal-samples/1"


def span_model(model: LinearModel) -> SpanModel:
    """Return the model that finds the spans of texts by a model's weights."""
    return SpanModel(model.classes, model.coef, span_features())


def samples_document(model: LinearModel, featurizer: Featurizer) -> dict[str, Any]:
    records = featurizer.example_records()
    if model.names_spans:
        finds = span_model(model)
        found = finds.predict(records)
        labels = [[[span.start, span.end, span.type] for span in spans] for spans in found]
        probabilities = finds.best_scores(found).tolist()
        return {"schema": SAMPLES_SCHEMA, "records": records, "labels": labels, "probabilities": probabilities}
    is_image = featurizer.reads == "image"
    values = model.decision_function(featurizer.transform(np.array(records, dtype=np.uint8) if is_image else records))
    return {
        "schema": SAMPLES_SCHEMA,
        "records": records,
        "labels": model.named(values),
        "probabilities": model.probabilities(values).tolist(),
    }


# Tables are found by their digest; texts travel inside.
TEXT_ENDINGS = (".json", ".txt")


class Features(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def __init__(self, described: str = "{}", attached: dict[str, str] | None = None) -> None:
        self.described = described
        self.attached = attached

    def fit(self, records: Any, y: Any = None) -> "Features":
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


def pipeline_bytes(classifier: ClassifierMixin, *, described: bytes, attachments: dict[str, bytes]) -> bytes:
    import skops.io  # noqa: PLC0415  # slow import

    texts = {name: body.decode() for name, body in sorted(attachments.items()) if name.endswith(TEXT_ENDINGS)}
    steps = [("features", Features(described.decode(), texts)), ("classifier", classifier)]
    return skops.io.dumps(Pipeline(steps), compression=zipfile.ZIP_STORED)  # type: ignore[no-any-return]


# What onnxruntime has read since 2023; newer operators would add nothing to a linear model.
OPSET = 18
INPUT, LABEL = "features", "label"


def onnx_bytes(estimator: ClassifierMixin, model: LinearModel, *, featurizer: str) -> bytes:
    """Return the ONNX form of a fitted scikit-learn classifier, the same bytes every time."""
    from skl2onnx import to_onnx  # noqa: PLC0415 - slow import
    from skl2onnx.common.data_types import DoubleTensorType  # noqa: PLC0415 - slow import

    metadata = {"featurizer": featurizer, "input": INPUT, "schema": "dpal-onnx/1"}
    if model.names_sets:
        metadata["classes"] = json.dumps(model.classes, ensure_ascii=False)
        # Columns have no names there, and the converter takes those of the classes for the type of the output.
        estimator = copy(estimator)
        estimator.classes_ = np.arange(len(model.classes))
    graph = to_onnx(
        estimator,
        initial_types=[(INPUT, DoubleTensorType([None, model.dimension]))],
        options={"zipmap": False},
        # The classifier operator knows single precision alone.
        black_op={"LinearClassifier"},
        target_opset=OPSET,
    )
    graph.doc_string = ""
    # Kept in a set on the way, in an order of its own in every process.
    versions = sorted((each.domain, each.version) for each in graph.opset_import)
    del graph.opset_import[:]
    for domain, number in versions:
        graph.opset_import.add(domain=domain, version=number)
    for key, value in sorted(metadata.items()):
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value
    content: bytes = graph.SerializeToString(deterministic=True)
    return content


def safetensors_bytes(model: LinearModel, *, featurizer: str) -> bytes:
    from safetensors.numpy import save  # noqa: PLC0415  # slow import

    metadata = {
        "schema": SCHEMA,
        "classes": json.dumps(model.classes, ensure_ascii=False),
        "multiclass": model.multiclass,
        "featurizer": featurizer,
    }
    content: bytes = save({"coef": model.coef, "intercept": model.intercept}, metadata=metadata)
    return _in_order(content)


def _in_order(content: bytes) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    written = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    # Tensors begin at a multiple of eight bytes.
    written += b" " * (-len(written) % 8)
    return len(written).to_bytes(8, "little") + written + content[8 + length :]


if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
TRANSCRIPT = "transcript.json"
THRESHOLDS = "thresholds.json"
# What a limit that rises changes about a release: what is promised, never what is predicted.
REISSUED = frozenset({"card.md", "privacy.json", MANIFEST, SIGNATURE})
# What a manifest cannot name, since it comes after it.
UNLISTED = (MANIFEST, SIGNATURE)
# The featuriser of a pipeline is written as the class by which the client reads it.
WRITTEN_BY, READ_BY = "learner.releases.artifacts.files", "dpal.pipeline"
PROVENANCE = ("configuration_sha256", "data", "ledger")
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_artifacts(
    directory: Path,
    *,
    model: LinearModel,
    featurizer: Featurizer,
    card: Card,
    privacy: Privacy,
    provenance: Provenance,
    signer: Signer,
    outcomes: Outcomes | None = None,
    transcript: Transcript | None = None,
) -> dict[str, str]:
    """Write a release into a new directory, which appears complete or not at all; version 0 alone has no transcript."""
    if transcript is None and card["version"] != DESCRIBED:
        raise ValueError(f"version {card['version']} was learned, and its transcript is missing")
    if not model.names_spans and model.dimension != featurizer.dimension:
        raise ValueError(f"model has {model.dimension} features, the featurizer makes {featurizer.dimension}")
    if directory.exists():
        raise FileExistsError(f"{directory.name} exists already")

    described = json_bytes({**json.loads(featurizer.to_json()), "version": featurizer.version})
    attachments = featurizer.attachments()
    recorded = {} if transcript is None else {TRANSCRIPT: json_bytes(transcript.to_json())}
    if transcript is not None:
        privacy = {**privacy, "transcript_bytes": len(recorded[TRANSCRIPT])}
    contents = {} if model.names_spans else _sklearn_files(model, featurizer, described, attachments)
    if not model.names_spans:
        contents[THRESHOLDS] = json_bytes(thresholds_document(outcomes, model.classes))
    contents |= {
        "model.safetensors": safetensors_bytes(model, featurizer=featurizer.version),
        "weights.json": json_bytes(model.to_json()),
        "features.json": described,
        "samples.json": json_bytes(samples_document(model, featurizer)),
        **attachments,
        **recorded,
        **_promise(model, reads=featurizer.reads, card=card, privacy=privacy),
    }
    contents["licences.md"] = licences_text([*contents, "licences.md"], further=featurizer.licence).encode()
    contents |= _signed(_listed(contents), provenance, card, signer)
    with _new_directory(directory) as partial:
        for name, body in contents.items():
            (partial / name).write_bytes(body)
    return {name: hashlib.sha256(body).hexdigest() for name, body in contents.items()}


def _sklearn_files(
    model: LinearModel, featurizer: Featurizer, described: bytes, attachments: dict[str, bytes]
) -> dict[str, bytes]:
    estimator = sklearn_estimator(model)
    return {
        "model.skops": skops_bytes(model),
        "pipeline.skops": canonical_skops(pipeline_bytes(estimator, described=described, attachments=attachments)),
        "model.onnx": onnx_bytes(estimator, model, featurizer=featurizer.version),
    }


def reissue_artifacts(
    source: Path,
    directory: Path,
    *,
    card: Card,
    privacy: Privacy,
    signer: Signer,
    abstain: Sequence[Mapping[str, float | None]] | None = None,
) -> dict[str, str]:
    """Write a release again under another promise, or with thresholds; all else is copied byte by byte."""
    verify_manifest(source)
    before = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    listed: dict[str, Any] = before["files"]
    kind = json.loads((source / "features.json").read_text(encoding="utf-8"))["kind"]
    reads = featurizer_class(kind).reads
    contents = _promise(read_weights(source / "weights.json"), reads=reads, card=card, privacy=privacy)
    if abstain is not None:
        known = json.loads((source / THRESHOLDS).read_text(encoding="utf-8"))
        contents[THRESHOLDS] = json_bytes({**known, "abstain": list(abstain)})
    kept = sorted(listed.keys() - REISSUED - contents.keys())
    contents |= _signed(listed | _listed(contents), before, card, signer)
    with _new_directory(directory) as partial:
        for name in kept:
            shutil.copyfile(source / name, partial / name)
        for name, body in contents.items():
            (partial / name).write_bytes(body)
    same = {name: str(listed[name]["sha256"]) for name in kept}
    return same | {name: hashlib.sha256(body).hexdigest() for name, body in contents.items()}


def _promise(model: LinearModel, *, reads: str, card: Card, privacy: Privacy) -> dict[str, bytes]:
    reads = "spans" if model.names_spans else reads
    if card["version"] == DESCRIBED:
        return {
            "card.md": described_card(model, reads=reads, card=card, privacy=privacy).encode(),
            "privacy.json": json_bytes(described_document(privacy)),
        }
    return {
        "card.md": render_card(model, reads=reads, card=card, privacy=privacy).encode(),
        "privacy.json": json_bytes(privacy_document(privacy)),
    }


def _listed(contents: Mapping[str, bytes]) -> dict[str, Any]:
    return {name: {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)} for name, body in contents.items()}


def _signed(listed: Mapping[str, Any], provenance: Mapping[str, Any], card: Card, signer: Signer) -> dict[str, bytes]:
    # Signed with them, so that no genuine release passes for another.
    release = {"project": card["project"], "version": card["version"]}
    manifest = json_bytes(
        {
            "schema": "dpal-manifest/1",
            "release": release,
            "files": listed,
            **{name: provenance[name] for name in PROVENANCE},
        }
    )
    return {MANIFEST: manifest, SIGNATURE: json_bytes(signer.sign(manifest))}


@contextmanager
def _new_directory(directory: Path) -> Iterator[Path]:
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        yield partial
        partial.chmod(0o755)
        partial.rename(directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def read_weights(path: Path) -> LinearModel:
    try:
        return LinearModel.from_json(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ArtifactCorrupt(f"{path.name} cannot be read") from error


def verify_manifest(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file once all of them match the manifest and none is missing or extra."""
    try:
        listed = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]
        expected = {name: (entry["bytes"], entry["sha256"]) for name, entry in listed.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactCorrupt(f"{directory.name} cannot be read") from error
    listed_files = (path for path in directory.iterdir() if path.name not in UNLISTED)
    found = {path.name: (path.stat().st_size, file_sha256(path)) for path in listed_files}
    different = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if different:
        raise ArtifactCorrupt(f"{directory.name}: {', '.join(different)} do not match the manifest")
    signed = {name: file_sha256(directory / name) for name in UNLISTED if (directory / name).exists()}
    return {name: digest for name, (_, digest) in expected.items()} | signed


def verify_release(directory: Path, *, public_key: str) -> dict[str, str]:
    """Return the SHA-256 of each file once the trusted key signed the manifest and every file matches it."""
    try:
        manifest, signature = ((directory / name).read_bytes() for name in UNLISTED)
    except OSError as error:
        raise ArtifactCorrupt(f"{directory.name} lacks {', '.join(UNLISTED)} or one of them") from error
    check_signature(manifest, signature, public_key=public_key)
    return verify_manifest(directory)


def recompute_weights(directory: Path) -> float | None:
    """Return how far the weights that a transcript leads to are from those of a release; None for version 0."""
    if not (directory / TRANSCRIPT).exists():
        if json.loads((directory / MANIFEST).read_bytes())["release"]["version"] == DESCRIBED:
            return None
        raise ArtifactCorrupt("The transcript of its training is missing.")
    try:
        return recomputed(
            *(json.loads((directory / name).read_bytes()) for name in (TRANSCRIPT, "weights.json", "privacy.json"))
        )
    except NotGenuine as error:
        raise ArtifactCorrupt(f"The weights do not match the transcript: {error}") from error


def json_bytes(body: dict[str, Any]) -> bytes:
    return (json.dumps(body, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def skops_bytes(model: LinearModel) -> bytes:
    import skops.io  # noqa: PLC0415  # slow import: it imports all of scikit-learn, and most processes release nothing

    return canonical_skops(skops.io.dumps(sklearn_estimator(model), compression=zipfile.ZIP_STORED))


def sklearn_estimator(model: LinearModel) -> "LogisticRegression | OneVsRestClassifier":
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
    target = np.eye(len(classes), dtype=np.int64) if model.names_sets else classes
    ensemble.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(target)
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
    if isinstance(node, list):
        return [_renumbered(item, numbers, names) for item in node]
    if not isinstance(node, dict):
        return node
    renewed = {key: _renumbered(value, numbers, names) for key, value in node.items()}
    if isinstance(node.get("__id__"), int):
        renewed["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
    if node.get("__module__") == WRITTEN_BY:
        renewed["__module__"] = READ_BY
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
