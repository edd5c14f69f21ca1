import hashlib
import resource
import tracemalloc

import numpy as np
import pytest

from learner.errors import ArtifactCorrupt
from learner.features.matrix import MatrixWriter, open_matrix, write_matrix


def batches(seed=1, sizes=(3, 0, 5, 1), dimension=4):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, dimension)).astype(np.float32) for size in sizes]


def test_written_in_batches_and_read_as_one(tmp_path):
    parts = batches()
    written = write_matrix(tmp_path / "x.npy", iter(parts), dimension=4)
    assert (written.rows, written.dimension) == (9, 4)
    assert written.sha256 == hashlib.sha256((tmp_path / "x.npy").read_bytes()).hexdigest()
    mapped = open_matrix(written.path, sha256=written.sha256)
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    np.testing.assert_array_equal(mapped, np.concatenate(parts))
    np.testing.assert_array_equal(np.load(written.path), np.concatenate(parts))


def test_bytes_depend_on_the_rows_alone(tmp_path):
    parts = batches()
    first = write_matrix(tmp_path / "a.npy", parts, dimension=4)
    second = write_matrix(tmp_path / "b.npy", [np.concatenate(parts)], dimension=4)
    assert first.sha256 == second.sha256


def test_row_numbers_are_handed_out_in_order(tmp_path):
    with MatrixWriter(tmp_path / "x.npy", dimension=4) as writer:
        assert [writer.append(part) for part in batches()] == [0, 3, 3, 8]
    assert writer.finished.rows == 9


@pytest.mark.parametrize("rows", [100, 100_000])
def test_a_full_disk_leaves_nothing(tmp_path, rows):
    """Of few rows it shows when the file is closed, of many while they are written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_matrix(tmp_path / "x.npy", [np.zeros((rows, 4), dtype=np.float32)], dimension=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_stream_leaves_nothing_and_keeps_what_was_there(tmp_path):
    path = tmp_path / "x.npy"
    before = write_matrix(path, batches(), dimension=4)

    def broken():
        yield batches()[0]
        raise RuntimeError("source ended early")

    with pytest.raises(RuntimeError, match="source ended early"):
        write_matrix(path, broken(), dimension=4)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.npy"]
    assert open_matrix(path, sha256=before.sha256).shape == (9, 4)


@pytest.mark.parametrize("position", [0, 70, -1])
def test_a_changed_byte_is_noticed(tmp_path, position):
    written = write_matrix(tmp_path / "x.npy", batches(), dimension=4)
    content = bytearray(written.path.read_bytes())
    content[position] ^= 1
    written.path.write_bytes(content)
    with pytest.raises(ArtifactCorrupt, match="digest"):
        open_matrix(written.path, sha256=written.sha256)


@pytest.mark.parametrize("spoil", [lambda content: content[:-1], lambda content: content + b"x", lambda content: b"x"])
def test_an_incomplete_file_is_refused_even_without_a_digest(tmp_path, spoil):
    written = write_matrix(tmp_path / "x.npy", batches(), dimension=4)
    written.path.write_bytes(spoil(written.path.read_bytes()))
    with pytest.raises(ArtifactCorrupt):
        open_matrix(written.path)


def test_memory_stays_at_one_batch(tmp_path):
    batch = np.ones((20_000, 16), dtype=np.float32)
    tracemalloc.start()
    write_matrix(tmp_path / "x.npy", (batch for _ in range(30)), dimension=16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < batch.nbytes / 2
