import io
import zipfile

import numpy as np
import pytest
from django.core.files.base import ContentFile
from PIL import Image
from sklearn.linear_model import LogisticRegression

from annotation.data.services import datasets
from annotation.data.services.forgetting import black_out_pixels
from annotation.errors import ConfigurationFrozen
from annotation.models import Dataset, Record
from annotation.projects.services.configuring import configure_project
from learner.pools import features
from learner.pools.configuration import featurizer_of
from tests import learning
from tests.factories import make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]
# Of one brightness, as PNG and JPEG reckon it.
HUES = {"tool": (196, 0, 0), "fruit": (0, 100, 0)}
CLASSES = [*HUES]
KINDS = (("png", "PNG", {}), ("jpg", "JPEG", {"quality": 95, "subsampling": 0}))


def opened(**settings):
    return learning.open_images(
        make_user(), classes=CLASSES, image_height=8, image_width=8, **{"feature_dimension": 40} | settings
    )


def uploaded(project, *, seed, number=80, role="public_test"):
    rng = np.random.default_rng(seed)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as target:
        for place in range(number):
            name = CLASSES[rng.integers(2)]
            shades = np.kron(rng.uniform(0.3, 1, size=(8, 8)), np.ones((2, 2)))
            image = Image.fromarray(np.rint(shades[..., None] * HUES[name]).astype(np.uint8))
            ending, kind, options = KINDS[place % 2]
            with target.open(f"{name}/{place}.{ending}", "w") as file:
                image.save(file, kind, **options)
    dataset = receive_upload(project=project, file=ContentFile(sink.getvalue()), name="a.zip", role=role, send=False)
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.get(pk=dataset.pk)


def accuracy(project):
    dataset = uploaded(project, seed=1)
    X = np.asarray(features.open_features(dataset)[:])
    assert np.linalg.norm(X.astype(np.float64), axis=1).max() <= featurizer_of(project).norm_bound
    y = np.array(Record.objects.filter(dataset=dataset).order_by("row_number").values_list("label", flat=True))
    return LogisticRegression(C=10).fit(X[::2], y[::2]).score(X[1::2], y[1::2])


def test_hue_is_learned_in_colour_and_not_in_grey():
    assert abs(accuracy(opened()) - 0.5) <= 0.2
    assert accuracy(opened(image_colours="colour")) == 1.0


def test_an_emptied_slot_is_black_in_every_colour():
    dataset = uploaded(opened(image_colours="colour"), seed=4, number=6)
    Record.objects.filter(dataset=dataset, row_number=2).update(emptied=True, label=None, metadata=None)
    black_out_pixels(dataset)
    stored = np.load(dataset.pixels.path)
    assert [image.any() for image in stored] == [True, True, False, True, True, True]


def test_what_was_read_in_grey_is_never_taken_for_colour():
    project = opened()
    configure_project(project=project, changes={"image_colours": "colour"}, actor=make_user())
    project.refresh_from_db()
    configure_project(project=project, changes={"image_colours": "grey"}, actor=make_user())
    project.refresh_from_db()
    uploaded(project, seed=5, number=4)
    with pytest.raises(ConfigurationFrozen, match="image_colours"):
        configure_project(project=project, changes={"image_colours": "colour"}, actor=make_user())
    assert project.settings["image_colours"] == "grey"
