"""Other libraries at the same inner (epsilon, delta): `PEER_PYTHON peers.py ROWS.npz LABELS EPSILON DELTA SEEDS`.

The environment has diffprivlib 0.6.6, scikit-learn 1.7, PyTorch and Opacus. Each peer gets its best setting on the test
records, which flatters it.
"""

import json
import logging
import sys
import warnings

import diffprivlib
import numpy as np
import opacus
import torch
from diffprivlib.models import LogisticRegression
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

STRENGTHS = (0.1, 1.0, 10.0)
LEARNING_RATES = (1.0, 4.0, 16.0)
EPOCHS, BATCHES = 20, 8


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    path, labels, epsilon, delta, seeds = sys.argv[1], *map(float, sys.argv[2:])
    with np.load(path) as held:
        rows, classes, test, truth = (held[name] for name in ("X", "y", "test", "truth"))
        samples = [held[f"sample_{int(labels)}_{seed}"] for seed in range(int(seeds))]
    n_classes = int(max(classes.max(), truth.max())) + 1

    def tried(fit, settings):
        means = {
            setting: [
                float(np.mean(fit(rows[one], classes[one], test, setting, seed) == truth))
                for seed, one in enumerate(samples)
            ]
            for setting in settings
        }
        best = max(means, key=lambda setting: np.mean(means[setting]))
        shares = np.array(means[best])
        error = float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else 0.0
        return {"accuracy": float(shares.mean()), "accuracy_se": error, "setting": best}

    def regression(X, y, held_out, strength, seed):
        if len(np.unique(y)) < 2:
            return np.full(len(held_out), y[0] if len(y) else 0)
        # It divides epsilon over more than two classes by itself.
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0 + 1e-6, C=strength, random_state=seed)
        return model.fit(X.astype(float), y).predict(held_out.astype(float))

    def probe(X, y, held_out, rate, seed):
        torch.manual_seed(seed)
        model = torch.nn.Linear(X.shape[1], n_classes)
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        data = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
        loader = DataLoader(data, batch_size=max(1, len(X) // BATCHES))
        model, optimizer, loader = PrivacyEngine(accountant="prv").make_private_with_epsilon(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate),
            data_loader=loader,
            epochs=EPOCHS,
            target_epsilon=epsilon,
            target_delta=delta,
            max_grad_norm=1.0,
        )
        loss = torch.nn.CrossEntropyLoss()
        for _epoch in range(EPOCHS):
            for batch, wanted in loader:
                if len(batch):
                    optimizer.zero_grad()
                    loss(model(batch), wanted).backward()
                    optimizer.step()
        with torch.no_grad():
            return model(torch.from_numpy(held_out)).argmax(1).numpy()

    found = {f"Opacus {opacus.__version__} linear probe": tried(probe, LEARNING_RATES)}
    if labels * n_classes <= 100_000:
        found[f"diffprivlib {diffprivlib.__version__} logistic regression"] = tried(regression, STRENGTHS)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
