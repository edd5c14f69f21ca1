import socket

import pytest

from annotation.errors import AddressRefused
from annotation.work import outgoing
from annotation.work.outgoing import Target, exchange, pinned_address


@pytest.mark.parametrize("inside", ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "0.0.0.0", "fe80::1"])
def test_a_name_that_is_moved_inside_after_it_was_checked_is_not_asked_again(monkeypatch, inside):
    asked, connected = [], []
    answers = iter([("93.184.216.34",), (inside,)])

    def resolve(*_, **__):
        asked.append(1)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in next(answers)]

    def connect(address, **_):
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(outgoing.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(outgoing.socket, "create_connection", connect)
    target = Target("hooks.example.org", 443, "/")
    with pytest.raises(ConnectionRefusedError):
        exchange(
            "POST",
            target,
            address=pinned_address(target),
            body=b"{}",
            headers={},
            seconds=5.0,
            most_bytes=100,
            context=None,
        )
    assert (len(asked), connected) == (1, [("93.184.216.34", 443)])
    # The next message looks anew, and the name leads inside by then.
    with pytest.raises(AddressRefused, match="not public"):
        pinned_address(target)
