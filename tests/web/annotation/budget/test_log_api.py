from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_manager
from tests.programs import Caller

pytestmark = pytest.mark.django_db


def test_a_program_reads_the_same_lines_by_the_same_filters(project):
    program, at = Caller(make_manager(project)), f"projects/{project.slug}/log"
    lines = program.get(at).json()
    assert [(line["who"], line["route"]) for line in lines] == [
        ("", "retention"),
        ("=cmd()", "annotation:people"),
        ("ben", "learner:retire"),
        ("ann", "annotation:people"),
    ]
    assert (lines[2]["what"], lines[2]["target"]) == ("Release: retired (Version 3)", {"version": 3})
    today = timezone.localdate()
    for chosen, found in (
        ({"who": "ann"}, [3]),
        ({"route": "annotation:people"}, [1, 3]),
        ({"since": today + timedelta(days=1)}, []),
        ({"until": today - timedelta(days=1)}, []),
        ({"since": today, "until": today}, [0, 1, 2, 3]),
        ({"since": "0001-01-01", "until": "9999-12-31"}, [0, 1, 2, 3]),
        ({"limit": 2, "offset": 1}, [1, 2]),
    ):
        assert program.get(at, **chosen).json() == [lines[place] for place in found], chosen
    assert program.get(at, since="yesterday").status_code == 422
