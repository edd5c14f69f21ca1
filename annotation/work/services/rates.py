"""How often something may be tried: counted in the database, so that all processes count together.

The table is unlogged: a crash of the server forgets the counts of a few minutes, and no try waits for a disk.
"""

import hashlib

from django.db import connection

from annotation.errors import TooOften

COUNTED = """
ON CONFLICT (key) DO UPDATE SET
    tries = CASE WHEN counted.ends_at < now() THEN 1 ELSE counted.tries + 1 END,
    ends_at = CASE WHEN counted.ends_at < now() THEN excluded.ends_at ELSE counted.ends_at END
RETURNING tries, ceil(extract(epoch FROM counted.ends_at - now()))::int AS seconds_left
"""
COUNT = f"""
INSERT INTO annotation_ratecount AS counted (key, tries, ends_at)
VALUES (%(key)s, 1, now() + make_interval(secs => %(seconds)s))
{COUNTED}
"""  # noqa: S608  # as above


def count_try(*, what: str, who: str, limit: int, seconds: int) -> None:
    """Count one more try of `what` by `who` and refuse it beyond `limit` in a window of `seconds`."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"key": count_key(what=what, who=who), "seconds": seconds})
        tries, seconds_left = cursor.fetchone()
    refuse_beyond(limit, tries=tries, seconds_left=seconds_left)


def count_key(*, what: str, who: str) -> str:
    """Return what a count is kept under."""
    # Addresses and ids are nobody's business later on; a digest counts as well.
    return hashlib.blake2b(f"{what}\0{who}".encode(), digest_size=16).hexdigest()


def refuse_beyond(limit: int, *, tries: int, seconds_left: int) -> None:
    """Refuse a try that was counted beyond the limit of its window."""
    if tries > limit:
        raise TooOften(
            "This was tried too often. Wait a few minutes and try again.", retry_after_seconds=max(1, seconds_left)
        )


def forget_old_tries() -> int:
    """Delete the counts of windows that are over; return how many."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM annotation_ratecount WHERE ends_at < now()")
        forgotten: int = cursor.rowcount
    return forgotten
