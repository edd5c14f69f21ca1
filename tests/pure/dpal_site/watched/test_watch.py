"""Silence is told from slowness, and after it one thread at a time asks."""

import threading

import pytest
from psycopg.waiting import Ready, Wait

from dpal_site.watched import watch
from dpal_site.watched.watch import DatabaseSilent, Watch


def answer(after):
    """Wait as psycopg does: `after` empty polls, then a word."""
    for _ in range(after):
        yield Wait.R
    ready = yield Wait.R
    return "row" if ready else None


def drive(listening, words):
    """Send what the poll found; return what comes out."""
    try:
        next(listening)
        for word in words:
            listening.send(word)
    except StopIteration as done:
        return done.value
    return "waits"


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(watch, "time", clock)
    return clock


def passing(clock, seconds):
    """Yield polls that found nothing, each a second later."""
    for _ in range(seconds):
        clock.now += 1
        yield Ready.NONE


def listen(watching, after=1000, **options):
    return watching.listen(answer(after), **{"longest": 25, "is_there": None} | options)


def test_an_answer_passes_through(clock):
    assert drive(listen(Watch(), 2), [Ready.NONE, Ready.NONE, Ready.R]) == "row"


def test_a_slow_statement_of_a_server_that_is_there_goes_on(clock):
    asked = []
    watching = Watch()
    assert drive(listen(watching, is_there=lambda: asked.append(clock.now) or True), passing(clock, 20)) == "waits"
    assert asked == [106.0, 112.0, 118.0]
    assert not watching.silent


def test_a_server_that_takes_no_connection_is_silent(clock):
    watching = Watch()
    with pytest.raises(DatabaseSilent):
        drive(listen(watching, is_there=lambda: False), passing(clock, 20))
    assert watching.silent
    assert clock.now == 106.0


def test_without_such_a_question_the_longest_silence_counts_and_writing_is_no_word(clock):
    watching = Watch()

    def written():
        for _ in range(30):
            clock.now += 1
            yield Ready.W if clock.now < 120 else Ready.NONE

    with pytest.raises(DatabaseSilent):
        drive(listen(watching), written())
    assert (watching.silent, clock.now) == (True, 126.0)


def test_who_waits_ends_when_another_finds_the_server_silent(clock):
    watching = Watch()
    waits = listen(watching)
    next(waits)
    waits.send(Ready.NONE)
    watching.silent = True
    with pytest.raises(DatabaseSilent):
        waits.send(Ready.NONE)


def test_while_one_asks_the_others_are_refused_at_once_until_it_is_heard(clock):
    watching = Watch()
    watching.silent = True
    refused = []

    def other():
        try:
            with watching.asking():
                refused.append(False)
        except DatabaseSilent:
            refused.append(True)

    def elsewhere():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    with watching.asking():
        elsewhere()
        assert drive(listen(watching), [Ready.NONE]) == "waits"
    elsewhere()
    assert refused == [True, False]
    assert not watching.silent


def test_who_asks_a_silent_server_waits_less(clock):
    watching = Watch()
    watching.silent = True
    with pytest.raises(DatabaseSilent), watching.asking():
        drive(listen(watching), passing(clock, 20))
    assert clock.now == 100 + watch.ASK_SECONDS + 1
    assert watching.silent


def test_a_pooler_that_lets_in_settles_nothing(clock):
    watching = Watch()
    watching.silent = True
    with watching.asking(settles=False):
        pass
    assert watching.silent


def test_a_check_has_its_own_patience_and_accuses_nobody(clock):
    watching = Watch()
    with watching.patience(2), pytest.raises(DatabaseSilent):
        drive(listen(watching, is_there=lambda: True), passing(clock, 20))
    assert (watching.silent, clock.now) == (False, 103.0)
