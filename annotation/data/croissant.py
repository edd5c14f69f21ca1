"""Description of a file of labels as Croissant 1.1 (https://docs.mlcommons.org/croissant) has it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

CROISSANT = "http://mlcommons.org/croissant/1.1"
LABELS = "labels.parquet"
DESCRIPTION = "croissant.json"
# The standard's own context, name by name.
OWN_NAMES = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty"),
    *("fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
    *("separator", "source", "subField", "transform"),
)
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "name": {"@container": "@language"},
    "description": {"@container": "@language"},
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in OWN_NAMES},
}
TEXT, INTEGER, FLOAT, TRUTH, TIME = "sc:Text", "sc:Integer", "sc:Float", "sc:Boolean", "sc:DateTime"
# Type and meaning of each column of the file.
FIELDS: dict[str, tuple[str | list[str], str]] = {
    "question": (INTEGER, "Number of the question; several answers to one question share it."),
    "text": (TEXT, "What the annotator saw of a text record: in a crowd project what passed the gate."),
    "dataset": (INTEGER, "Upload that the record came with, where annotators may know it."),
    "row": (INTEGER, "Row of the record in that upload."),
    "answer": ([TEXT, "cr:Label"], "Class that the annotator chose; 'not X' where a guess X was refused."),
    "annotator": (TEXT, "Name of the annotator's account."),
    "answered_at": (TIME, "When, in UTC."),
    "current": (TRUTH, "False where the annotator changed the answer later."),
    "consensus": (
        [TEXT, "cr:Label"],
        "Class that the answers to the question agree on, if they do, as it counts since classes were merged.",
    ),
    "votes": (INTEGER, "Answers that the consensus counted."),
    "agreeing": (INTEGER, "Answers among them that gave the class."),
    "suggestion": ([TEXT, "cr:Label"], "What a released model took the question for when it was opened, if any did."),
    "suggestion_percent": (INTEGER, "How sure that model was."),
    "suggestion_shown": (TRUTH, "Whether annotators saw it; a share of questions went without, by coins."),
    "annotator_kind": (TEXT, "'person', or 'machine' where a language model answered."),
    "owner_id": (TEXT, "The record's id, as whoever brought it calls it."),
    "counts_as": ([TEXT, "cr:Label"], "Class that the answer counts as, another one where classes were merged since."),
}
# Each column that whoever brought the records wanted kept is one of the file, under its name behind this.
METADATA_PREFIX = "metadata."
OF_ANY_LENGTH = {"isArray": True, "arrayShape": "-1"}
KEPT = (TEXT, "A column of the record's that whoever brought it wanted kept.")
DECLARED = "A declared column of the record."
UNPROTECTED = (
    "Answers as people gave them, for whoever manages the project: no differential privacy covers this file, and the "
    "guarantee of the project's models does not speak about it."
)
# Croissant asks for a licence; whose data it is, only its owner can say.
LICENSE = "Not stored: whoever owns the records says what may be done with them."


def croissant_description(
    *,
    name: str,
    slug: str,
    question: str,
    classes: Sequence[str],
    declared: Mapping[str, bool],
    kept: Sequence[str],
    lists: Collection[str],
    made_on: str,
    sha256: str,
    size: int,
) -> dict[str, Any]:
    """Return the description of a project's labels; columns in `lists` hold several classes in a row."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CROISSANT,
        "name": f"{slug}-labels",
        "alternateName": name,
        "description": f"{question} {UNPROTECTED}",
        "license": LICENSE,
        "creator": {"@type": "Organization", "name": f"Annotators of {name}"},
        "datePublished": made_on,
        "version": f"1.0.0+{made_on.replace('-', '')}",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": LABELS,
                "name": LABELS,
                "contentUrl": LABELS,
                "contentSize": f"{size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": sha256,
            }
        ],
        "recordSet": [_classes(classes), _answers(declared, kept, lists)],
    }


def _classes(classes: Sequence[str]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": "classes",
        "name": "classes",
        "description": "The classes, in the order of the project.",
        "dataType": "sc:Enumeration",
        "key": {"@id": "classes/name"},
        "field": [{"@type": "cr:Field", "@id": "classes/name", "name": "name", "dataType": TEXT}],
        "data": [{"classes/name": each} for each in classes],
    }


def _answers(declared: Mapping[str, bool], kept: Sequence[str], lists: Collection[str]) -> dict[str, Any]:
    fields = [(name, name, kind, meaning) for name, (kind, meaning) in FIELDS.items()]
    # No space may stand in an id, so the project's own columns are numbered there.
    fields += [
        (f"fields.{number}", name, FLOAT if is_number else TEXT, DECLARED)
        for number, (name, is_number) in enumerate(declared.items(), start=1)
    ]
    fields += [
        (f"{METADATA_PREFIX}{number}", f"{METADATA_PREFIX}{name}", *KEPT) for number, name in enumerate(kept, start=1)
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": "answers",
        "name": "answers",
        "description": "One row for each answer.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"answers/{key}",
                "name": name,
                "description": meaning,
                "dataType": kind,
                **(OF_ANY_LENGTH if name in lists else {}),
                "source": {"fileObject": {"@id": LABELS}, "extract": {"column": name}},
            }
            for key, name, kind, meaning in fields
        ],
    }
