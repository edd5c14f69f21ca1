"""Origin of a release in its manifest: settings, data and ledger, by digests that tell of no record."""

from typing import TypedDict


class DataDigests(TypedDict):
    """The public data of a release; a digest of private data, keyed or not, would be an output nothing paid for."""

    # Feature matrix of each public test set that the version was measured on, by the set's name.
    public_sha256: dict[str, str]


class IncludedEntry(TypedDict):
    sequence: int
    hash: str
    # RFC 9162, from the leaf up, base64; the leaf is the entry's hash.
    proof: list[str]


class LedgerPlace(TypedDict):
    """One account when the files were first written: its signed checkpoint, and what is in it."""

    protects: str
    checkpoint: str
    entries: list[IncludedEntry]


class Provenance(TypedDict):
    # Of the settings as the interface shows them, as canonical JSON: sorted keys, no spaces, UTF-8.
    configuration_sha256: str
    data: DataDigests
    ledger: list[LedgerPlace]
