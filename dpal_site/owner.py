"""Acting as the role that owns the tables: for migrations and maintenance, and in no process that serves anybody."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.utils import load_backend

from dpal_site.embedded import servers
from dpal_site.embedded.database_address import parse_database_url, through_pooler


def owner_address() -> str:
    if settings.DATABASE_OWNER_URL:
        return settings.DATABASE_OWNER_URL
    if settings.EMBEDDED:
        return servers.owner_database_url()
    raise ImproperlyConfigured(
        "this changes tables: set DATABASE_OWNER_URL to the address of the role that owns them, and let DATABASE_URL "
        "name another one, which `manage.py prepare_database` makes"
    )


@contextmanager
def as_owner() -> Iterator[None]:
    """Have this thread talk to the database as its owner, over a connection of its own, until the block ends."""
    used = connections[DEFAULT_DB_ALIAS]
    address = parse_database_url(owner_address())
    if settings.DATABASE_POOLER:
        address = through_pooler(address)
    backend = load_backend(address["ENGINE"])
    owned = backend.DatabaseWrapper(used.settings_dict | address, DEFAULT_DB_ALIAS)
    connections[DEFAULT_DB_ALIAS] = owned
    try:
        yield
    finally:
        owned.close()
        connections[DEFAULT_DB_ALIAS] = used
