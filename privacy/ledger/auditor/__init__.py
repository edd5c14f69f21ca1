"""Offline auditor of a ledger: entries, statements, checkpoints. Pure: it needs no site and no Django."""
