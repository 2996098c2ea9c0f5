"""Decoder-only models: the network computes what transformers computes; inputs, files and bases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from seq2seq_models import batch, sequences

from whichsense.errors import BadInput
from whichsense.lab.train.tiny import bart, byte_level, located
from whichsense.models.bases import load_base, load_config, load_tokenizer
from whichsense.models.seq2seq import generator as generator_module
from whichsense.models.seq2seq.decoding import Search, run_search
from whichsense.models.seq2seq.formats import (
    SEPARATOR,
    Codec,
    InputForm,
    composed,
    plain,
    rewriter_parts,
)
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.network import CausalNetwork, Network, network_of
from whichsense.models.seq2seq.ragged import IGNORED, shift_labels
from whichsense.testing import passage_hit

LENGTHS = [[5], [17], [2]]
FORM = InputForm(fusion=False, input_tokens=40, output_tokens=8)


def tiny(kind: str) -> Any:
    """Weights large enough that outputs differ between inputs; Qwen has biases where Llama has none."""
    torch.manual_seed(7)
    sizes: dict[str, Any] = {
        "vocab_size": 60, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2,
        "pad_token_id": 0, "tie_word_embeddings": kind == "llama",
    }  # fmt: skip
    config = (
        transformers.LlamaConfig(**sizes) if kind == "llama" else transformers.Qwen2Config(**sizes)
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    return model.eval()


def targets() -> Any:
    labels = torch.randint(4, 60, (3, 6), generator=torch.Generator().manual_seed(1))
    labels[1, 4:] = IGNORED
    return labels


def alone(model: Any, question: list[int], label: Any) -> Any:
    """The scores of one question's labels by transformers: nothing is padded, nothing is cached."""
    said = [token for token in label.tolist() if token != IGNORED]
    with torch.inference_mode():
        ids = torch.tensor([[*question, model.config.bos_token_id, *said[:-1]]])
        return model(input_ids=ids).logits[0, len(question) :]


def remembered(network: Network, inputs: list[list[list[int]]]) -> tuple[Any, Any]:
    layers, made = (network.layers(torch.float32), batch(inputs, targets()[: len(inputs)]))
    with torch.inference_mode():
        return layers, network.remember(
            network.encode(made.ids, made.passages, layers), made.questions, layers
        )


@pytest.mark.parametrize("kind", ["llama", "qwen"])
@pytest.mark.parametrize("lengths", [LENGTHS, [[6], [6]]], ids=["ragged", "full"])
def test_the_loss_is_that_of_the_output_alone(kind: str, lengths: list[list[int]]) -> None:
    model, inputs = tiny(kind), sequences(lengths)
    labels = targets()[: len(lengths)]
    made = batch(inputs, labels)._replace(weights=torch.rand(labels.shape))
    losses = []
    for row, (question,) in enumerate(inputs):
        own = labels[row][labels[row] != IGNORED]
        scores = alone(model, question, labels[row])
        losses.append(
            torch.nn.functional.cross_entropy(scores, own, reduction="none")
            * made.weights[row][: len(own)]
        )
    theirs = torch.cat(losses)
    with torch.inference_mode():
        assert network_of(model)(made).item() == pytest.approx(theirs.mean().item(), abs=1e-5)


@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_steps_over_caches_equal_all_places_at_once(kind: str) -> None:
    model, inputs, labels = tiny(kind), sequences(LENGTHS), targets()
    network = network_of(model).eval()
    assert isinstance(network, CausalNetwork)
    layers, memory = remembered(network, inputs)
    shifted, caches = (shift_labels(labels, network.signs), network.caches(3, 8, torch.float32))
    whole = [
        alone(model, question, label) for (question,), label in zip(inputs, labels, strict=True)
    ]
    with torch.inference_mode():
        for place in range(6):
            step = network.step(shifted[:, place], torch.tensor([place]), caches, memory, layers)
            for row, scores in enumerate(whole):
                if place < len(scores):
                    assert (step[row] - scores[place]).abs().max() < 1e-4


