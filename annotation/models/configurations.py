"""A project's configuration as documents: each version is a row, and a row never changes."""

import json
import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models.numbered import NumberedModel

SCHEMA_VERSION = 1
# Documents that this process has read, by the key of their row.
MOST_KNOWN: Final = 4096
KNOWN: Final[dict[uuid.UUID, Mapping[str, Any]]] = {}


class Configuration(NumberedModel):
    # Not a number: what a transaction that was taken back had stored must not be found under a later row's key.
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey("annotation.Project", models.PROTECT, related_name="configurations", db_index=False)
    version = models.PositiveIntegerField()
    schema_version = models.PositiveSmallIntegerField(default=SCHEMA_VERSION)
    document = models.JSONField(help_text="By section: settings and their values.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the document as canonical JSON.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True, db_index=False
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "version"), name="annotation_configuration_version"),
            models.CheckConstraint(
                name="annotation_configuration_shape",
                condition=Q(version__gte=1, schema_version__gte=1, digest__regex="^[0-9a-f]{64}$"),
            ),
        )


class KnownChoice(NumberedModel):
    """A declared choice as the database knows it; `migrate` writes these rows."""

    kind = models.CharField(max_length=20)
    name = models.CharField(max_length=40)
    section = models.CharField(max_length=20)
    key = models.CharField(max_length=30, blank=True, help_text="Setting that names the chosen one.")
    oracles = ArrayField(models.CharField(max_length=10))
    arrivals = ArrayField(models.CharField(max_length=10))
    data_kinds = ArrayField(models.CharField(max_length=10))
    parameters = models.JSONField(
        help_text="By name: the JSON schema of its value, whether a charge rests on it, and which other bounds it."
    )
    stays = models.BooleanField(help_text="Whether its parameters stay after the first charge.")
    facts = models.JSONField(help_text="By name: what else the rules between several settings ask of it.")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("kind", "name"), name="annotation_known_choice"),)


def settings_in(configuration_id: uuid.UUID) -> Mapping[str, Any]:
    """Return the settings of a document by name; it never changes, so a process reads it once."""
    found = KNOWN.get(configuration_id)
    if found is None:
        document = Configuration.objects.values_list("document", flat=True).get(pk=configuration_id)
        found = remember(configuration_id, document)
    return found


def read_ahead(configuration_ids: Iterable[uuid.UUID]) -> None:
    if unknown := [key for key in configuration_ids if key not in KNOWN]:
        for key, document in Configuration.objects.filter(pk__in=unknown).values_list("pk", "document"):
            remember(key, document)


def remember(configuration_id: uuid.UUID, document: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    if len(KNOWN) >= MOST_KNOWN:
        KNOWN.clear()
    # As it will be read.
    found = KNOWN[configuration_id] = MappingProxyType(flattened(json.loads(json.dumps(document))))
    return found


def flattened(document: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for section in document.values() for name, value in section.items()}
