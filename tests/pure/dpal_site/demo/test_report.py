import pytest

from dpal_site.demo.report import Compared, verdict

BESIDE = Compared(releases=(0.4, 0.8), version_0=0.6, random=0.7, no_privacy=0.9, constant=0.1)
RANDOM, WORDS = "random choice", "version 0"


@pytest.mark.parametrize(("reached", "lost"), [(0.8, ()), (0.7, (RANDOM,)), (0.5, (WORDS, RANDOM))])
def test_a_loss_is_said_with_what_it_lost_to(reached, lost):
    said = verdict("Digits", reached, BESIDE)
    assert ("LOST" in said) == bool(lost)
    assert all(other in said for other in lost)
