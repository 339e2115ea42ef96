"""The same weights in other libraries: Hugging Face's Marian and GPT-2, Joey NMT, CTranslate2 in its own process."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.layers import LSTM
from seqloom.layers.attention import AdditiveAttention
from seqloom.layers.attention_decoders import Luong
from seqloom.layers.base import Encoder, Stack, last_bidirectional_pool, mean_pool
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.heads import Categorical
from seqloom.layers.positions import SinusoidalPositions
from seqloom.layers.transformer import TransformerConfig, transformer
from seqloom.models import Generator, Source

PAD, START, END = 0, 2, 3


def translator(depth: int, size: int, feed_forward: int, vocabulary: int, heads: int) -> Generator:
    """An encoder and a decoder of the original Transformer's kind. It never ends by itself: all write equally much."""
    torch.manual_seed(0)
    config = TransformerConfig(size, depth, heads, feed_forward=feed_forward, norm="post")
    source = Source(TokenEmbedding(vocabulary, size), Encoder(transformer(size, config, causal=False), mean_pool))
    decoder = transformer(size, config, causal=True, memory=size)
    model = Generator(TokenEmbedding(vocabulary, size), decoder, Categorical(size, vocabulary), source).eval()
    model.source.embed.weight = model.embed.weight  # Marian has one table
    nn.init.normal_(model.head.project.weight)
    model.head.project.bias.data[:] = 0
    model.head.project.bias.data[END] = -1e4
    return model


def blocks(model: Generator) -> dict[str, Tensor]:
    """The translator's weights under Marian's names."""
    found: dict[str, Tensor] = {}
    for side, stack in (("encoder", model.source.encoder.layer), ("decoder", model.decoder)):
        weights, each = stack.state_dict(), 2 if side == "encoder" else 3
        levels = sorted({int(name.split(".")[1]) for name in weights})
        for place, number in enumerate(levels):
            old = {name.split(".", 2)[2]: value for name, value in weights.items() if name.split(".")[1] == str(number)}
            new, part = f"model.{side}.layers.{place // each}.", (place % each) if each == 3 else (place % each) * 2
            norm = ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")[part]
            for kind in ("weight", "bias"):
                found[f"{new}{norm}.{kind}"] = old[f"norm.{kind}"]
                if part == 2:
                    found[f"{new}fc1.{kind}"] = old[f"layer.module.0.{kind}"]
                    found[f"{new}fc2.{kind}"] = old[f"layer.module.3.{kind}"]
                    continue
                name = f"{new}{('self_attn', 'encoder_attn')[part]}"
                found[f"{name}.out_proj.{kind}"] = old[f"layer.attend.out.{kind}"]
                if part == 0:
                    three = old[f"layer.project.{kind}"].chunk(3)
                else:
                    three = (old[f"layer.query.{kind}"], *old[f"layer.key_value.{kind}"].chunk(2))
                for letter, value in zip("qkv", three, strict=True):
                    found[f"{name}.{letter}_proj.{kind}"] = value
    return found


def waves(size: int, longest: int) -> Tensor:
    layer = SinusoidalPositions(size)
    return layer(torch.zeros(1, longest, size), layer.initial_state(1))[0][0]


def marian(model: Generator, depth: int, size: int, feed_forward: int, vocabulary: int, heads: int) -> Any:
    from transformers import MarianConfig, MarianMTModel

    shape = {}
    for side in ("encoder", "decoder"):
        shape |= {f"{side}_layers": depth, f"{side}_attention_heads": heads, f"{side}_ffn_dim": feed_forward}
    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=size,
        max_position_embeddings=64,
        activation_function="gelu",
        scale_embedding=True,
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        **shape,
    )
    peer = MarianMTModel(config).eval()
    weights = peer.state_dict()
    ours = blocks(model) | {
        "lm_head.weight": model.head.project.weight,
        "final_logits_bias": model.head.project.bias[None],
        **{name: model.embed.weight for name in weights if name.endswith(("shared.weight", "embed_tokens.weight"))},
        **{name: waves(size, 64) for name in weights if name.endswith("embed_positions.weight")},
    }
    assert not set(weights) - set(ours), set(weights) - set(ours)
    peer.load_state_dict({name: ours[name].detach() for name in weights})
    return peer


def speaker(depth: int, size: int, vocabulary: int, heads: int, longest: int) -> Generator:
    """A language model of GPT-2's kind."""
    torch.manual_seed(0)
    body = transformer(
        size, TransformerConfig(size, depth, heads, positions="learned", max_positions=longest), causal=True
    )
    return Generator(TokenEmbedding(vocabulary, size), body, Categorical(size, vocabulary), None).eval()


