"""The hash chain as an auditor recomputes it; the database computes the same in `privacy_entry_text`."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_HASH = "0" * 64
HASHED_FIELDS = (
    "id",
    "account_id",
    "sequence",
    "kind",
    "parent_id",
    "mechanism",
    "subject",
    "purpose",
    "event_json",
    "epsilon_nano",
    "delta_atto",
    "rho_nano",
    "mi_nano",
    "epsilon_spent_nano",
    "delta_spent_atto",
    "rho_spent_nano",
    "mi_spent_nano",
    "epsilon_reserved_nano",
    "delta_reserved_atto",
    "rho_reserved_nano",
    "mi_reserved_nano",
    "open_reservations",
    "idempotency_key",
    "output_digest",
    "actor",
    "reason",
    "created_at",
    "previous_hash",
)


def entry_text(fields: dict[str, Any]) -> str:
    """Return the text the hash of an entry covers: a JSON array of `HASHED_FIELDS`, times in microseconds."""
    values = [fields[name] for name in HASHED_FIELDS]
    values[HASHED_FIELDS.index("created_at")] = (fields["created_at"] - EPOCH) // timedelta(microseconds=1)
    key = fields["idempotency_key"]
    values[HASHED_FIELDS.index("idempotency_key")] = None if key is None else str(key)
    return json.dumps(values, ensure_ascii=False)


def entry_hash(fields: dict[str, Any]) -> str:
    return hashlib.sha256(entry_text(fields).encode()).hexdigest()
