import hashlib
import json
import threading
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from addons.spark.jobs import FileReader
from addons.spark.stores import Bucket, Folder, as_json, columns_in, from_json
from privacy.gate.columns import ColumnsWriter, pool_rows
from privacy.gate.engine import PoolFile

CONTENT = b"columns \x00 of a pool"


class ObjectRequest(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        found = self.path == "/pools/site/datasets/1/0.parquet"
        code = b"<Error><Code>NoSuchKey</Code></Error>"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(CONTENT if found else code)))
        self.end_headers()
        self.wfile.write(CONTENT if found else code)

    def log_message(self, *given):
        """Say nothing."""


@pytest.fixture
def object_server():
    with HTTPServer(("127.0.0.1", 0), ObjectRequest) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def there_and_back(store):
    return from_json(json.loads(json.dumps(as_json(store))))


def test_columns_are_read_by_whoever_is_told_where_they_lie(tmp_path):
    with (tmp_path / "0.parquet").open("wb") as target:
        writer = ColumnsWriter(target)
        writer.write(pool_rows(["a", "b"], None))
        writer.close()
    digest = hashlib.sha256((tmp_path / "0.parquet").read_bytes()).hexdigest()
    reader = FileReader(**json.loads(json.dumps(asdict(columns_in(Folder(str(tmp_path)))))))
    file = PoolFile(0, "0.parquet", digest, 0, 2)
    (batch,) = reader.ready()(file, False)
    assert batch.to_pylist() == [{"text": "a"}, {"text": "b"}]
    assert reader.needs == ""
    # Nobody has to look.
    reader.see(PoolFile(0, "gone", digest, 0, 2))
    assert str(tmp_path) not in repr(reader)


def test_a_folder(tmp_path):
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "0.parquet").write_bytes(CONTENT)
    store = there_and_back(Folder(str(tmp_path)))
    assert store == Folder(str(tmp_path))
    assert store.content("datasets/0.parquet") == CONTENT
    with pytest.raises(FileNotFoundError):
        store.content("datasets/1.parquet")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_bucket_with_the_key_of_whoever_asks(object_server, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "executor")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "never sent")
    address = f"http://127.0.0.1:{object_server.server_port}"
    given = Bucket("pools", "site", address, "eu-central-1", "path")
    store = there_and_back(given)
    assert store == given
    assert store.content("datasets/1/0.parquet") == CONTENT
    with pytest.raises(FileNotFoundError):
        store.content("datasets/1/gone.parquet")
    (path, authorization), _ = object_server.asked
    assert path == "/pools/site/datasets/1/0.parquet"
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=executor/")
    assert "never sent" not in authorization + json.dumps(as_json(store))
