"""Projects that are not opened yet: their files, what was detected in them, and their opening."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePath
from time import monotonic
from typing import Any, BinaryIO, cast
from uuid import uuid4

from django.conf import settings as site
from django.contrib.auth.models import User
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from annotation.budget import charges
from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.rating import Rate
from annotation.choices.label_types.several import ChooseSeveral
from annotation.choices.label_types.spans import MarkSpans
from annotation.choices.presets import PRESETS, fitting_estimator
from annotation.choices.rules import ReadsLanguages, features_for
from annotation.data.readers.detection import DetectedFile, Labels, detect_file, examples_of, labels_of
from annotation.data.readers.images import FILE_NAME
from annotation.data.services import datasets, mappings, shared_rows, uploads
from annotation.data.services.drafts import UploadForecast, forecast_upload
from annotation.errors import DraftGone, InvalidUpload
from annotation.models import Arrival, DataKind, DatasetRole, Oracle, Project
from annotation.models.imports import OpeningDraft
from annotation.projects.services import opening
from annotation.signals import draft_opened
from annotation.work.services import jobs
from dpal.reading.quoting import quoted, split_name
from dpal.reading.rows import FirstRows, RowBatch
from privacy.accounting.cost import Cost
from privacy.choices import Kind, missing_for
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

KEPT_HOURS = 24
POOL, PUBLIC = "pool", "public"
PARTS = {POOL: DatasetRole.POOL, PUBLIC: DatasetRole.PUBLIC_TEST}
# Larger pictures tell a small model no more.
IMAGE_SIDE = 32
MOST_COMPARED = 200_000
# So long a page waits for the number of rows; of a longer file it knows those counted by then.
COUNTING_SECONDS = 3.0
# Of each class from the public file; and no line of words may be longer.
EXAMPLES_TAKEN = 10
LONGEST_LINE = 500
# Kept for people to read, by the names of a mapping.
OWNERS = ("id", "shown")
KEYS = {"shown": "metadata"}
WHICH_CLASS, WHICH_PARTS = _("Which class fits?"), _("Which parts of the text belong to a class?")
WHICH_CLASSES, WHICH_STEP = _("Which classes fit?"), _("Which step of the scale fits?")
# Questions by what a file asks; another one is proposed only in place of the first.
QUESTIONS = {MarkSpans.name: WHICH_PARTS, ChooseSeveral.name: WHICH_CLASSES, Rate.name: WHICH_STEP}
SUFFIX = re.compile(r"(\.(csv|tsv|txt|jsonl?|ndjson|parquet|xlsx|zip|gz))+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Result of opening a draft: its charge, texts that would pass, rows in both files, and what hinders it."""

    charge: Cost | None = None
    forecast: UploadForecast | None = None
    shared: int = 0
    problem: str = ""
    rows: int = 0


def start_draft(*, owner: User, preset: str, typed: Mapping[str, Any] | None = None) -> OpeningDraft:
    return OpeningDraft.objects.create(owner=owner, preset=preset, typed=dict(typed or {}))


def bring_file(*, draft: OpeningDraft, part: str, file: "File[bytes]", name: str) -> OpeningDraft:
    """Keep a file for a day and fill in what it shows; `InvalidUpload` if it cannot be read."""
    if file.size > site.UPLOAD_MAX_BYTES:
        raise InvalidUpload(as_message("file: is larger than {most:,} bytes", most=site.UPLOAD_MAX_BYTES))
    jobs.refuse_when_busy()
    detected = _detect(file, name, part, {})
    file.seek(0)
    kept = uploads.keep_file(file, f"{uploads.FOLDER}/new/{uploads.DRAFTS}/{uuid4()}{detected.shape.format}")
    try:
        drop_file(draft=draft, part=part)
        setattr(draft, part, kept)
        draft.files[part] = {"name": name[:200], **_found(detected)}
        _fill_in(draft, part, detected)
        _store(draft)
    except BaseException:
        default_storage.delete(kept)
        raise
    return draft


def drop_file(*, draft: OpeningDraft, part: str) -> None:
    if kept := str(getattr(draft, part) or ""):
        setattr(draft, part, "")
        draft.files.pop(part, None)
        _store(draft)
        default_storage.delete(kept)