@pytest.mark.parametrize("kind", ["llama", "qwen"])
@pytest.mark.parametrize("beams", [1, 3])
def test_search_finds_what_generate_finds(kind: str, beams: int) -> None:
    """Batched, with one memory for all beams; transformers' own search reads the questions one by one."""
    model, inputs = tiny(kind), sequences(LENGTHS)
    network = network_of(model).eval()
    found = run_search(network, *remembered(network, inputs), Search(beams, 9))
    for (question,), own in zip(inputs, found, strict=True):
        ids = torch.tensor([[*question, model.config.bos_token_id]])
        with torch.inference_mode():
            row = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                num_beams=beams,
                do_sample=False,
                max_new_tokens=9,
            )
        tail = row[0, ids.shape[1] :].tolist()
        tail = tail[: tail.index(2)] if 2 in tail else tail
        assert own[0].tokens == [token for token in tail if token != 0]
        single = run_search(network, *remembered(network, [[question]]), Search(beams, 9))[0]
        assert [one.tokens for one in single] == [one.tokens for one in own]
        assert [one.score for one in single] == pytest.approx([one.score for one in own], abs=1e-4)


def test_gradients_reach_every_weight_and_compiling_is_asked_of_the_forward_pass() -> None:
    network = network_of(tiny("llama")).train()
    network(batch(sequences(LENGTHS), targets())).backward()
    assert all(
        parameter.grad is not None and parameter.grad.abs().sum() > 0
        for parameter in network.parameters()
    )
    assert set(network.state_dict()) == {f"model.{name}" for name in network.model.state_dict()}


def test_a_given_output_is_scored_as_it_would_be_read() -> None:
    base = located("tiny-llama")
    codec = generator_module.load_codec(base, FORM)
    generator = Generator.of(
        network_of(generator_module.load_model(base, codec)).eval(), codec, FORM
    )
    inputs = [
        composed(codec, FORM, ["Who won?"], [passage_hit("Ann won.", "Race")]),
        [codec.ids("Who?")],
    ]
    answers = [
        [codec.target([one], 8) for one in ("Ann", "the other one")],
        [codec.target(["Bob"], 8)],
    ]
    found = generator.score(inputs, answers)
    network = generator.network
    for question, several, scores in zip(inputs, answers, found, strict=True):
        for target, score in zip(several, scores, strict=True):
            ids = torch.tensor([[*question[0], network.signs.start, *target[:-1]]])
            with torch.inference_mode():
                theirs = network.model(input_ids=ids).logits[0, len(question[0]) :].log_softmax(-1)
            own = theirs.gather(1, torch.tensor(target)[:, None]).sum()
            assert score == pytest.approx(own.item(), abs=1e-3)


