"""Speed of Fusion-in-Decoder: this package's network beside plain transformers on the same random weights.

    python benchmarks/seq2seq.py --out docs/results/seq2seq-benchmark.json      # BART-large, 100 × 160 tokens, a GPU
    python benchmarks/seq2seq.py --tiny --device cpu                            # does it run?

Plain is what one writes first: `BartForConditionalGeneration` with eager attention, `generate` over the encoded and
joined passages, and `model(…, labels=…).loss.backward()`; each at the batch size that serves it best. Training keeps
float32 weights and computes in bfloat16 (autocast), as one trains; plain with pure bfloat16 weights stands beside it.
What its gradients keep of the exact ones is measured too.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from whichsense.lab.fused.fused_layers import FusedNetwork
from whichsense.lab.provenance import provenance
from whichsense.lab.train.loop import to_device
from whichsense.models.bases import quietly
from whichsense.models.seq2seq.decoding import Search
from whichsense.models.seq2seq.formats import InputForm
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import IGNORED, Batch, RaggedRows, shift_labels

LARGE = {
    "vocab_size": 50265,
    "d_model": 1024,
    "layers": 12,
    "heads": 16,
    "ffn": 4096,
    "positions": 1024,
}
TINY = {"vocab_size": 500, "d_model": 64, "layers": 2, "heads": 4, "ffn": 128, "positions": 256}
TARGET = 30  # AmbigQA's longest output


def model(sizes: dict[str, int], device: str, dtype: torch.dtype, dropout: float = 0.1) -> Any:
    """BART of a size, with random weights and bart-large's dropout."""
    config = transformers.BartConfig(
        vocab_size=sizes["vocab_size"],
        d_model=sizes["d_model"],
        encoder_layers=sizes["layers"],
        decoder_layers=sizes["layers"],
        encoder_attention_heads=sizes["heads"],
        decoder_attention_heads=sizes["heads"],
        encoder_ffn_dim=sizes["ffn"],
        decoder_ffn_dim=sizes["ffn"],
        max_position_embeddings=sizes["positions"],
        dropout=dropout,
        attention_dropout=dropout,
        activation_dropout=dropout,
        forced_eos_token_id=None,
    )
    torch.manual_seed(0)
    with torch.device(device):
        made: Any = transformers.BartForConditionalGeneration(config)
    made.set_attn_implementation("eager")
    made.generation_config.forced_eos_token_id = None
    return made.to(dtype)


def questions(
    count: int, lengths: Sequence[Sequence[int]], vocabulary: int
) -> list[list[list[int]]]:
    """Token ids of each question's passages."""
    dice = random.Random(0)
    return [
        [
            [0, *dice.choices(range(4, vocabulary), k=length - 2), 2]
            for length in lengths[number % len(lengths)]
        ]
        for number in range(count)
    ]


def fused(inputs: Sequence[Sequence[Sequence[int]]], vocabulary: int) -> Batch:
    labels = torch.randint(
        4, vocabulary, (len(inputs), TARGET), generator=torch.Generator().manual_seed(1)
    )
    flat = [one for several in inputs for one in several]
    return Batch(
        torch.tensor([token for one in flat for token in one]),
        RaggedRows.of([len(one) for one in flat]),
        RaggedRows.of([sum(map(len, several)) for several in inputs]),
        labels,
    )


def padded(inputs: Sequence[Sequence[Sequence[int]]], length: int) -> tuple[Tensor, Tensor]:
    """Every passage padded to `length`, as both papers' code does: (passages, length) ids and mask."""
    flat = [one for several in inputs for one in several]
    ids = torch.tensor([[*one, *[1] * (length - len(one))] for one in flat])
    return ids, (ids != 1).long()


def _network(made: Any, precision: str, device: str) -> Network:
    """As one trains in that precision: bf16 with our kernels, or as PyTorch's autocast has it."""
    network = FusedNetwork(made).train()
    if precision == "bf16" and device == "cuda":
        network.compile()
    return network