def read_anew(*, draft: OpeningDraft, part: str, reading: Mapping[str, Any]) -> None:
    """Read a file another way and detect its columns again."""
    detected = look_at(draft, part, reading)
    draft.files[part] |= _found(detected) | {"rows": 0}
    _fill_in(draft, part, detected)
    _store(draft)


def change_draft(*, draft: OpeningDraft, preset: str, typed: Mapping[str, Any]) -> OpeningDraft:
    draft.preset, draft.typed = preset, dict(typed)
    _fit_model(draft)
    _store(draft)
    return draft


def assign_columns(*, draft: OpeningDraft, part: str, roles: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Say what each column of a file is for, and which class each label in it stands for."""
    held = draft.files[part]
    before = _columns_for("label", held)
    held["roles"] |= roles
    if part == PUBLIC and _columns_for("label", held) != before:
        _take_labels(draft)
    elif part == PUBLIC and values:
        _rename(draft, held, values)
    if "feature" in held["roles"].values() or "columns" in draft.typed:
        draft.typed["columns"] = _column_lines(draft)
    _store(draft)


def can_take_examples(draft: OpeningDraft) -> bool:
    """Say whether the public file has texts with one class each."""
    held = draft.files.get(PUBLIC)
    several = held is not None and (held.get("separator") or draft.typed.get("question_kind") == MarkSpans.name)
    if held is None or draft.typed.get("data_kind") != DataKind.TEXT or several:
        return False
    return bool(_columns_for("text", held)) and len(_columns_for("label", held)) == 1


def take_examples(*, draft: OpeningDraft) -> None:
    """Put the first texts of each class of the public file among the words about the classes."""
    held = draft.files[PUBLIC]
    with draft.public.open() as file:
        found = examples_of(
            cast("BinaryIO", file),
            held["name"],
            text=_columns_for("text", held)[0],
            label=_columns_for("label", held)[0],
            reading=held["reading"],
            maximum_bytes=site.UPLOAD_MAX_BYTES,
            most=EXAMPLES_TAKEN,
        )
    # Braces would stand for alternatives, and a longer line is refused.
    plain = [(held["values"].get(name, name), text) for name, text in found if not {"{", "}"} & set(text)]
    lines = [line for name, text in plain if len(line := f'{name}: "{text}"') <= LONGEST_LINE]
    add_words(draft=draft, lines=lines, source=gettext("taken from {file}").format(file=held["name"]))


def add_words(*, draft: OpeningDraft, lines: Iterable[str], source: str = "") -> None:
    """Put lines behind the words about the classes, and who wrote them behind those who wrote the others."""
    typed = draft.typed
    before = [line.strip() for line in str(typed.get("class_descriptions", "")).splitlines() if line.strip()]
    typed["class_descriptions"] = "\n".join(dict.fromkeys([*before, *lines]))
    sources = [part for part in (typed.get("words_source"), source) if part]
    typed["words_source"] = "; ".join(dict.fromkeys(sources))
    _store(draft)


def look_at(draft: OpeningDraft, part: str, reading: Mapping[str, Any] | None = None) -> DetectedFile:
    held = draft.files[part]
    with getattr(draft, part).open() as file:
        return _detect(file, held["name"], part, held["reading"] if reading is None else reading)


def mapping_of(draft: OpeningDraft, part: str, *, crowd: bool) -> dict[str, Any]:
    """Return the mapping by which a file of a draft is read once its project is there."""
    held = draft.files[part]
    mapping = {key: value for key, value in held["reading"].items() if value is not None}
    wanted = ("text", "pixels", "label") if part == PUBLIC else ("text", "pixels", "contributor", *OWNERS)
    for role in wanted:
        named = _columns_for(role, held)
        # The label of an image is its folder, and behind a gate nothing of the owner's comes back.
        if named and not (role == "label" and named == [FILE_NAME]) and not (crowd and role in OWNERS):
            several = role == "label" and len(named) > 1
            mapping["one_hot" if several else KEYS.get(role, role)] = named if several or role == "shown" else named[0]
    if part == PUBLIC:
        mapping |= {key: held[key] for key in ("values", "separator") if held.get(key)}
    elif held.get("without_public"):
        mapping["without_public"] = True
    return mapping


def rehearse(*, draft: OpeningDraft, values: Mapping[str, Any]) -> Rehearsal:
    """Open the project until the end of this call, ask it about its files, and take all of it back."""
    with opening.rehearsed_project(preset=draft.preset, owner=draft.owner, **values) as project:
        try:
            found = _rehearse(draft, project)
        except InvalidUpload as error:
            return Rehearsal(problem=str(error))
    if POOL in draft.files:
        counted = {"rows": found.rows, "shared": found.shared}
        if draft.files[POOL] | counted != draft.files[POOL]:
            draft.files[POOL] |= counted
            # One that was opened meanwhile needs no count.
            OpeningDraft.objects.filter(pk=draft.pk).update(files=draft.files)
    return found


def rows_to_come(draft: OpeningDraft) -> int:
    """Return how many rows of its file a project of experts would have; 0 where nobody counted them.

    Of a crowd never: how many texts pass follows from what is in them, and a stored plan outlives the draft.
    """
    held = draft.files.get(POOL, {})
    if PRESETS[draft.preset].oracle == Oracle.CROWD:
        return 0
    return int(held.get("rows", 0)) - (int(held.get("shared", 0)) if held.get("without_public") else 0)


def list_shared(*, draft: OpeningDraft, values: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return the rows of the private file that the public one holds, too, with their numbers; images by these alone."""
    with opening.rehearsed_project(preset=draft.preset, owner=draft.owner, **values) as project:
        crowd = project.oracle == Oracle.CROWD
        layouts = {
            part: mappings.layout_of(project, PARTS[part], mapping_of(draft, part, crowd=crowd)) for part in draft.files
        }
        with draft.pool.open() as pool, draft.public.open() as public:
            found = _shared(draft, project, layouts, pool, public)
            return [(number, _written(value)) for number, value in found]


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {cell}" for name, cell in value.items())
    return value if isinstance(value, str) else ""


def leave_shared_out(*, draft: OpeningDraft, leave_out: bool) -> None:
    draft.files[POOL]["without_public"] = leave_out
    _store(draft)


def open_draft(*, draft: OpeningDraft, values: Mapping[str, Any], confirm_few: bool = False) -> Project:
    """Open the project with its files, or nothing at all; the second time there is no draft."""
    with transaction.atomic():
        held = OpeningDraft.objects.select_for_update().filter(pk=draft.pk).first()
        if held is None:
            raise _gone()
        project = opening.create_project(preset=held.preset, owner=held.owner, **values)
        crowd = project.oracle == Oracle.CROWD
        for part in (PUBLIC, POOL):
            if part in held.files:
                with getattr(held, part).open() as file:
                    datasets.receive_upload(
                        project=project,
                        file=file,
                        name=held.files[part]["name"],
                        role=PARTS[part],
                        mapping=mapping_of(held, part, crowd=crowd),
                        uploaded_by=held.owner,
                        confirm_few=confirm_few,
                    )
        draft_opened.send(OpeningDraft, draft=held, project=project)
        OpeningDraft.objects.filter(pk=held.pk).delete()
    _delete_files(draft)
    return project


def discard_draft(*, draft: OpeningDraft) -> None:
    OpeningDraft.objects.filter(pk=draft.pk).delete()
    _delete_files(draft)


def forget_old_drafts() -> int:
    limit = models.ExpressionWrapper(Now() - timedelta(hours=KEPT_HOURS), output_field=models.DateTimeField())
    old = list(OpeningDraft.objects.filter(created_at__lt=limit))
    for draft in old:
        discard_draft(draft=draft)
    return len(old)


def _store(draft: OpeningDraft) -> None:
    """Store a draft that is still there; `save` would bring back one that was opened meanwhile."""
    fields = {field.name: getattr(draft, field.name) for field in OpeningDraft._meta.fields if not field.primary_key}
    if not OpeningDraft.objects.filter(pk=draft.pk).update(**fields):
        raise _gone()


def _gone() -> DraftGone:
    return DraftGone(as_message("This draft was opened or discarded already."))


def _delete_files(draft: OpeningDraft) -> None:
    for part in PARTS:
        if kept := str(getattr(draft, part) or ""):
            default_storage.delete(kept)


def _detect(file: Any, name: str, part: str, reading: Mapping[str, Any]) -> DetectedFile:
    return detect_file(
        cast("BinaryIO", file),
        name,
        maximum_bytes=site.UPLOAD_MAX_BYTES,
        labelled=part == PUBLIC,
        reading={key: value for key, value in reading.items() if value not in (None, "")},
    )


def _rehearse(draft: OpeningDraft, project: Project) -> Rehearsal:
    crowd = project.oracle == Oracle.CROWD
    mapping = {part: mapping_of(draft, part, crowd=crowd) for part in draft.files}
    layouts = {part: mappings.layout_of(project, PARTS[part], mapping[part]) for part in draft.files}
    if POOL not in layouts:
        return Rehearsal()
    rows = int(draft.files[POOL].get("rows", 0))
    with draft.pool.open() as file:
        uploads.open_upload(file, draft.files[POOL]["name"], layouts[POOL], look=FirstRows(1))
        file.seek(0)
        rows = rows or _count_rows(_rows(file, draft.files[POOL]["name"], layouts[POOL]))
        file.seek(0)
        forecast = forecast_upload(
            project=project, file=file, name=draft.files[POOL]["name"], role=PARTS[POOL], mapping=mapping[POOL]
        )
    shared = 0
    if PUBLIC in layouts:
        with draft.pool.open() as pool, draft.public.open() as public:
            shared = sum(1 for _row in _shared(draft, project, layouts, pool, public))
    return Rehearsal(charges.upload_charge(project, DatasetRole.POOL), forecast, shared, rows=rows)


def _count_rows(batches: Iterable[RowBatch]) -> int:
    rows, ends_at = 0, monotonic() + COUNTING_SECONDS
    for batch in batches:
        rows += batch.count
        if monotonic() > ends_at:
            break
    return rows


def _shared(draft: OpeningDraft, project: Project, layouts: Any, pool: Any, public: Any) -> Iterator[tuple[int, Any]]:
    return shared_rows.iter_shared(
        project=project,
        public=_rows(public, draft.files[PUBLIC]["name"], layouts[PUBLIC]),
        pool=_rows(pool, draft.files[POOL]["name"], layouts[POOL]),
        most_rows=MOST_COMPARED,
    )


def _rows(file: Any, name: str, layout: Any) -> Iterable[RowBatch]:
    return uploads.open_upload(file, name, layout).batches()


def _fill_in(draft: OpeningDraft, part: str, detected: DetectedFile) -> None:
    """Let the form hold what a file shows; what was typed by a person stays."""
    typed = draft.typed
    if part == POOL:
        typed["data_kind"] = detected.kind
        if detected.kind not in PRESETS[draft.preset].data_kinds:
            draft.preset = "pool-experts"
        title = SUFFIX.sub("", PurePath(draft.files[POOL]["name"]).name)
        typed.setdefault("name", re.sub(r"[_\s]+", " ", title).strip()[:120] or gettext("New project"))
        typed.setdefault("question", gettext(WHICH_CLASS))
        if detected.kind == DataKind.IMAGE and any(detected.size):
            height, width = detected.size
            scale = min(1.0, IMAGE_SIDE / max(height, width)) if detected.images else 1.0
            typed |= {"image_height": max(1, round(height * scale)), "image_width": max(1, round(width * scale))}
    if part == PUBLIC:
        _take_labels(draft)
    _fit_features(draft, detected.language)
    if typed.get("data_kind") == DataKind.TABLE:
        typed["columns"] = _column_lines(draft)


def _fit_features(draft: OpeningDraft, language: str) -> None:
    """Let texts be read by what knows their language; spans are learned by what ships with the site alone."""
    typed, known = draft.typed, features_for(language)
    if typed.get("question_kind") == MarkSpans.name:
        if isinstance(chosen_of(Kind.FEATURES, typed), ReadsLanguages):
            del typed[Kind.FEATURES.key]
    elif known and not missing_for(known) and typed.get("data_kind", DataKind.TEXT) == DataKind.TEXT:
        typed.setdefault(Kind.FEATURES.key, known.name)


def _take_labels(draft: OpeningDraft) -> None:
    """Let the classes and the kind of question be those of the public file."""
    held = draft.files[PUBLIC]
    columns = _columns_for("label", held)
    held |= {"values": {}, "counts": [], "separator": ""}
    if not columns:
        return
    with draft.public.open() as file:
        shape = _detect(file, held["name"], PUBLIC, held["reading"]).shape
        labels = labels_of(
            cast("BinaryIO", file),
            held["name"],
            columns=columns,
            reading=held["reading"],
            shape=shape,
            maximum_bytes=site.UPLOAD_MAX_BYTES,
        )
    held |= {"values": dict(labels.spelled), "counts": list(labels.counts.items()), "separator": labels.separator}
    found = _asked(labels, PRESETS[draft.preset].defaults.get("arrival", Arrival.POOL))
    if draft.typed.get("question") == gettext(WHICH_CLASS):
        draft.typed["question"] = gettext(QUESTIONS.get(found.get("question_kind", ""), WHICH_CLASS))
    draft.typed |= found
    _fit_model(draft)


def _asked(labels: Labels, arrival: str) -> dict[str, Any]:
    found: dict[str, Any] = {"classes": "\n".join(labels.classes)}
    if arrival != Arrival.POOL:
        return found
    if labels.spans:
        return found | {"question_kind": MarkSpans.name}
    if labels.most > 1:
        return found | {"question_kind": ChooseSeveral.name, "labels_per_record": labels.most}
    return found | {"question_kind": Rate.name if labels.are_steps else ChooseOne.name}


def _fit_model(draft: OpeningDraft) -> None:
    """Let the model be one that learns from what is asked."""
    preset = PRESETS[draft.preset]
    fitting = fitting_estimator(preset, draft.typed)
    if fitting != draft.typed.get(Kind.ESTIMATOR.key, preset.defaults[Kind.ESTIMATOR.key]):
        draft.typed[Kind.ESTIMATOR.key] = fitting


def _rename(draft: OpeningDraft, held: dict[str, Any], values: Mapping[str, str]) -> None:
    """Let labels stand for other classes than before; a class that none stands for any more goes."""
    before = {value: held["values"].get(value, value) for value, _count in held["counts"]}
    after = {value: values.get(value, "").strip() or name for value, name in before.items()}
    if before == after:
        return
    held["values"] = {value: name for value, name in after.items() if value != name}
    classes = [line.strip() for line in str(draft.typed.get("classes", "")).splitlines() if line.strip()]
    renamed = {name: after[value] for value, name in before.items() if after[value] != name}
    kept = set(after.values())
    moved = [name if name in kept else renamed.get(name, name) for name in classes]
    draft.typed["classes"] = "\n".join(dict.fromkeys([*moved, *after.values()]))


def _column_lines(draft: OpeningDraft) -> str:
    """Return a line for each column of a table: bounds come from the public file alone, else a person types them."""
    typed = str(draft.typed.get("columns", "")).splitlines()
    known = {name: line for line in typed for name, rule in (split_name(line),) if name and rule}
    public = look_at(draft, PUBLIC).columns if PUBLIC in draft.files else {}
    features = _columns_for("feature", draft.files[POOL]) if POOL in draft.files else []
    return "\n".join(known.get(name) or f"{quoted(name, ':')}: {_bounds(public.get(name, ()))}" for name in features)


def _found(detected: DetectedFile) -> dict[str, Any]:
    # The database keeps no order of keys.
    return {"reading": dict(detected.reading), "roles": dict(detected.roles), "columns": list(detected.roles)}


def _columns_for(role: str, held: Mapping[str, Any]) -> list[str]:
    return [name for name in held["columns"] if held["roles"][name] == role]


def _bounds(cells: Iterable[Any]) -> str:
    """Return the bounds or categories of a public column; empty where it shows none."""
    filled = [str(cell).strip() for cell in cells if cell not in (None, "")]
    if not filled:
        return ""
    try:
        numbers = [float(cell) for cell in filled]
    except ValueError:
        return ", ".join(quoted(one, ",") for one in sorted(set(filled)))
    low, high = min(numbers), max(numbers)
    return f"{low:g} to {high if high > low else low + 1:g}"
