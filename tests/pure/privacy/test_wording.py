import copy
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.wording import (
    Messages,
    as_message,
    as_plural_message,
    joined_messages,
    joined_rules,
    message_from,
    message_of,
    template_fields,
)

NOON = datetime(2026, 3, 1, 13, 0, 59, tzinfo=timezone(timedelta(hours=1)))
INNER = as_message("line {line:,}: {word_how}", line=12_345, word_how=as_message("is empty"))
SENTENCES = [
    as_message("It is done."),
    as_message("{n:,} bytes", n=2_000_000),
    as_message("delta {delta:.3g} at {share:.0%}", delta=1.23456e-5, share=0.073),
    as_message("no column named {name!r}", name="a 'b'"),
    as_message("{label}: {reason}", label="pool", reason=INNER),
    as_message("closes at {at}", at=NOON),
    as_message(
        "{amount} {limit} {what} {missing}", amount=Decimal("1.50"), limit=float("inf"), what=True, missing=None
    ),
    as_message("{n} of {total:.2f}", n=np.int64(3), total=np.float64(2.0)),
    as_plural_message("{n} field", "{n} fields", n=1),
    joined_messages("; ", [as_message("a {n}", n=1), "b", INNER]),
]


@pytest.mark.parametrize("said", SENTENCES)
def test_nothing_is_lost_on_the_way(said):
    for again in (
        message_from(json.loads(json.dumps(said.as_json()))),
        pickle.loads(pickle.dumps(said)),
        copy.deepcopy(said),
        str(said),
        str(ValueError(said)),
        message_of(said),
    ):
        assert again == said
        assert type(again) is type(said)
        assert again.as_json() == said.as_json()


def test_a_sentence_reads_as_its_template_says():
    assert (
        as_message("{n:,} rows of {name!r} at {share:.1%}", n=12_345, name="x", share=0.5)
        == "12,345 rows of 'x' at 50.0%"
    )
    assert as_message("closes at {at}", at=NOON) == "closes at 2026-03-01 12:00 UTC"
    assert as_message("closes at {at}", at=NOON).parameters == {"at": datetime(2026, 3, 1, 12, tzinfo=UTC)}
    assert INNER == "line 12,345: is empty"


def test_sentences_stand_together_without_the_empty_ones():
    together = joined_messages(" ", ["", INNER, ""])
    assert together is INNER
    assert joined_messages(" ", []) == ""
    several = joined_messages(" ", [INNER, "", "b"])
    assert isinstance(several, Messages)
    assert (several, several.parts) == ("line 12,345: is empty b", (INNER, message_of("b")))
    assert joined_rules({"k": "is missing", "n": "is low"}) == "k: is missing; n: is low"


@pytest.mark.parametrize("stored", [{}, {"code": "a"}, {"code": "a", "parameters": 3}, {"messages": []}])
def test_what_is_no_message_is_refused(stored):
    with pytest.raises(ValueError, match="no message"):
        message_from(stored)


@given(
    template=st.sampled_from(["{x}", "{x:.6g}", "{x:.4g}", "{x:.3g}", "{x:g}", "{x:.9g}", "{x:.0%}", "{x:,}"]),
    x=st.floats() | st.integers(-(10**18), 10**18),
)
def test_a_number_reads_the_same_after_a_column(template, x):
    said = as_message(template, x=x)
    assert said == template.format(x=x)
    stored = json.loads(json.dumps(said.as_json(), allow_nan=False))
    assert message_from(stored) == said
    assert set(template_fields(template)) == {"x"}
