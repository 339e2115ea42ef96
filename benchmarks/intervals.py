"""BLEU and chrF with a 95 % interval: ours and sacrebleu's own bootstrap, seconds and numbers side by side."""

import os
import random
import time

os.environ.setdefault("SACREBLEU_SEED", "0")

from sacrebleu.metrics import BLEU, CHRF  # noqa: E402

from seqloom.metrics import bleu, chrf  # noqa: E402

WORDS = [f"w{number}" for number in range(500)]


def corpus(size: int) -> tuple[list[str], list[str]]:
    """References, and predictions in which every fifth word is another one."""
    draw = random.Random(size)
    references = [draw.choices(WORDS, k=draw.randint(5, 30)) for _ in range(size)]
    predictions = [[draw.choice(WORDS) if draw.random() < 0.2 else word for word in words] for words in references]
    return [" ".join(words) for words in predictions], [" ".join(words) for words in references]


def main() -> None:
    print(f"{'':6} {'examples':>8} {'ours':>28} {'sacrebleu':>28} {'seconds':>8} {'theirs':>8}")
    for size in (100, 1000, 5000):
        predictions, references = corpus(size)
        for name, ours, theirs in (("BLEU", bleu, BLEU()), ("chrF", chrf, CHRF())):
            began = time.perf_counter()
            score = ours(predictions, references)
            between = time.perf_counter()
            other = theirs.corpus_score(predictions, [references], n_bootstrap=1000)
            ended = time.perf_counter()
            low, high = score.interval or (score.value, score.value)
            mine = f"{score.value:.2f} [{low:.2f}, {high:.2f}]"
            yours = f"{other.score:.2f} [{other._mean - other._ci:.2f}, {other._mean + other._ci:.2f}]"
            print(f"{name:6} {size:8} {mine:>28} {yours:>28} {between - began:8.2f} {ended - between:8.2f}")


if __name__ == "__main__":
    main()
