import hashlib

import numpy as np
import pytest

from dpal.features.images import sign_matrix
from learner.features.image import ImageFeaturizer

SIGNS_OF_SEED_1 = [[-1, 1, -1, -1, 1, 1, -1, 1], [-1, 1, 1, -1, -1, 1, 1, 1]]


def test_pooling_equals_block_means_where_sizes_divide():
    images = np.random.default_rng(1).integers(0, 256, size=(4, 8, 6), dtype=np.uint8)
    featurizer = ImageFeaturizer(8, 6, pooled=(4, 2), row_scaling="bounded")
    means = images.reshape(4, 4, 2, 2, 3).mean(axis=(2, 4)).reshape(4, 8) / 255 / np.sqrt(8)
    np.testing.assert_allclose(featurizer.transform(images), means, rtol=1e-6)


def test_projection_keeps_lengths_on_average():
    rows = np.random.default_rng(2).normal(size=(200, 50))
    projected = rows @ sign_matrix(50, 400, seed=3) / np.sqrt(400)
    ratio = (np.linalg.norm(projected, axis=1) / np.linalg.norm(rows, axis=1)).mean()
    assert abs(ratio - 1) < 0.02


def test_sign_matrix_never_changes():
    """Published models depend on these very signs."""
    assert sign_matrix(2, 8, seed=1).tolist() == SIGNS_OF_SEED_1
    assert not np.array_equal(sign_matrix(16, 8, seed=1), sign_matrix(16, 8, seed=2))


def test_grey_rows_and_versions_are_those_of_before_there_was_colour():
    """Feature files are found by their version and must be read again after an upgrade."""
    images = np.random.default_rng(1).integers(0, 256, size=(4, 8, 6), dtype=np.uint8)
    for featurizer, version, digest in (
        (ImageFeaturizer(8, 6, pooled=(4, 2), centered=True), "image-658b743fc5f6a4a2", "d58741b0f11387b1"),
        (ImageFeaturizer(8, 6, projection=(5, 0), centered=True), "image-8161e61612deb440", "a0ebb8386ee20114"),
    ):
        assert featurizer.version == version
        assert hashlib.sha256(featurizer.transform(images).tobytes()).hexdigest()[:16] == digest


def test_brightness_and_both_differences_are_averaged_and_count_by_their_areas():
    images = np.random.default_rng(5).integers(0, 256, size=(4, 8, 6, 3), dtype=np.uint8)
    featurizer = ImageFeaturizer(8, 6, pooled=(4, 2), row_scaling="bounded", hues=(2, 1))
    red, green, blue = np.moveaxis(images / 255, 3, 0)
    bright = ((red + green + blue) / np.sqrt(3)).reshape(4, 4, 2, 2, 3).mean(axis=(2, 4)).reshape(4, 8)
    hues = [
        difference.reshape(4, 2, 4, 6).mean(axis=(2, 3)) * np.sqrt(8 / 2)
        for difference in ((red - green) / np.sqrt(2), (red + green - 2 * blue) / np.sqrt(6))
    ]
    wanted = np.hstack([bright, *hues]) / np.sqrt(3 * 8)
    np.testing.assert_allclose(featurizer.transform(images), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("hues", [(1, 1), (3, 2), (8, 6)])
def test_no_image_in_colour_is_longer_than_declared(hues):
    featurizer = ImageFeaturizer(8, 6, pooled=(4, 3), row_scaling="bounded", hues=hues)
    corners = np.array([[place >> bit & 1 for bit in range(3)] for place in range(8)], dtype=np.uint8) * 255
    even = np.broadcast_to(corners[:, None, None], (8, 8, 6, 3))
    mixed = corners[np.random.default_rng(6).integers(0, 8, size=(500, 8, 6))]
    lengths = np.linalg.norm(featurizer.raw_rows(np.concatenate([even, mixed])), axis=1)
    assert lengths.max() == pytest.approx(1)


def test_an_even_surface_keeps_its_hue_and_none_of_its_brightness():
    featurizer = ImageFeaturizer(4, 4, pooled=(2, 2), centered=True, hues=(1, 1))
    images = np.full((3, 4, 4, 3), 60, dtype=np.uint8)
    images[1, ..., 0] = images[2, ..., 2] = 120
    even, red, blue = featurizer.transform(images)
    assert not even.any()
    assert red @ blue == pytest.approx(-0.5, abs=1e-5)
    np.testing.assert_allclose(featurizer.transform(images + np.uint8(90)), [even, red, blue], atol=1e-6)


def test_edges_are_counted_by_direction_and_cell_however_bright_the_picture():
    images = np.zeros((2, 8, 8), dtype=np.uint8)
    images[0, :4, 2:] = images[1, 2:, :4] = 200  # one edge upright at the top left, one level at the bottom left
    featurizer = ImageFeaturizer(8, 8, pooled=(4, 4), centered=True, edges=(2, 2))
    rows = featurizer.transform(images)
    assert rows.shape == (2, featurizer.dimension) == (2, 16 + 16)
    counted = rows[:, 16:].reshape(2, 4, 2, 2)
    assert np.unravel_index(counted[0].argmax(), (4, 2, 2)) == (0, 0, 0)
    assert np.unravel_index(counted[1].argmax(), (4, 2, 2)) == (1, 0, 0)
    np.testing.assert_allclose(featurizer.transform(images // 2 + np.uint8(20)), rows, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    turned = featurizer.transform(np.rot90(images, axes=(1, 2)))[:, 16:].reshape(2, 4, 2, 2)
    np.testing.assert_allclose(turned[:, 1], np.rot90(counted[:, 0], axes=(1, 2)), atol=1e-6)
    assert not featurizer.transform(np.full((1, 8, 8), 90, dtype=np.uint8)).any()
    assert ImageFeaturizer.from_parameters(featurizer.parameters()).version == featurizer.version


@pytest.mark.parametrize("parameters", [{"projection": (5, 0)}, {"row_scaling": "bounded"}, {"edges": (9, 2)}])
def test_edges_need_unit_rows_of_pixels(parameters):
    with pytest.raises(ValueError, match="edges"):
        ImageFeaturizer(8, 8, **{"edges": (2, 2), **parameters})


@pytest.mark.parametrize(("hues", "shape"), [((1, 1), (1, 3, 3)), (None, (1, 3, 3, 3)), ((1, 1), (1, 3, 3, 4))])
def test_grey_is_no_colour_and_colour_no_grey(hues, shape):
    with pytest.raises(ValueError, match="images as uint8"):
        ImageFeaturizer(3, 3, hues=hues).transform(np.zeros(shape, np.uint8))