def _cosine(some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    one, other = (torch.cat([part.flatten() for part in parts]) for parts in (some, others))
    return float(torch.cosine_similarity(one.double(), other.double(), dim=0))


class Clock:
    """Runs something until it has taken long enough, and says how often a second."""

    def __init__(self, device: str, seconds: float) -> None:
        self.device, self.seconds = device, seconds

    def rate(self, work: Callable[[], object], examples: int, warm: int = 1) -> dict[str, float]:
        for _ in range(warm):
            work()
        self._wait()
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        times: list[float] = []
        while not times or (sum(times) < self.seconds and len(times) < 20):
            began = time.perf_counter()
            work()
            self._wait()
            times.append(time.perf_counter() - began)
        middle = sorted(times)[len(times) // 2]
        peak = torch.cuda.max_memory_allocated() / 2**30 if self.device == "cuda" else 0.0
        return {
            "per_second": examples / middle,
            "seconds": middle,
            "peak_gib": round(peak, 2),
            "runs": len(times),
        }

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def best(name: str, sizes: Sequence[int], run: Callable[[int], dict[str, float]]) -> dict[str, Any]:
    """The batch size with the highest rate; larger ones are tried until one does not fit or is clearly slower."""
    tried: list[dict[str, float]] = []
    for size in sizes:
        try:
            found = run(size) | {"batch": size}
        except torch.cuda.OutOfMemoryError:
            print(f"{name:34} batch {size:3}  out of memory", flush=True)
            tried.append({"batch": size, "per_second": 0.0, "out_of_memory": 1.0})
            break
        finally:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        print(
            f"{name:34} batch {size:3}  {found['per_second']:8.2f}/s  {found['peak_gib']:6.1f} GiB",
            flush=True,
        )
        slower = bool(tried) and found["per_second"] < 0.9 * tried[-1]["per_second"]
        tried.append(found)
        if slower:
            break
    return {**max(tried, key=lambda one: one["per_second"]), "tried": tried}


def plain_answers(
    made: Any, inputs: Any, length: int, *, beams: int, tokens: int, clock: Clock
) -> dict[str, float]:
    ids, mask = (part.to(made.device) for part in padded(inputs, length))
    count = len(inputs)

    @torch.inference_mode()
    def work() -> object:
        states = made.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        return made.generate(
            encoder_outputs=BaseModelOutput(
                last_hidden_state=states.reshape(count, -1, states.shape[-1])
            ),
            attention_mask=mask.view(count, -1),
            num_beams=beams,
            do_sample=False,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
        )

    return clock.rate(work, count)


def our_answers(
    generator: Generator, inputs: Any, beams: int, tokens: int, clock: Clock
) -> dict[str, float]:
    """All questions in one batch, through the same call that readers make."""
    generator.tokens = sum(len(one) for several in inputs for one in several) * 2
    search = Search(beams, tokens - 1, shortest=tokens)  # the start token is one of them
    return clock.rate(lambda: generator.generate(inputs, search), len(inputs))


def plain_training(
    made: Any, inputs: Any, length: int, vocabulary: int, clock: Clock
) -> dict[str, float]:
    device = made.device
    ids, mask = (part.to(device) for part in padded(inputs, length))
    labels = fused(inputs, vocabulary).labels.to(device)
    count, half = len(inputs), made.dtype == torch.bfloat16
    made.train()

    def work() -> None:
        made.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=not half):
            states = made.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
            joined = BaseModelOutput(last_hidden_state=states.reshape(count, -1, states.shape[-1]))
            loss = made(
                encoder_outputs=joined, attention_mask=mask.view(count, -1), labels=labels
            ).loss
        loss.backward()

    return clock.rate(work, count)


def our_training(network: Network, inputs: Any, vocabulary: int, clock: Clock) -> dict[str, float]:
    device = network.model.device
    batch: Batch = to_device(fused(inputs, vocabulary), device)
    network.train()

    def work() -> None:
        network.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16):
            loss = network(batch)
        loss.backward()

    return clock.rate(work, len(inputs), warm=2)


