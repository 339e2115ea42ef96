"""The same models trained as others do it: a course's notebook in plain torch.nn, Hugging Face's Trainer, Keras.

Each gets the very token ids that ours gets, in lists, and gives an act that reads them all once. Only what happens
while it trains is timed: what a Trainer sets up before its first step is not.
An act gives back the seconds that took.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from _timing import clock
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

Ids = list[Tensor]
Shape = dict[str, int]  # size, heads, feed_forward, depth, source and target (of the vocabularies), longest
START, END = 2, 3


def waves(longest: int, size: int) -> Tensor:
    place, rate = torch.arange(longest)[:, None], 10000 ** (-torch.arange(0, size, 2) / size)
    return torch.stack([(place * rate).sin(), (place * rate).cos()], -1).flatten(1)


# --- the models, in torch.nn ------------------------------------------------------------------------------------


class Reviewer(nn.Module):
    """A Transformer's encoder, the mean of what it says, two classes."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size = shape["size"]
        self.embed = nn.Embedding(shape["source"], size, padding_idx=0)
        self.register_buffer("places", waves(shape["longest"], size))
        block = nn.TransformerEncoderLayer(size, shape["heads"], shape["feed_forward"], 0.1, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(block, shape["depth"], enable_nested_tensor=False)
        self.tell = nn.Linear(size, 2)

    def forward(self, source: Tensor, labels: Tensor) -> dict[str, Tensor]:
        hidden = source == 0
        x = self.encoder(self.embed(source) + self.places[: source.shape[1]], src_key_padding_mask=hidden)
        shown = (~hidden)[..., None]
        logits = self.tell((x * shown).sum(1) / shown.sum(1))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class RecurrentReviewer(nn.Module):
    """An LSTM, what it says at the end of each review, two classes."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed = nn.Embedding(shape["source"], shape["size"], padding_idx=0)
        self.encoder = nn.LSTM(shape["size"], shape["size"], batch_first=True)
        self.tell = nn.Linear(shape["size"], 2)

    def forward(self, source: Tensor, labels: Tensor) -> dict[str, Tensor]:
        x, _ = self.encoder(self.embed(source))
        logits = self.tell(x[torch.arange(len(x)), (source != 0).sum(1) - 1])
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Translator(nn.Module):
    """nn.Transformer with its masks."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size = shape["size"]
        self.source, self.target = nn.Embedding(shape["source"], size), nn.Embedding(shape["target"], size)
        self.register_buffer("places", waves(shape["longest"], size))
        depth, heads = shape["depth"], shape["heads"]
        self.body = nn.Transformer(size, heads, depth, depth, shape["feed_forward"], 0.1, "gelu", batch_first=True)
        self.tell = nn.Linear(size, shape["target"])

    def forward(self, source: Tensor, labels: Tensor) -> dict[str, Tensor]:
        read, told = labels[:, :-1], labels[:, 1:]
        hidden = source == 0
        x, y = (
            table(ids) * table.embedding_dim**0.5 + self.places[: ids.shape[1]]
            for table, ids in ((self.source, source), (self.target, read))
        )
        ahead = nn.Transformer.generate_square_subsequent_mask(read.shape[1]).isinf()
        seen = self.body(x, y, None, ahead, None, hidden, read == 0, hidden, tgt_is_causal=True)
        return {"loss": nn.functional.cross_entropy(self.tell(seen).flatten(0, 1), told.flatten(), ignore_index=0)}


class RecurrentTranslator(nn.Module):
    """A two-way GRU reads, a GRU writes and looks back (Luong)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size = shape["size"]
        self.source, self.target = nn.Embedding(shape["source"], size), nn.Embedding(shape["target"], size)
        self.encoder = nn.GRU(size, size // 2, batch_first=True, bidirectional=True)
        self.decoder, self.key = nn.GRU(size, size, batch_first=True), nn.Linear(size, size, bias=False)
        self.join, self.tell = nn.Linear(2 * size, size), nn.Linear(size, shape["target"])

    def forward(self, source: Tensor, labels: Tensor) -> dict[str, Tensor]:
        read, told = labels[:, :-1], labels[:, 1:]
        memory, last = self.encoder(self.source(source))
        seen, _ = self.decoder(self.target(read), torch.cat([last[0], last[1]], 1)[None])
        scores = (seen @ self.key(memory).mT).masked_fill((source == 0)[:, None], -torch.inf)
        joined = self.join(torch.cat([seen, scores.softmax(-1) @ memory], -1)).tanh()
        return {"loss": nn.functional.cross_entropy(self.tell(joined).flatten(0, 1), told.flatten(), ignore_index=0)}


# --- how they are trained ---------------------------------------------------------------------------------------


class Examples(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __init__(self, sources: Ids, labels: Sequence[Any]) -> None:
        self.sources, self.labels = sources, labels

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"source": self.sources[row], "labels": self.labels[row]}


def padded(rows: list[dict[str, Any]], fixed: int = 0) -> dict[str, Tensor]:
    """Side by side, filled up to the longest, or all to a fixed length."""
    sources, labels = [row["source"] for row in rows], [row["labels"] for row in rows]
    source = pad_sequence(sources, True)
    if fixed:
        source = nn.functional.pad(source, (0, fixed - source.shape[1]))
    return {
        "source": source,
        "labels": pad_sequence(labels, True) if isinstance(labels[0], Tensor) else torch.tensor(labels),
    }


class Notebook:
    """A loop as a notebook has it: shuffled batches of a fixed number of rows, Adam, the mean loss."""

    def __init__(self, model: nn.Module, examples: Examples, rows: int, fixed: int = 0) -> None:
        self.model, self.optimizer = model.train(), torch.optim.Adam(model.parameters(), 1e-3)
        self.loader = DataLoader(examples, rows, shuffle=True, collate_fn=lambda rows: padded(rows, fixed))

    def __call__(self) -> float:
        begun = clock()
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.model(**batch)["loss"]
            loss.backward()
            self.optimizer.step()
            loss.item()
        return clock() - begun


class CarefulNotebook(Notebook):
    """The same by somebody who knows: rows of like lengths in a batch, and the fused Adam."""

    def __init__(self, model: nn.Module, examples: Examples, rows: int) -> None:
        self.model, self.optimizer = model.train(), torch.optim.Adam(model.parameters(), 1e-3, fused=True)
        order = sorted(range(len(examples)), key=lambda row: len(examples.sources[row]))
        batches = [order[start : start + rows] for start in range(0, len(order), rows)]
        shuffled = [batches[number] for number in torch.randperm(len(batches)).tolist()]
        self.loader = DataLoader(examples, batch_sampler=shuffled, collate_fn=padded)


class HuggingFace:
    """transformers.Trainer with its defaults: AdamW, a linear schedule, gradients clipped."""

    def __init__(self, model: nn.Module, examples: Examples, rows: int) -> None:
        from transformers import Trainer, TrainerCallback, TrainingArguments

        class Clock(TrainerCallback):
            begun = seconds = 0.0

            def on_epoch_begin(self, *given: Any, **named: Any) -> None:
                self.begun = clock()

            def on_epoch_end(self, *given: Any, **named: Any) -> None:
                self.seconds = clock() - self.begun

        self.clock = Clock()
        arguments = TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=rows,
            num_train_epochs=1,
            learning_rate=1e-3,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        self.trainer = Trainer(model, arguments, padded, train_dataset=examples, callbacks=[self.clock])

    def __call__(self) -> float:
        self.trainer.train()
        return self.clock.seconds


# --- Keras, with torch underneath -------------------------------------------------------------------------------


def keras() -> Any:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    return keras


def keras_model(name: str, shape: Shape) -> Any:
    k = keras()
    layers, size, heads = k.layers, shape["size"], shape["heads"]
    source = k.Input((None,), dtype="int32")

    def block(x: Any, memory: Any = None) -> Any:
        """A post-norm Transformer block; Keras hands the masks of padding on by itself."""
        causal = memory is not None
        seen = layers.MultiHeadAttention(heads, size // heads, dropout=0.1)(x, x, use_causal_mask=causal)
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(seen))
        if causal:
            seen = layers.MultiHeadAttention(heads, size // heads, dropout=0.1)(x, memory)
            x = layers.LayerNormalization()(x + layers.Dropout(0.1)(seen))
        inner = layers.Dense(size)(layers.Dropout(0.1)(layers.Dense(shape["feed_forward"], "gelu")(x)))
        return layers.LayerNormalization()(x + layers.Dropout(0.1)(inner))

    if name in ("Reviewer", "RecurrentReviewer"):
        x = layers.Embedding(shape["source"], size, mask_zero=True)(source)
        x = layers.LSTM(size)(x) if name.startswith("Recurrent") else layers.GlobalAveragePooling1D()(block(x))
        model = k.Model(source, layers.Dense(2)(x))
    else:
        target = k.Input((None,), dtype="int32")
        x = layers.Embedding(shape["source"], size, mask_zero=True)(source)
        y = layers.Embedding(shape["target"], size, mask_zero=True)(target)
        if name.startswith("Recurrent"):
            x, *last = layers.Bidirectional(layers.GRU(size // 2, return_sequences=True, return_state=True))(x)
            y = layers.GRU(size, return_sequences=True)(y, initial_state=layers.Concatenate()(last))
            seen = layers.Attention()([y, layers.Dense(size, use_bias=False)(x)])
            y = layers.Dense(size, "tanh")(layers.Concatenate()([y, seen]))
        else:
            for _ in range(shape["depth"]):
                x = block(x)
            for _ in range(shape["depth"]):
                y = block(y, x)
        model = k.Model([source, target], layers.Dense(shape["target"])(y))
    loss = k.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=None if "Review" in name else 0)
    model.compile(k.optimizers.Adam(1e-3), loss)
    return model


class Keras:
    """`fit` on arrays that are padded to the longest of all, as it takes them.

    Its recurrent layers take a minute where others take a second: it reads two batches, and the time is that of all.
    """

    def __init__(self, name: str, shape: Shape, sources: Ids, labels: Sequence[Any], rows: int, fixed: int) -> None:
        self.model, self.rows = keras_model(name, shape), rows
        self.share = min(1.0, 2 * rows / len(sources))
        sources, labels = sources[: 2 * rows], labels[: 2 * rows]
        source = pad_sequence(sources, True).numpy()
        source = np.pad(source, ((0, 0), (0, max(0, fixed - source.shape[1]))))
        if isinstance(labels[0], Tensor):
            target = pad_sequence(list(labels), True).numpy()
            self.given: Any = ([source, target[:, :-1]], target[:, 1:])
        else:
            self.given = (source, np.array(labels))

    def __call__(self) -> float:
        begun = clock()
        self.model.fit(*self.given, batch_size=self.rows, epochs=1, verbose=0)
        return (clock() - begun) / self.share


Act = Callable[[], float]
MODELS: dict[str, Callable[[Shape], nn.Module]] = {
    "Reviewer": Reviewer,
    "RecurrentReviewer": RecurrentReviewer,
    "Translator": Translator,
    "RecurrentTranslator": RecurrentTranslator,
}
