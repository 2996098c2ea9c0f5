"""A compact model small enough for tests: random weights, our own vocabulary, exported as the real one is."""

from __future__ import annotations

import json
import math
import string
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

SIGNS = [
    "[PAD]",
    *(f"[unused{number}]" for number in range(99)),
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
]
CHARACTERS = string.ascii_lowercase + string.digits
WORDS = """who when what which where how many wrote played plays the in of a film novel book dune everest first was by
climbed is it directed made released 1984 2021 1953 1978 david lynch denis villeneuve frank herbert edmund hillary
winter mountain oxygen without and on , . ? ' ( ) -""".split()
VOCABULARY = [*SIGNS, *CHARACTERS, *(f"##{character}" for character in CHARACTERS), *WORDS]


def tiny_net(seed: int = 0) -> tuple[Any, Any]:
    """A torch model and its shape, with weights large enough for its outputs to differ."""
    import torch

    from whichsense.models.compact.nets import CompactConfig, CompactNet

    torch.manual_seed(seed)
    shape = CompactConfig(
        vocabulary=len(VOCABULARY), width=48, heads=4, inner=96, positions=256, layers=4, early=2
    )
    net = CompactNet(shape).eval()
    for name, parameter in net.named_parameters():
        if name.endswith(".scale"):
            parameter.data.fill_(math.log(0.03))
        elif parameter.ndim > 1:
            parameter.data.normal_(0, 0.2)
        elif "norm" not in name:
            parameter.data.normal_(0, 0.1)
    return net, shape


def tiny_writer(words: Any, seed: int = 0) -> Any:
    """A writer in torch for these word vectors."""
    import torch

    from whichsense.models.compact.nets import CompactConfig, WriterNet

    torch.manual_seed(seed)
    net = WriterNet(
        CompactConfig(len(VOCABULARY), width=48, heads=4, inner=96, layers=2), words
    ).eval()
    for name, parameter in net.named_parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 0.2)
        elif "norm" not in name:
            parameter.data.normal_(0, 0.1)
    net.out_bias.data[SIGNS.index("[SEP]")] = 4.0  # a random model would seldom come to an end
    return net


def weights_of(net: Any) -> dict[str, Any]:
    return {name: value.numpy() for name, value in net.state_dict().items()}


def exported(folder: Path, *, int8: bool = True, seed: int = 0, for_people: bool = False) -> Path:
    """The tiny model in a folder, as the runtime reads it; `for_people`: with a verifier."""
    from whichsense.models.compact.export import export

    net, shape = tiny_net(seed)
    writer = tiny_writer(net.encoder.words.weight.detach(), seed)
    weights = weights_of(net) | {
        f"writer.{name}": value for name, value in weights_of(writer).items()
    }
    if for_people:
        verifier, _ = tiny_net(seed + 1)
        for name, value in weights_of(verifier).items():
            weights[f"verifier.{name}"] = value
    sizes = asdict(shape) | {"writer_layers": 2}
    export(weights, sizes, VOCABULARY, folder, int8=int8, settings={"name": "tiny"})
    return folder


def scored(folder: Path, **settings: float) -> Path:
    """A scorer beside the model: an answer is as probable as its mass and support say, every question answerable."""
    import numpy as np

    from whichsense.models.compact.scorer import Judge, Net, Scorer

    def net(bias: float, **weights: float) -> Net:
        flat = (np.zeros(len(weights), dtype=np.float32), np.ones(len(weights), dtype=np.float32))
        return Net(tuple(weights), *flat, np.array(list(weights.values()), dtype=np.float32), bias)

    judge = Judge(net(1.0, mass=0.2, support=0.05), net(0.0, ambiguity=1.0))
    scorer = Scorer(net(4.0, null=0.0), net(0.0, titles=0.0), judge, judge)
    rescored(scorer, **settings).save(folder / "scorer.json")
    return folder


def rescored(scorer: Any, **settings: float) -> Any:
    """A scorer with other settings, of its own or of both its judges."""
    own = {name: value for name, value in settings.items() if hasattr(scorer, name)}
    judges = {name: value for name, value in settings.items() if name not in own}
    both = {name: replace(getattr(scorer, name), **judges) for name in ("in_large", "in_small")}
    return replace(scorer, **own, **both)


def trust_of(*, true: float = 0.0, **standard: Any) -> Any:
    """Trust by which every rewrite has these log odds to be true and may be fluent, and one standard for corpora of all
    sizes."""
    from whichsense.models.compact.scorer import Standard, Trust, linear

    own = Standard(**standard)
    return Trust(own, own, true=replace(linear(), bias=true), fluent=linear())


def trusted(folder: Path, **settings: Any) -> Path:
    """Trust beside the model."""
    trust_of(**settings).save(folder / "trust.json")
    return folder


def changed_config(folder: Path, **settings: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def tiny_tagger(seed: int = 0) -> Any:
    """A tagger in torch whose every token may be of an answer and of a label."""
    import torch

    from whichsense.models.compact.nets import CompactConfig, TagNet

    torch.manual_seed(seed)
    shape = CompactConfig(
        vocabulary=len(VOCABULARY),
        width=48,
        heads=4,
        inner=96,
        positions=256,
        layers=2,
        early=0,
        buckets=8,
    )
    net = TagNet(shape).eval()
    for name, parameter in net.named_parameters():
        if name.endswith(".scale"):
            parameter.data.fill_(math.log(0.03))
        elif parameter.ndim > 1:
            parameter.data.normal_(0, 0.2)
    net.tag.bias.data.copy_(torch.tensor([1.0, 1.0, 4.0]))
    return net


def tagged(folder: Path, *, int8: bool = True, seed: int = 0) -> Path:
    """A tagger with random weights beside the model."""
    from whichsense.lab.compact.tag_task import export_tagger, save_tagger

    save_tagger(tiny_tagger(seed), folder)
    export_tagger(folder, folder, int8=int8)
    return folder
