"""A shape: an excerpt of a text is read, and the words of the rest of that text are predicted from it all at once.

There is one prediction a text, not one a token, so the output layer costs next to nothing, and what is learned is what
a text as a whole is about and how it speaks (Chen, 2017; Gururangan et al., 2019).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..architectures.build import tie
from ..data import batching, streams
from ..data.masking import draw_for
from ..data.streams import Spans
from ..data.vocabulary import NEVER_WRITTEN, SPECIALS
from ..errors import DataError
from ..fields import Text
from ..fields.base import pick_evenly
from ..layers.heads import Categorical
from ..metrics import blocks
from ..models import Batch, Labeler, device_of
from .filling import FilledBlank
from .packed_reading import PackedReading
from .results import Example, Inspection, Predictions, ScoreWithBaselines
from .scoring import score_losses
from .shape import ROOM, Encoded, check_length

STRETCH = 4  # windows that a long text is divided into: an excerpt says little about what stands far away
FREQUENT = 1e-3  # words that are more frequent than this count less, as in word2vec (Mikolov et al., 2013)
HELD_OUT = 0  # the number of the draw that is scored on; those of the epochs come after it
LISTED = 5  # words of a prediction, unless somebody asks for more
WORDS, SHORT = 40, 12  # of an example, and of one that is shown in a line


class DocumentReading(PackedReading):
    def build(self) -> Labeler:
        model = self.recipe.model
        body, embed = model.side("encoder"), self.target.embedding(model)
        reader = body.build_encoder(model.embedding, pool="mean", own=self.task.cell)
        head = tie(model, embed, Categorical(body.width, len(self.target)))
        return Labeler(embed, reader, head, per_element=False, dropout=body.dropout)

    def initialize(self, model: Labeler, note: Callable[[str], object]) -> bool:
        """Begin with how often each word is to be predicted, so that only what differs from that has to be learned."""
        with torch.no_grad():
            model.head.get_parameter("project.bias").copy_(self.prior)
        return False  # a prior alone is not worth a validation

    @property
    def weights(self) -> NDArray[np.float64]:
        """How much each token counts where it is to be predicted."""
        counts = np.array(self.task.facts.counts, dtype=np.float64)
        weights = np.sqrt(np.minimum(FREQUENT * counts.sum() / np.maximum(counts, 1), 1))
        weights[: len(SPECIALS)] = 0
        return weights

    @property
    def prior(self) -> Tensor:
        """The logarithm of the share of each token among all that is to be predicted."""
        expected = self.weights * (np.array(self.task.facts.counts) + 1) + 1e-9
        return torch.from_numpy(np.log(expected / expected.sum())).float()

    # --- excerpts ---

    def excerpts(self, encoded: Encoded, draw: int) -> Spans:
        """One excerpt of every text, or of every stretch of a long one: half of it, and at most a window."""
        window, seed = self.recipe.data.window, self.recipe.train.seed
        begins = self.places(encoded).begins
        stretches = streams.cut_windows(begins, STRETCH * window, STRETCH * window)
        stretches = stretches[stretches[:, 1] - stretches[:, 0] > 2]
        lengths = np.minimum((stretches[:, 1] - stretches[:, 0]) // 2, window)
        free = stretches[:, 1] - stretches[:, 0] - 1 - lengths  # the end of a text is not read
        starts = stretches[:, 0] + (draw_for(seed, draw).random(len(stretches)) * (free + 1)).astype(np.int64)
        return np.column_stack([starts, starts + lengths, stretches[:, :2]])

    def order(self, prepared: Any, epoch: int) -> Sequence[Spans]:
        train, spans = self.recipe.train, self.excerpts(prepared.splits["train"].ids, 1 + epoch)
        if len(spans) < 2:
            raise DataError(
                'train.objective "document" needs several texts, but there is only one: data.documents=paragraphs '
                "makes every paragraph a text"
            )
        plan = batching.plan_epoch(spans[:, 1] - spans[:, 0], train.batch_tokens, train.seed, epoch)
        return [spans[rows] for rows in plan]

    def plan(self, encoded: Encoded) -> Spans:
        return self.excerpts(encoded, HELD_OUT)

    def collate(self, encoded: Encoded, rows: Spans) -> Batch:
        """What is read, and for every row (B, symbols) which share of the other words each symbol is."""
        ids, mask = self.read(encoded, rows[:, :3])
        weights, target = self.weights, np.zeros((len(rows), len(self.target)), dtype=np.float32)
        places = self.places(encoded)
        for row, (begin, end, first, last) in enumerate(rows.tolist()):
            rest = places.targets(np.concatenate([np.arange(first, begin), np.arange(end, last)]))
            target[row] = np.bincount(rest, weights[rest], minlength=len(self.target))
        target /= np.maximum(target.sum(1, keepdims=True), 1e-9)
        return Batch(torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(target))

    # --- scores ---

    def logits(self, model: Labeler, batch: Batch) -> Tensor:
        return model(batch.inputs, batch.mask)

    @torch.no_grad()
    def losses(self, model: Labeler, encoded: Encoded) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of every excerpt: how surprising the other words are, and how surprising they are by frequency alone."""
        plan, losses, usual = self.plan(encoded), [], []
        prior = self.prior.double()
        for rows in batching.plan_scoring(plan[:, 1] - plan[:, 0], ROOM):
            batch = self.collate(encoded, plan[rows]).to(device_of(model))
            counted, target = batch.target.sum(1) > 0, batch.target.double()
            logs = self.logits(model, batch).double().log_softmax(-1)
            losses.append(-(target * logs).sum(1)[counted].cpu().numpy())
            usual.append(-(target.cpu() @ prior)[counted.cpu()].numpy())
        if not sum(map(len, losses)):
            raise DataError("the texts that are scored on are too short: there is no word outside of an excerpt")
        return np.concatenate(losses), np.concatenate(usual)

    def validate(self, model: Any, prepared: Any) -> dict[str, float]:
        return {"loss": float(self.losses(model, prepared.splits["validation"].ids)[0].mean())}

    def score(self, model: Any, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
        losses, usual = self.losses(model, self.encode(examples))
        metrics = self.task.declaration.metrics(self.task)
        return score_losses(metrics, losses, {"unigram": usual}, lambda some: blocks(some, size=1))

    # --- examples and answers ---

    def accept_input(self, given: Any) -> Any:
        if sentence := Text.check(given):
            raise DataError(f"an input {sentence}")
        return given

    def pick_examples(self, examples: Sequence[Any], at_most: int) -> list[Example]:
        """The beginnings of texts, and the word of the rest that is least expected anywhere."""
        picked, prior = [], self.prior.numpy()
        for place in pick_evenly(len(examples), at_most):
            words = examples[place][0].split()
            rest = self.target.encode(" ".join(words[WORDS:]) or examples[place][0])
            known = rest[~np.isin(rest, NEVER_WRITTEN)]
            if len(known):
                begin = " ".join(words[:WORDS])
                picked.append(Example(begin, begin, self.target.decode([int(known[np.argmin(prior[known])])]).strip()))
        return picked

    def fill(self, model: Any, text: str, count: int) -> list[list[FilledBlank]]:
        raise DataError(
            'a run whose train.objective is "document" has no blanks to fill: "masked" and "bidirectional" have'
        )

    def illustrate(self, model: Any, examples: Sequence[Example]) -> str:
        """What is expected in the rest of texts that begin so."""
        lines = []
        for example, words in zip(examples, self.predict(model, [one.text for one in examples], LISTED), strict=True):
            lines.append(f"{' '.join(example.text.split()[:SHORT])} … → {', '.join(word.output for word in words)}")
        return "expected elsewhere in the text: " + "; ".join(lines) if lines else ""

    @torch.no_grad()
    def predict(self, model: Any, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """The words whose chance to stand elsewhere in the same text is raised most by what was read."""
        answers = []
        begins = self.target.begins_word()
        starts = torch.ones(len(self.target), dtype=torch.bool) if begins is None else torch.from_numpy(begins)
        starts[: len(SPECIALS)] = False
        for text in inputs:
            ids = torch.from_numpy(self.target.encode(text).astype(np.int64))[None]
            check_length(np.array([ids.shape[1]]), self.recipe.model.side("encoder"))
            batch = Batch(ids, torch.ones_like(ids, dtype=torch.bool), ids).to(device_of(model))
            logs = self.logits(model, batch)[0].log_softmax(-1).cpu()
            raised = torch.where(starts, logs.exp() * (logs - self.prior), -torch.inf)
            best = raised.topk(min(beam or LISTED, int(starts.sum()))).indices.tolist()
            words = [
                FilledBlank(self.target.decode([one]).strip(), float(logs[one]), float(logs[one].exp())) for one in best
            ]
            answers.append(Predictions(words))
        return answers

    def inspect(self, given: Any, answer: str) -> Inspection:
        ids, word = self.target.encode(given).astype(np.int64), self.target.encode(answer)
        if len(word) != 1:
            raise DataError(f"{answer!r:.60} is not one token of this run's vocabulary")
        batch = Batch(
            torch.from_numpy(ids)[None], torch.ones(1, len(ids), dtype=torch.bool), torch.tensor(word.tolist())
        )
        return Inspection(batch, self.target.names(ids), [answer], self.target.symbols, self.target.symbols)
