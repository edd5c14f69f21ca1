import pytest

from annotation.work.rest import row_id


@pytest.mark.parametrize(("written", "read"), [("7", 7), ("007", 7), ("9" * 18, 10**18 - 1), ("0", 0)])
def test_a_number_is_read(written: str, read: int) -> None:
    assert row_id(written) == read


@pytest.mark.parametrize("written", ["", "-1", "1.5", "1e3", " 7", "seven", "²", "9" * 19])
def test_what_no_row_has_is_no_number(written: str) -> None:
    assert row_id(written) is None
