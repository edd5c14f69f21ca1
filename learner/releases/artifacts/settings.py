"""A project's settings as a release keeps them, and which of them may leave the project's inside."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.catalogue import CATALOGUE
from annotation.models import Project
from annotation.models.configurations import settings_in
from privacy.choices import Kind

# Names and times say nothing about a model, and guidelines may quote a record.
KEPT_INSIDE = frozenset({"created_at", "guidelines", "name", "slug"})
# Kinds of choices that a model is another one by; each parameter of what was chosen is kept with the model.
MAKE_A_MODEL: Final = (
    Kind.GATE,
    Kind.FEATURES,
    Kind.STRATEGY,
    Kind.ESTIMATOR,
    Kind.POLICY,
    Kind.RANDOMIZER,
    Kind.LABEL_TYPE,
)


def configuration_of(project: Project) -> dict[str, Any]:
    moving = {"id", "state", "labels_used_through", "labels_used_at"}
    fields = [field for field in project._meta.concrete_fields if not field.is_relation and field.name not in moving]
    values = {
        field.name: field.value_to_string(project) for field in fields if field.value_from_object(project) is not None
    }
    chosen = {name: getattr(project, name) for name in project.absent}
    held = settings_in(project.configuration_id)
    chosen |= {name: value for name, value in held.items() if CATALOGUE.kind_of(name) in MAKE_A_MODEL}
    values |= {name: str(value) for name, value in chosen.items() if value is not None}
    return {**values, "classes": project.classes, "columns": project.columns}


def settings_outside(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a project's settings those that may leave its inside."""
    return {name: value for name, value in sorted(configuration.items()) if name not in KEPT_INSIDE}


def configuration_digest(configuration: dict[str, Any]) -> str:
    """Return the SHA-256 of settings as the interface shows them: guidelines, which may quote a record, stay inside."""
    shown = {name: value for name, value in configuration.items() if name not in KEPT_INSIDE}
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
