import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dpal import errors
from dpal.site import Site
from dpal.uploading import upload


@pytest.fixture
def server():
    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append((self.command, self.path, dict(self.headers), body))
            if self.path.endswith("/limit"):
                status, said = 422, {"detail": "No.", "errors": [{"field": "epsilon", "rule": "must be > 0"}]}
            elif self.path.endswith("/lost") and len(asked) == 1:
                # As a site does that is killed.
                self.close_connection = True
                return
            elif self.path.endswith("/busy") and len(asked) < 3:
                status, said = (429, 503)[len(asked) - 1], {"detail": "Later."}
            else:
                status, said = 200, {"n": len(asked)}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *args):
            pass

    asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as opened:
        threading.Thread(target=opened.serve_forever).start()
        yield f"http://127.0.0.1:{opened.server_port}", asked
        opened.shutdown()


def test_each_write_has_a_key_of_its_own_and_a_read_has_none(server):
    address, asked = server
    with Site(address, "secret") as site:
        assert site.request("GET", "projects/a/plan", query={"records": None, "days": 3}) == {"n": 1}
        site.request("POST", "projects/a/state", body={"state": "paused"})
        site.request("POST", "projects/a/state", body={"state": "paused"})
    (verb, path, headers, body), *writes = asked
    assert (verb, path, body, "Idempotency-Key" in headers) == ("GET", "/api/v1/projects/a/plan?days=3", b"", False)
    assert headers["Authorization"] == "Bearer secret"
    assert [json.loads(write[3]) for write in writes] == [{"state": "paused"}] * 2
    assert len({write[2]["Idempotency-Key"] for write in writes}) == 2


@pytest.mark.parametrize("path", ["lost", "busy"])
def test_a_write_is_sent_again_with_its_key(server, tmp_path, path):
    address, asked = server
    file = tmp_path / "a.csv"
    file.write_bytes(b"as it is")
    sent = []
    with Site(address, "secret") as site:
        upload(site, path, {"file": file}, {"role": "pool"}, sent.append)
    assert len(asked) == (2 if path == "lost" else 3)
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in asked}) == 1
    assert len({body for *_, body in asked}) == 1
    assert sum(sent) == len(b"as it is")


def test_a_refusal_is_one_sentence_with_the_fields_rules(server):
    with Site(server[0], "secret") as site, pytest.raises(errors.Refused) as refused:
        site.request("POST", "projects/a/limit", body={})
    assert str(refused.value) == f"{server[0]} refuses (422): No. epsilon: must be > 0"


def test_the_token_of_the_environment_is_used_where_none_is_given(server, monkeypatch):
    monkeypatch.setenv("DPAL_TOKEN", "of the environment")
    with Site(server[0]) as site:
        site.request("GET", "projects")
    assert server[1][0][2]["Authorization"] == "Bearer of the environment"


def test_a_file_is_sent_with_its_fields_and_a_key(server, tmp_path):
    file = tmp_path / 'a "b".csv'
    file.write_bytes(b"as it is")
    sent = []
    with Site(server[0], "secret") as site:
        upload(site, "projects/a%20b/datasets", {"file": file}, {"role": "pool"}, sent.append)
    verb, path, headers, body = server[1][0]
    assert (verb, path) == ("POST", "/api/v1/projects/a%20b/datasets")
    assert headers["Idempotency-Key"]
    assert headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert b'filename="a %22b%22.csv"' in body
    assert b"as it is" in body
    assert b"pool" in body
    assert sum(sent) == len(b"as it is")
