"""Screens on a pool: looks are counted up only, and the rates they were paid at stay."""

import pytest
from django.db import IntegrityError

from learner.models import ScreenLooks
from tests.factories import make_project, make_records

pytestmark = pytest.mark.django_db(transaction=True)


def test_looks_are_counted_up_only_and_the_rates_stay_whoever_writes():
    project = make_project(selection="exposure_capped_screen", screen_high=0.2)
    (record, _) = make_records(project, ["a", "b"])
    project.screen_high = 0.3
    project.save(update_fields=["screen_high"])  # nobody has looked yet
    looks = ScreenLooks.objects.create(dataset=record.dataset, looks=bytes([1, 0]))
    ScreenLooks.objects.update(looks=bytes([1, 2]))
    for fewer in (bytes([0, 2]), bytes([1]), bytes([1, 2, 0])):
        with pytest.raises(IntegrityError, match="counted up only"):
            ScreenLooks.objects.update(looks=fewer)
    with pytest.raises(IntegrityError, match="counted up only"):
        looks.delete()
    for change in ({"screen_high": 0.2}, {"screen_low": 0.01}, {"exposures": 9}, {"selection": "random"}):
        with pytest.raises(IntegrityError, match="its rates stay"):
            type(project).objects.filter(pk=project.pk).update(**change)
    type(project).objects.filter(pk=project.pk).update(screen_reach=0.3, round_size=5)
