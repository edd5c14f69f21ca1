from django.utils.module_loading import import_string

from dpal_site.schedule import BEAT_SCHEDULE, HEAVY_TASKS, QUEUES


def test_every_name_is_a_task():
    names = [*HEAVY_TASKS, *(str(entry["task"]) for entry in BEAT_SCHEDULE.values())]
    # A wrong name fails to import, and what is no task has no name of one.
    assert [import_string(name).name for name in names] == names


def test_each_queue_has_a_heartbeat_that_waits_in_it():
    beats = {name: BEAT_SCHEDULE[f"heartbeat-{name}"] for name in QUEUES}
    assert {name: beat["options"]["queue"] for name, beat in beats.items()} == {name: name for name in QUEUES}
