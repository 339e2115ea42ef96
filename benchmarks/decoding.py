"""Writing, beside other libraries with the same weights: Hugging Face, CTranslate2, loops over PyTorch's layers.

Each ratio is the peer's time divided by ours: above 1 we are faster. "Ours" is what a person gets by default, "plain"
is without native kernels. All take turns in one run, the best of several counts.

`python benchmarks/decoding.py [quick] [page] [1] [2] [small] [recurrent] [large] [language] [attention]`: all sections
with one thread and with two, or those named; `page` writes the tables into docs/benchmarks.md. Joey NMT stands beside
the others where it is installed.
"""

import sys
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from _page import describe, write
from _peers import END, START, CTranslate2, gpt2, joey, looking, marian, speaker, translator
from _timing import QUICK, Act, best, chosen, peak, table, threads
from torch import Tensor, nn

from seqloom.layers import GRU, LSTM
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.fast.native import library
from seqloom.layers.heads import Categorical
from seqloom.models import Generator
from seqloom.search import BeamOptions, beam, greedy

SECTIONS = ("small", "recurrent", "large", "language", "attention")
ROUNDS = 2 if QUICK else 5
READ, WRITE, VOCABULARY = 14, 16, 10_000


def ours(model: Generator, source: Tensor, width: int) -> list[list[int]]:
    last = torch.full((len(source), 1), START)
    with torch.no_grad():
        state = model.initial_state(len(source), source, torch.ones_like(source, dtype=torch.bool))
    if width == 1:
        return [one.tokens for one in greedy(model.stepper(), last, state, steps=WRITE, end=END)]
    return [
        one.tokens
        for [one] in beam(model.stepper(), last, state, BeamOptions(beam_size=width, steps=WRITE, end=END, best=1))
    ]


def hugging_face(peer: object, source: Tensor, width: int) -> list[list[int]]:
    with torch.no_grad():
        found = peer.generate(  # type: ignore[attr-defined]
            source,
            attention_mask=torch.ones_like(source),
            max_new_tokens=WRITE,
            num_beams=width,
            do_sample=False,
            early_stopping=False,
        )
    return found[:, 1:].tolist()


def with_and_without(act: Act) -> list[Act]:
    """Without native kernels, and with them."""

    def plain() -> object:
        with library.use_native(False):
            return act()

    def quick() -> object:
        with library.use_native(True):
            return act()

    return [plain, quick]


def same(found: Sequence[list[int]], other: Sequence[list[int]]) -> float:
    """The share of rows that two systems write alike. Sums in another order may turn a near tie."""
    return sum(one == two for one, two in zip(found, other, strict=True)) / len(found)


def translation(depth: int, size: int, feed_forward: int, heads: int) -> str:
    model = translator(depth, size, feed_forward, VOCABULARY, heads)
    small = deepcopy(model)
    small.quantize_weights()
    peer = marian(model, depth, size, feed_forward, VOCABULARY, heads)
    third, fourth = (CTranslate2(model, heads, torch.get_num_threads(), kind) for kind in ("float32", "int8"))
    rows = []
    for batch in (1, 32):
        source = torch.randint(4, VOCABULARY, (batch, READ))
        rounds, repeats = (ROUNDS, 1) if batch > 1 else (2 * ROUNDS, 4)
        for width in (1, 5):
            answers = ours(model, source, width)
            alike = (
                same(answers, hugging_face(peer, source, width)),
                same(answers, third.translate(source.tolist(), width, WRITE)),
            )
            acts = [
                *with_and_without(partial(ours, model, source, width)),
                partial(ours, small, source, width),
                partial(hugging_face, peer, source, width),
                partial(third.translate, source.tolist(), width, WRITE),
                partial(fourth.translate, source.tolist(), width, WRITE),
            ]
            plain, mine, bytes_, theirs, *_ = (one / batch * 1e3 for one in best(acts, rounds, repeats))
            floats, whole = (one.quickest() / batch * 1e3 for one in (third, fourth))
            ratios = [f"{theirs / mine:.2f}", f"{floats / mine:.2f}", f"{mine / bytes_:.2f}", f"{whole / bytes_:.2f}"]
            same_as = f"{alike[0]:.0%}, {alike[1]:.0%}"
            rows.append([str(batch), str(width), f"{mine:.2f}", f"{plain:.2f}", f"{bytes_:.2f}", *ratios, same_as])
    third.close()
    fourth.close()
    columns = ["batch", "beam", "ours, ms a sentence", "plain", "int8", "Hugging Face / ours", "CTranslate2 / ours"]
    return table([*columns, "ours / ours int8", "CTranslate2 int8 / ours int8", "same answers"], rows)


