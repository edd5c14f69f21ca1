import json

import numpy as np
import pytest

from learner.features.base import featurizer_from_json
from learner.features.image import ImageFeaturizer
from learner.features.principal import COMPONENT_STEP, PrincipalImageFeaturizer, principal_directions

PIXELS = ImageFeaturizer(7, 5, pooled=(3, 2), centered=True)
IMAGES = np.random.default_rng(3).integers(0, 256, size=(6, 7, 5), dtype=np.uint8)


def with_directions(n_components=2, norm_bound=1.0):
    moments = np.cov(np.random.default_rng(1).normal(size=(6, 50)))
    found = principal_directions(moments, n_components)
    return PrincipalImageFeaturizer(PIXELS, n_components, found, norm_bound)


def test_directions_are_the_leading_eigenvectors():
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    moments = basis @ np.diag([9.0, 5.0, 3.0, 1.0, 0.5, -2.0]) @ basis.T
    found = principal_directions(moments, 3)
    for place in range(3):
        assert abs(found[place] @ basis[:, place]) == pytest.approx(1, abs=1e-5)
        assert found[place].max() == np.abs(found[place]).max()
    assert (found / COMPONENT_STEP == np.rint(found / COMPONENT_STEP)).all()


def test_rows_keep_the_bound_and_their_own_record():
    featurizer = with_directions(norm_bound=0.8)
    rows = featurizer.transform(IMAGES)
    assert rows.shape == (6, 2)
    assert np.linalg.norm(rows.astype(np.float64), axis=1).max() <= 0.8
    apart = np.concatenate([featurizer.transform(IMAGES[i : i + 1]) for i in range(6)])
    np.testing.assert_allclose(rows, apart, rtol=1e-6)


def test_json_holds_the_directions():
    featurizer = with_directions()
    again = featurizer_from_json(featurizer.to_json())
    assert again == featurizer
    assert json.loads(featurizer.to_json())["kind"] == "principal_image"
    np.testing.assert_array_equal(again.transform(IMAGES), featurizer.transform(IMAGES))


def test_nothing_is_featurised_before_the_directions_are_paid_for():
    waiting = PrincipalImageFeaturizer(PIXELS, 2)
    assert waiting.dimension == 2
    with pytest.raises(ValueError, match="not released yet"):
        waiting.transform(IMAGES)
