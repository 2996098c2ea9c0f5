"""The pre-trained BERT that the compact model grows out of: its vocabulary and its shape."""

from __future__ import annotations

from whichsense.errors import BadConfig
from whichsense.models.bases import load_config, load_tokenizer
from whichsense.models.compact.encoder.net import CompactConfig
from whichsense.models.compact.encoder.tokens import BEGIN, END, PAD, UNKNOWN
from whichsense.train.tiny.encoders import located

# The writer marks its prompts with pieces from [unused0] to [unused98].
_REQUIRED_PIECES = {
    PAD: "[PAD]",
    UNKNOWN: "[UNK]",
    BEGIN: "[CLS]",
    END: "[SEP]",
    1: "[unused0]",
    99: "[unused98]",
}


def load_vocabulary(base: str) -> list[str]:
    """The word pieces of a base, by id. Raise BadConfig unless they are BERT's uncased ones."""
    ids: dict[str, int] = load_tokenizer(located(base)).get_vocab()
    vocabulary = sorted(ids, key=ids.__getitem__)
    for place, piece in _REQUIRED_PIECES.items():
        if place >= len(vocabulary) or vocabulary[place] != piece:
            raise BadConfig(
                f"'{base}' does not have BERT's uncased vocabulary, whose unused word pieces are needed here."
            )
    return vocabulary


def encoder_shape(base: str, early: int) -> CompactConfig:
    """The shape of the compact encoder that starts from this BERT; `early` layers read every passage."""
    config = load_config(located(base))
    if config.model_type != "bert":
        raise BadConfig(
            f"model.base is a {config.model_type}; the compact model's encoder is a BERT."
        )
    return CompactConfig(
        vocabulary=config.vocab_size,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        inner=config.intermediate_size,
        positions=config.max_position_embeddings,
        layers=config.num_hidden_layers,
        # At least one layer is left for the best passages.
        early=min(early, config.num_hidden_layers - 1),
        epsilon=config.layer_norm_eps,
    )