def language() -> str:
    shape = (6, 384, VOCABULARY, 6, 1024)
    model = speaker(*shape)
    peer = gpt2(model, *shape)
    last = torch.full((1, 1), START)

    def mine(steps: int) -> list[int]:
        return greedy(model.stepper(), last, model.initial_state(1), steps=steps, end=None)[0].tokens

    def theirs(steps: int) -> list[int]:
        with torch.no_grad():
            found = peer.generate(
                last,
                attention_mask=last * 0 + 1,
                max_new_tokens=steps,
                do_sample=False,
                eos_token_id=None,
                pad_token_id=0,
            )
        return found[0, 1:].tolist()

    with library.use_native(True):
        alike = mine(256) == theirs(256)
    here, quick, there = best([*with_and_without(lambda: mine(256)), lambda: theirs(256)], ROUNDS)
    each = [f"{seconds / 256 * 1e3:.2f}" for seconds in (quick, here)]
    rows = [["256", *each, f"{there / quick:.2f}", "yes" if alike else "no"]]
    long, short = best([lambda: mine(1023), lambda: mine(64)], min(ROUNDS, 3))
    flat = (long / 1023) / (short / 64)
    columns = ["tokens", "ours, ms a token", "plain", "Hugging Face / ours", "same answer"]
    return table(columns, rows) + f"\n\nA token of 1,023 costs {flat:.2f} times one of 64; the mark is at most 1.3."


def recurrent() -> str:
    """A language model over 100 characters, 2 × 512, beside the loop that everybody writes."""
    rows = []
    steps = 200
    for name, kind, layer in (("lstm", nn.LSTM, LSTM), ("gru", nn.GRU, GRU)):
        torch.manual_seed(0)
        embed, peer, head = TokenEmbedding(100, 512), kind(512, 512, 2, batch_first=True), Categorical(512, 100)
        model = Generator(embed, layer.from_torch(peer), head).eval()
        cells = cells_of(peer)
        weights = sum(parameter.numel() for parameter in model.parameters()) * 4
        for batch in (1, 32):
            last = torch.arange(batch)[:, None]

            def loop(
                peer: nn.Module = peer, embed: nn.Module = embed, head: nn.Module = head, last: Tensor = last
            ) -> list[list[int]]:
                written, state = [], None
                with torch.no_grad():
                    for _ in range(steps):
                        output, state = peer(embed(last), state)
                        last = head(output).argmax(-1)
                        written.append(last)
                return torch.cat(written, 1).tolist()

            def mine(model: Generator = model, last: Tensor = last) -> list[list[int]]:
                found = greedy(model.stepper(), last, model.initial_state(len(last)), steps=steps, end=None)
                return [one.tokens for one in found]

            def stepped(
                cells: list[nn.Module] = cells, embed: nn.Module = embed, head: nn.Module = head, last: Tensor = last
            ) -> list[list[int]]:
                written, states = [], [None] * len(cells)
                with torch.no_grad():
                    for _ in range(steps):
                        x = embed(last)[:, 0]
                        for number, cell in enumerate(cells):
                            states[number] = cell(x, states[number])
                            x = states[number][0] if isinstance(cell, nn.LSTMCell) else states[number]
                        last = head(x).argmax(-1)[:, None]
                        written.append(last)
                return torch.cat(written, 1).tolist()

            alike = same(mine(), loop()), same(mine(), stepped())
            plain, here, whole, each_cell = best([*with_and_without(mine), loop, stepped], ROUNDS)
            moved = weights * steps / here / 1e9
            each = [f"{seconds / steps * 1e3:.2f}" for seconds in (here, plain)]
            ratios = [f"{whole / here:.2f}", f"{each_cell / here:.2f}"]
            rows.append([name, str(batch), *each, *ratios, f"{moved:.1f}", f"{alike[0]:.0%}, {alike[1]:.0%}"])
    columns = [
        "kind",
        "batch",
        "ours, ms a step",
        "plain",
        "`nn.LSTM`, `nn.GRU` / ours",
        "`nn.LSTMCell`, `nn.GRUCell` / ours",
    ]
    columns += ["weights read, GB/s", "same answers"]
    return table(columns, rows) + f"\n\nReading memory gives {bandwidth():.1f} GB/s here."