def gpt2(model: Generator, depth: int, size: int, vocabulary: int, heads: int, longest: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = {"n_positions": longest, "n_embd": size, "n_layer": depth, "n_head": heads}
    special = {"bos_token_id": START, "eos_token_id": END, "tie_word_embeddings": False}
    peer = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, activation_function="gelu", **shape, **special)).eval()
    model.head.project.bias.data[:] = 0  # GPT-2 has none
    old, new = model.decoder.state_dict(), {}
    new["transformer.wte.weight"] = model.embed.weight * size**0.5
    new["transformer.wpe.weight"] = old["layers.0.table"]
    new["lm_head.weight"] = model.head.project.weight
    for kind in ("weight", "bias"):
        new[f"transformer.ln_f.{kind}"] = old[f"layers.{2 + 2 * depth}.module.0.{kind}"]
        for level in range(depth):
            look, think, name = f"layers.{2 + 2 * level}.", f"layers.{3 + 2 * level}.", f"transformer.h.{level}."
            new[f"{name}ln_1.{kind}"], new[f"{name}ln_2.{kind}"] = old[f"{look}norm.{kind}"], old[f"{think}norm.{kind}"]
            for theirs, ours in (
                ("attn.c_attn", f"{look}layer.project"),
                ("attn.c_proj", f"{look}layer.attend.out"),
                ("mlp.c_fc", f"{think}layer.module.0"),
                ("mlp.c_proj", f"{think}layer.module.3"),
            ):
                value = old[f"{ours}.{kind}"]
                new[f"{name}{theirs}.{kind}"] = value.t() if kind == "weight" else value
    peer.load_state_dict({name: value.detach() for name, value in new.items()})
    return peer


def looking(size: int, embedding: int, vocabulary: int) -> tuple[Generator, nn.LSTM, nn.LSTM]:
    """Joey NMT's shape: two LSTMs on each side, additive attention after the scan. And these as torch has them."""
    torch.manual_seed(0)
    reader = nn.LSTM(embedding, size // 2, 2, batch_first=True, bidirectional=True)
    writer = nn.LSTM(embedding, size, 2, batch_first=True)
    source = Source(
        TokenEmbedding(vocabulary, embedding), Encoder(LSTM.from_torch(reader).stack, last_bidirectional_pool)
    )
    decoder = Stack(*LSTM.from_torch(writer).stack.layers, Luong(size, size, AdditiveAttention(size, size)))
    model = Generator(TokenEmbedding(vocabulary, embedding), decoder, Categorical(size, vocabulary), source).eval()
    model.head.project.bias.data[:] = 0
    model.head.project.bias.data[END] = -1e4  # it never ends by itself
    decoder.layers[-1].attention.shift.bias.data[:] = 0  # which Joey NMT has not
    return model, reader, writer


def joey(model: Generator, read: nn.LSTM, write: nn.LSTM, vocabulary: int) -> Any:
    """Joey NMT's model with our weights; nothing where it is not installed (`pip install joeynmt`)."""
    try:
        from joeynmt.decoders import RecurrentDecoder
        from joeynmt.embeddings import Embeddings
        from joeynmt.encoders import RecurrentEncoder
        from joeynmt.model import Model
        from joeynmt.vocabulary import Vocabulary
    except ImportError:
        return None
    names = {"unk": 0, "pad": 1, "bos": START, "eos": END}
    special = {f"{name}_token": f"<{name}>" for name in names} | {f"{name}_id": place for name, place in names.items()}
    words = Vocabulary([str(n) for n in range(4, vocabulary)], SimpleNamespace(**special, sep_token=None, lang_tags=[]))
    size, embedding = write.hidden_size, write.input_size
    reader = RecurrentEncoder("lstm", size // 2, embedding, 2)
    writer = RecurrentDecoder(
        "lstm", embedding, size, reader, "bahdanau", 2, vocabulary, init_hidden="zero", input_feeding=False
    )
    tables = [Embeddings(embedding, vocab_size=vocabulary) for _ in range(2)]
    peer = Model(reader, writer, *tables, words, words).eval()
    reader.rnn.load_state_dict(read.state_dict())
    writer.rnn.load_state_dict(write.state_dict())
    look = model.decoder.layers[-1]
    with torch.no_grad():
        for table, ours in zip(tables, (model.source.embed, model.embed), strict=True):
            table.lut.weight.copy_(ours.weight * embedding**0.5)
        for theirs, mine in (
            (writer.attention.key_layer, look.attention.key),
            (writer.attention.query_layer, look.attention.shift),
            (writer.attention.energy_layer, look.attention.judge),
            (writer.att_vector_layer, look.join),
            (writer.output_layer, model.head.project),
        ):
            theirs.weight.copy_(mine.weight)
        writer.att_vector_layer.bias.copy_(look.join.bias)
    return peer


class CTranslate2:
    """The translator in CTranslate2, in a process that never sees torch: both start pools of threads."""

    def __init__(self, model: Generator, heads: int, threads: int, kind: str = "float32") -> None:
        self.folder = TemporaryDirectory()
        size = model.embed.weight.shape[1]
        weights = {name.removeprefix("model."): value for name, value in blocks(model).items()}
        weights |= {"embeddings": model.embed.weight, "positions": waves(size, 64)}
        weights |= {"head.weight": model.head.project.weight, "head.bias": model.head.project.bias}
        file = Path(self.folder.name) / "weights.npz"
        np.savez(file, **{name: value.detach().numpy() for name, value in weights.items()})
        script = Path(__file__).with_name("_ctranslate2.py")
        command = [sys.executable, str(script), str(file), str(heads), str(threads), kind]
        self.seconds: list[float] = []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def translate(self, tokens: list[list[int]], width: int, steps: int) -> list[list[int]]:
        assert self.process.stdin and self.process.stdout
        print(json.dumps({"tokens": tokens, "width": width, "steps": steps}), file=self.process.stdin, flush=True)
        found = json.loads(self.process.stdout.readline())
        self.seconds.append(found["seconds"])
        return found["tokens"]

    def quickest(self) -> float:
        """The shortest time that a translation took in there, since this was last asked."""
        found, self.seconds = min(self.seconds), []
        return found

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()
