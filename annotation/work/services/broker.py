"""Tasks that wait in the broker, and whether it may have lost some."""

from amqp.exceptions import AMQPError
from celery import current_app
from kombu.exceptions import ChannelError, OperationalError
from redis.exceptions import RedisError

HEAVY_QUEUE = "heavy"
PATIENCE_SECONDS = 2
# What a client meets instead of a broker; kombu gives one name only to what it meets while it connects.
AWAY = (OperationalError, OSError, AMQPError, RedisError)


def depths() -> dict[str, int]:
    found: dict[str, int] = {}
    try:
        with current_app.connection_for_write(connect_timeout=PATIENCE_SECONDS) as connection:
            connection.ensure_connection(max_retries=1, timeout=PATIENCE_SECONDS)
            for queue in current_app.conf.task_queues:
                # A channel each: RabbitMQ closes the one on which a queue was asked for that does not exist.
                with connection.channel() as channel:
                    try:
                        found[queue.name] = queue(channel).queue_declare(passive=True).message_count
                    except ChannelError:  # nothing was ever sent there
                        found[queue.name] = 0
    except AWAY:
        return {}
    return found


def may_have_lost(rows: int) -> bool:
    """Say whether fewer heavy tasks wait in the broker than rows are worked on; also if the broker does not answer."""
    if not rows:
        return False
    waiting = depths()
    return not waiting or waiting.get(HEAVY_QUEUE, 0) < rows
