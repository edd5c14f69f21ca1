"""Times as they leave a project's inside: whole seconds, since how long a step took tells something of what it read."""

from datetime import datetime


def whole_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