def cells_of(peer: nn.RNNBase) -> list[nn.Module]:
    """The layers of PyTorch's recurrence as its cells, which are the better ones to step with."""
    kind, found = (nn.LSTMCell if isinstance(peer, nn.LSTM) else nn.GRUCell), []
    for level in range(peer.num_layers):
        cell = kind(peer.input_size if not level else peer.hidden_size, peer.hidden_size)
        for name, parameter in cell.named_parameters():
            parameter.data.copy_(getattr(peer, f"{name}_l{level}"))
        found.append(cell)
    return found


def bandwidth() -> float:
    numbers = torch.randn(1 << 25)
    [seconds] = best([numbers.sum], 7)
    return numbers.numel() * 4 / seconds / 1e9


def joeys(peer: Any, source: Tensor, width: int) -> list[list[int]]:
    from joeynmt.search import beam_search, greedy

    mask = torch.ones_like(source, dtype=torch.bool)[:, None]
    with torch.no_grad():
        read, last, _, _ = peer(
            return_type="encode", src=source, src_length=torch.full((len(source),), READ), src_mask=mask
        )
        given = {"model": peer, "encoder_output": read, "encoder_hidden": last, "src_mask": mask}
        limits = {"max_output_length": WRITE, "min_output_length": WRITE}
        if width == 1:
            found, _, _ = greedy(**given, **limits)
        else:
            found, _, _ = beam_search(beam_size=width, alpha=0, **given, **limits)
    return torch.as_tensor(found).long().tolist()


def attention() -> str:
    """An LSTM that translates with additive attention: 2 × 512 each side, the reader both ways."""
    model, *layers = looking(512, 256, VOCABULARY)
    peer = joey(model, *layers, VOCABULARY)
    rows = []
    for batch in (1, 32):
        given = torch.randint(4, VOCABULARY, (batch, READ))
        for width in (1, 5):
            acts = with_and_without(partial(ours, model, given, width))
            if peer is None:
                rows.append([str(batch), str(width), *(f"{one / batch * 1e3:.2f}" for one in best(acts, ROUNDS))])
                continue
            alike = same(ours(model, given, width), joeys(peer, given, width))
            mine, quick, theirs = best([*acts, partial(joeys, peer, given, width)], ROUNDS)
            each = [f"{seconds / batch * 1e3:.2f}" for seconds in (mine, quick)]
            rows.append(
                [str(batch), str(width), *each, f"{theirs / mine:.2f}", f"{theirs / quick:.2f}", f"{alike:.0%}"]
            )
    columns = ["batch", "width", "ours, ms a sentence", "compiled"]
    if peer is None:
        return table(columns, rows) + "\n\nJoey NMT is not installed, so it does not stand beside them."
    return table([*columns, "Joey NMT / ours", "Joey NMT / compiled", "same answers"], rows)


def main() -> None:
    import transformers

    transformers.logging.set_verbosity_error()
    makers = {
        "small": ("Transformer 4 + 4, d 128, vocabulary 10,000; 14 in, 16 out", lambda: translation(4, 128, 256, 8)),
        "large": ("Transformer 6 + 6, d 512, vocabulary 10,000; 14 in, 16 out", lambda: translation(6, 512, 2048, 8)),
        "language": ("GPT-2's shape, 6 layers, d 384, vocabulary 10,000", language),
        "recurrent": ("Characters, 2 × 512", recurrent),
        "attention": ("LSTM with additive attention", attention),
    }
    for number in threads():
        torch.set_num_threads(number)
        print(f"{number} thread{'s' * (number > 1)}, matrix products at {peak() / 1e9:.0f} GFLOP/s")
        for name in chosen(SECTIONS):
            title, make = makers[name]
            made = f"{make()}\n\n{describe(number)}"
            print(f"\n## {title}\n\n{made}", flush=True)
            if "page" in sys.argv:
                write(f"decoding {name} {number}", made)


if __name__ == "__main__":
    main()