def agreement(made: Any, inputs: Any, length: int, vocabulary: int) -> float:
    """The largest difference between the two networks' scores of the same targets, over the largest score."""
    device = made.device
    made.eval()
    network = Network(made).eval()
    batch: Batch = to_device(fused(inputs, vocabulary), device)
    ids, mask = (part.to(device) for part in padded(inputs, length))
    with torch.inference_mode():
        states = made.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        joined = BaseModelOutput(
            last_hidden_state=states.reshape(len(inputs), -1, states.shape[-1])
        )
        theirs = made(
            encoder_outputs=joined, attention_mask=mask.view(len(inputs), -1), labels=batch.labels
        ).logits
        memory = network.encode(batch.ids, batch.passages)
        ours = network.logits(memory, batch.questions, shift_labels(batch.labels, network.signs))
    assert not (batch.labels == IGNORED).any()
    return float((ours - theirs).abs().max() / theirs.abs().max())


def real_lengths(passages: int, longest: int, share: float) -> list[list[int]]:
    """Lengths around a share of the longest.

    1,500 of the Wikipedia passages that this project is developed with had, with a question of 12 tokens and in
    BERT's vocabulary, 111 of 160 tokens on average (0.70) and a standard deviation of 35 (0.22).
    """
    dice = random.Random(1)
    return [
        [
            max(8, min(longest, round(dice.gauss(share * longest, 0.22 * longest))))
            for _ in range(passages)
        ]
        for _ in range(16)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--passages", type=int, default=0)
    parser.add_argument("--length", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=20, help="generated for each answer")
    parser.add_argument(
        "--share", type=float, default=0.70, help="mean length of the ragged case, of the longest"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="measured for each figure")
    parser.add_argument("--only", default="", help="some of: answers,training,gradients")
    parser.add_argument("--case", default="", help="of the answers: greedy, beam4, beam4_ragged")
    parser.add_argument(
        "--profile", action="store_true", help="print where a training step's time goes"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    quietly(transformers)
    bench = Bench(options)
    for name in ("answers", "training", "gradients"):
        if not options.only or name in options.only.split(","):
            try:
                getattr(bench, name)()
            except Exception:  # the other part's figures are worth having
                traceback.print_exc()
            bench.write()


class Bench:
    """The figures of a run, written even if a later part fails."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.sizes = options, TINY if options.tiny else LARGE
        self.passages = options.passages or (4 if options.tiny else 100)
        self.length = options.length or (24 if options.tiny else 160)
        self.clock = Clock(options.device, options.seconds)
        self.few = options.tiny
        self.full = [[self.length] * self.passages]
        self.ragged = real_lengths(self.passages, self.length, options.share)
        self.found: dict[str, Any] = {}

    def _inputs(self, count: int, lengths: Sequence[Sequence[int]]) -> list[list[list[int]]]:
        return questions(count, lengths, self.sizes["vocab_size"])

    def answers(self) -> None:
        options = self.options
        made = model(self.sizes, options.device, torch.bfloat16).eval()
        self.found["agreement_bf16"] = agreement(
            made, self._inputs(1, self.full), self.length, self.sizes["vocab_size"]
        )
        print(f"largest difference of scores, bf16: {self.found['agreement_bf16']:.4f}", flush=True)
        form = InputForm(passages=self.passages)
        ours = Generator.of(Network(made).eval(), _NoCodec(), form)  # type: ignore[arg-type]
        for name, beams, lengths in (
            ("greedy", 1, self.full),
            ("beam4", 4, self.full),
            ("beam4_ragged", 4, self.ragged),
        ):
            if options.case and name not in options.case.split(","):
                continue
            sizes = [1, 2] if self.few else [16, 32]
            own = best(
                f"answers, {name}, ours", sizes,
                lambda n, b=beams, at=lengths: our_answers(ours, self._inputs(n, at), b, options.tokens, self.clock),  # type: ignore[misc]
            )  # fmt: skip
            sizes = [1, 2] if self.few else ([8, 32] if beams == 1 else [4, 12])
            plain = best(
                f"answers, {name}, plain", sizes,
                lambda n, b=beams, at=lengths: plain_answers(  # type: ignore[misc]
                    made, self._inputs(n, at), self.length, beams=b, tokens=options.tokens, clock=self.clock
                ),
            )  # fmt: skip
            self._note(f"answers_{name}", own, plain)

    def training(self) -> None:
        vocabulary, device = self.sizes["vocab_size"], self.options.device
        made = model(self.sizes, device, torch.float32)
        networks = {"bf16": _network(made, "bf16", device)}
        sizes, own_sizes = (
            ([1, 2], [2]) if self.few else ([4, 8], [8, 16])
        )  # 16 are too many for plain's memory
        for name, lengths in (("training", self.full), ("training_ragged", self.ragged)):
            plain = best(
                f"{name}, plain", sizes,
                lambda n, at=lengths: plain_training(made, self._inputs(n, at), self.length, vocabulary, self.clock),  # type: ignore[misc]
            )  # fmt: skip
            for precision, network in networks.items():
                own = best(
                    f"{name}, {precision}", own_sizes,
                    lambda n, at=lengths, net=network: our_training(net, self._inputs(n, at), vocabulary, self.clock),  # type: ignore[misc]
                )  # fmt: skip
                self._note(f"{name}_{precision}", own, plain)
                if self.options.profile and lengths is self.full:
                    self._profile(network, sizes[-1])
        half = made.to(torch.bfloat16)
        pure = best(
            "training, plain, bf16 weights", sizes,
            lambda n: plain_training(half, self._inputs(n, self.full), self.length, vocabulary, self.clock),
        )  # fmt: skip
        self._note("training_plain_bf16_weights", self.found["training_bf16"]["ours"], pure)

    def gradients(self) -> None:
        """How much of the exact gradient each way of computing keeps, without dropout: cosines with float32's."""
        sizes, device = (
            {**self.sizes, "layers": min(6, self.sizes["layers"])},
            self.options.device,
        )
        made = model(sizes, device, torch.float32, dropout=0.0)
        inputs = self._inputs(2, [lengths[:20] for lengths in self.ragged])
        batch: Batch = to_device(fused(inputs, sizes["vocab_size"]), made.device)
        exact: dict[str, Tensor] = {}
        for name in ("float32", "autocast", "bf16"):
            network = _network(made, name, device)
            with torch.autocast(device, torch.bfloat16, enabled=name != "float32"):
                loss = network(batch)
            loss.backward()
            found = {
                key: part.grad.float()
                for key, part in network.named_parameters()
                if part.grad is not None
            }
            network.zero_grad(set_to_none=True)
            exact = exact or found
            numbers: dict[str, Any] = {"loss": loss.item()}
            for side in ("encoder", "decoder"):
                # the exact gradient of a key's bias is zero: nothing to compare with
                keys = [
                    key for key in exact if f"{side}.layers" in key and "k_proj.bias" not in key
                ]
                worst, of = min((_cosine([found[key]], [exact[key]]), key) for key in keys)
                whole = _cosine([found[key] for key in keys], [exact[key] for key in keys])
                numbers[side] = {"cosine": whole, "worst": worst, "worst_of": of}
                print(
                    f"gradients, {name}, {side}: cosine {whole:.5f}, worst {worst:.4f}", flush=True
                )
            self.found.setdefault("gradients", {})[name] = numbers

    def _profile(self, network: Network, size: int) -> None:
        """Where a training step's time goes."""
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            quick = Clock(self.options.device, 0.0)
            our_training(network, self._inputs(size, self.full), self.sizes["vocab_size"], quick)
        print(
            seen.key_averages().table(
                sort_by="cuda_time_total", row_limit=25, max_name_column_width=70
            )
        )

    def _note(self, name: str, own: dict[str, Any], plain: dict[str, Any]) -> None:
        times = own["per_second"] / plain["per_second"]
        self.found[name] = {"ours": own, "plain": plain, "times": round(times, 2)}
        print(
            f"{name}: {own['per_second']:.2f}/s beside {plain['per_second']:.2f}/s: {times:.2f} times",
            flush=True,
        )

    def write(self) -> None:
        options = self.options
        about = {
            "model": self.sizes,
            "passages": self.passages,
            "length": self.length,
            "generated_tokens": options.tokens,
            "target_tokens": TARGET,
            "ragged_mean_share": sum(map(sum, self.ragged))
            / (len(self.ragged) * self.passages * self.length),
            "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }
        text = json.dumps(
            {"about": about, **self.found, "provenance": provenance(seed=0)}, indent=2
        )
        if options.out:
            options.out.write_text(text + "\n", encoding="utf-8")


class _NoCodec:
    """Tokens go in and out as they are."""

    lead = (0,)


if __name__ == "__main__":
    main()
