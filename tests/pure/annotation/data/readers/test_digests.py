import numpy as np
import pytest

from annotation.data.readers.digests import known_digests, payload_digests, rows_among, text_digests

KEY, OTHER = bytes(range(16)), bytes(range(1, 17))
NAMES = ("amount", "country")


@pytest.mark.parametrize(
    "edited",
    [
        "Where is my parcel, Straße 5?",
        "  where IS\tmy parcel  STRASSE 5  ",
        "Where is my parcel, Straße 5?\n",
        "“Where is my parcel” – Straße 5…",
        "Where\u00a0is my\u200b parcel, Straße 5!",
        "ＷＨＥＲＥ is my parcel: Straße 5",
    ],
)
def test_a_text_keeps_its_digest_through_what_changes_no_word(edited):
    plain = text_digests(["Where is my parcel, Straße 5?"], key=KEY)
    assert text_digests([edited], key=KEY) == plain
    assert text_digests(["x", edited, "y"], key=KEY)[1] == plain[0]


def test_other_words_have_other_digests():
    texts = [f"where is my parcel {number}" for number in range(5000)]
    assert len(np.unique(text_digests(texts, key=KEY))) == 5000
    assert not np.isin(text_digests(texts, key=KEY), text_digests(texts, key=OTHER)).any()


def test_a_row_of_a_table_is_its_cells():
    row = payload_digests([{"amount": 3, "country": "Norway"}], names=NAMES, key=KEY)
    for same in ({"country": " norway", "amount": 3.0}, {"amount": 3.0000000001, "country": "NORWAY"}):
        assert payload_digests([same], names=NAMES[::-1], key=KEY) == row
    for other in ({"amount": 3.1, "country": "Norway"}, {"amount": 3}, {"country": "3", "amount": "Norway"}):
        assert payload_digests([other], names=NAMES, key=KEY) != row
    alone, beside = ({"amount": 0.0}, {"amount": 1.0, "country": "Norway"})
    assert payload_digests([alone], names=NAMES, key=KEY) == payload_digests([alone, beside], names=NAMES, key=KEY)[0]
    assert payload_digests([{"amount": -0.0}], names=NAMES, key=KEY) == payload_digests([alone], names=NAMES, key=KEY)


def test_places_of_known_rows_are_found():
    digests = text_digests(["a", "b", "c", "a", ""], key=KEY)
    known = known_digests([text_digests(["a", "", "z"], key=KEY), text_digests(["c"], key=KEY)])
    assert rows_among(digests, known).tolist() == [0, 2, 3]
    assert rows_among(digests, known[:0]).tolist() == []