def made_codec() -> Codec:
    texts = ["Ann won the race in 2012.", "Bob won it in 2013.", "Who won the race?", "Race: \n"]
    tokenizer = byte_level(texts, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    return Codec(tokenizer, "causal")


def test_the_question_comes_last_and_is_never_cut() -> None:
    codec = made_codec()
    hits = [
        passage_hit("Ann won the race in 2012.", "Race"),
        passage_hit("Bob won it in 2013.", "Second race"),
    ]
    parts = rewriter_parts("Who won the race?", "Ann", ["Bob"])
    form = InputForm(fusion=False)
    whole = composed(codec, form, parts, hits)[0]
    lead = "Ann<SEP>Who won the race?<SEP>Bob"
    assert (
        codec.tokenizer.decode(whole)
        == f"Race: Ann won the race in 2012.\nSecond race: Bob won it in 2013.\n{lead}"
    )
    for room in (len(whole) - 1, len(whole) - 9, len(codec.ids(lead)) + 2):
        cut = composed(codec, InputForm(fusion=False, input_tokens=room), parts, hits)[0]
        assert len(cut) <= room and codec.tokenizer.decode(cut).endswith(lead)
    assert codec.tokenizer.decode(plain(codec, "Who won the race?", 99)[0]) == "Who won the race?"


def test_evidence_around_the_answer_comes_first() -> None:
    codec = made_codec()
    texts = {"Race": "Ann won the race in 2012.", "Second race": "They say Bob won it in 2013."}
    hits = [passage_hit(text, title) for title, text in texts.items()]
    form = InputForm(fusion=False, around=1)
    found = codec.tokenizer.decode(composed(codec, form, ["Who won?"], hits, "Bob")[0])
    assert found == "Second race: say Bob won\nRace: Ann won\nWho won?"


def test_a_model_that_starts_its_inputs_with_a_sign_gets_it() -> None:
    codec = made_codec()
    assert codec.start == []
    tokenizers = pytest.importorskip("tokenizers")
    codec.tokenizer.backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", codec.tokenizer.bos_token_id)]
    )
    started = Codec(codec.tokenizer, "causal")
    assert composed(started, FORM, ["Who?"], [])[0] == [
        codec.tokenizer.bos_token_id,
        *started.ids("Who?"),
    ]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    base = located("tiny-llama")
    with pytest.raises(BadInput, match=r"form\.fusion = false"):
        generator_module.load_codec(base, InputForm())
    with pytest.raises(BadInput, match="positions for 1024"):
        generator_module.load_codec(
            base, InputForm(fusion=False, input_tokens=1000, output_tokens=40)
        )
    with pytest.raises(BadInput, match="is a 'bert' model"):
        generator_module.load_codec(located("tiny-bert"), FORM)
    bart(tmp_path, ["some text"])
    codec = generator_module.load_codec(tmp_path, FORM)
    assert not isinstance(network_of(generator_module.load_model(tmp_path, codec)), CausalNetwork)


def test_one_end_and_a_round_number_of_rows(tmp_path: Path) -> None:
    """Llama 3 names several ends and no padding."""
    base = Path(located("tiny-llama"))
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    model.config.eos_token_id, model.config.pad_token_id = [2, 3], None
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = ([2, 3], None)
    model.save_pretrained(tmp_path)
    load_tokenizer(base).save_pretrained(tmp_path)
    codec = generator_module.load_codec(tmp_path, FORM)
    found = generator_module.load_model(tmp_path, codec)
    assert network_of(found).signs == (0, 2, 2)
    rows = found.get_input_embeddings().weight.shape[0]
    assert rows % 64 == 0 and rows > codec.separator


def test_gguf_files_are_bases(tmp_path: Path) -> None:
    """A file of llama.cpp, written here with its own package, loads as the same model, and is saved as any other."""
    gguf = pytest.importorskip("gguf", reason="needs pip install 'whichsense[gguf]'")
    path = written(gguf, tiny("llama"), tmp_path / "tiny.gguf")
    theirs, ours = tiny("llama"), load_base(path, "AutoModelForCausalLM")
    assert load_config(path).model_type == "llama"
    ids = torch.tensor([[5, 9, 11, 4]])
    with torch.inference_mode():
        assert (ours(input_ids=ids).logits - theirs(input_ids=ids).logits).abs().max() < 1e-3
    ours.save_pretrained(tmp_path / "saved")
    again = load_base(tmp_path / "saved", "AutoModelForCausalLM")
    assert all(
        torch.equal(one, two)
        for one, two in zip(ours.parameters(), again.parameters(), strict=True)
    )


def written(gguf: Any, model: Any, path: Path) -> Path:
    """llama.cpp's layout: its own names, and queries and keys with the halves of each head interleaved."""
    config, weights = model.config, model.state_dict()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "ffn_norm"}  # fmt: skip
    writer.add_tensor("token_embd.weight", weights["model.embed_tokens.weight"].numpy())
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"].numpy())
    for layer in range(config.num_hidden_layers):
        for theirs, own in names.items():
            weight = weights[f"model.layers.{layer}.{theirs}.weight"]
            if own in ("attn_q", "attn_k"):
                heads = (
                    config.num_attention_heads if own == "attn_q" else config.num_key_value_heads
                )
                halves = weight.view(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
                weight = halves.transpose(1, 2).reshape(weight.shape)
            writer.add_tensor(f"blk.{layer}.{own}.weight", weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
