"""A tiny sentence encoder with random weights, in the format of the published ones."""

import json
import math

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WIDTH, INNER, LAYERS, HEADS, LONGEST = 8, 12, 2, 2, 128
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "some", "jazz", "music", "##s", "lights", "off"]
EPSILON = 1e-12


def write_package(root, *, name="tiny_encoder", seed=0):
    """Write an importable package that carries an encoder and return its model folder."""
    folder = root / name / "model"
    folder.mkdir(parents=True)
    (root / name / "__init__.py").write_text("")
    rng = np.random.default_rng(seed)

    def drawn(*shape):
        return rng.normal(size=shape).astype(np.float32)

    weights = {
        "embeddings.position_ids": np.arange(LONGEST)[None],
        "embeddings.word_embeddings.weight": drawn(len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": drawn(LONGEST, WIDTH),
        "embeddings.token_type_embeddings.weight": drawn(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        shapes = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        shapes |= {
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }
        for part, shape in shapes.items():
            weights[f"{layer}.{part}.weight"] = drawn(*shape)
            weights[f"{layer}.{part}.bias"] = drawn(shape[0])
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for norm in norms:
        weights |= {f"{norm}.weight": drawn(WIDTH), f"{norm}.bias": drawn(WIDTH)}
    save_file(weights, folder / "model.safetensors")
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "layer_norm_eps": EPSILON,
    }
    (folder / "config.json").write_text(json.dumps(config))
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=LONGEST)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def reference_vector(weights, tokens):
    """Run the same network in float64, one token and one head at a time."""

    def dense(vector, name):
        return weights[f"{name}.weight"].astype(float) @ vector + weights[f"{name}.bias"]

    def normalised(vector, name):
        centred = vector - vector.mean()
        return centred / math.sqrt((centred**2).mean() + EPSILON) * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    hidden = [
        normalised(
            weights["embeddings.word_embeddings.weight"][token].astype(float)
            + weights["embeddings.position_embeddings.weight"][place]
            + weights["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        for place, token in enumerate(tokens)
    ]
    size = WIDTH // HEADS
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        parts = {
            part: [dense(vector, f"{layer}.attention.self.{part}") for vector in hidden]
            for part in ("query", "key", "value")
        }
        following = []
        for place, vector in enumerate(hidden):
            mixed = np.zeros(WIDTH)
            for head in range(HEADS):
                part = slice(head * size, (head + 1) * size)
                scores = [float(parts["query"][place][part] @ key[part]) / math.sqrt(size) for key in parts["key"]]
                shares = [math.exp(score - max(scores)) for score in scores]
                for share, value in zip(shares, parts["value"], strict=True):
                    mixed[part] += share / sum(shares) * value[part]
            after = normalised(
                vector + dense(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm"
            )
            raised = [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in dense(after, f"{layer}.intermediate.dense")]
            lowered = dense(np.array(raised), f"{layer}.output.dense")
            following.append(normalised(after + lowered, f"{layer}.output.LayerNorm"))
        hidden = following
    return np.mean(hidden, axis=0)
