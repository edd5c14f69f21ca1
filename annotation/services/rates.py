"""How often something may be tried: counted in the database, so that all processes count together."""

import hashlib

from django.db import connection

from annotation.errors import TooOften

COUNT = """
INSERT INTO annotation_ratecount AS counted (key, tries, ends_at)
VALUES (%(key)s, 1, now() + make_interval(secs => %(seconds)s))
ON CONFLICT (key) DO UPDATE SET
    tries = CASE WHEN counted.ends_at < now() THEN 1 ELSE counted.tries + 1 END,
    ends_at = CASE WHEN counted.ends_at < now() THEN excluded.ends_at ELSE counted.ends_at END
RETURNING tries, ceil(extract(epoch FROM counted.ends_at - now()))::int
"""


def count_try(*, what: str, who: str, limit: int, seconds: int) -> None:
    """Count one more try of `what` by `who` and refuse it beyond `limit` in a window of `seconds`."""
    # Addresses and ids are nobody's business later on; a digest counts as well.
    key = hashlib.blake2b(f"{what}\0{who}".encode(), digest_size=16).hexdigest()
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"key": key, "seconds": seconds})
        tries, seconds_left = cursor.fetchone()
    if tries > limit:
        raise TooOften(
            "This was tried too often. Wait a few minutes and try again.", retry_after_seconds=max(1, seconds_left)
        )


def forget_old_counts() -> int:
    """Delete the counts of windows that are over; return how many."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM annotation_ratecount WHERE ends_at < now()")
        forgotten: int = cursor.rowcount
    return forgotten
