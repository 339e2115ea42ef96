"""Which letter was the large one? It stands in the middle, up to 40 small ones from either end."""

import random

FARTHEST = 40  # small letters on either side, at most
KEYS, OTHERS = "ABCDEFGH", "ijklmnop"
COUNTS = {"train": 16_000, "validation": 640, "test": 2560}
SEED = 1991  # the year in which it was first said why this is hard


def recall() -> dict[str, list[tuple[str, str]]]:
    """Pairs of (letters, the large one) by split. It is as far from the end as from the beginning, so that reading
    backwards is no help. In training, near ones are more frequent, so that there is something to begin with; in
    validation and test, every distance is as frequent.
    """
    chance = random.Random(SEED)
    parts: dict[str, list[tuple[str, str]]] = {}
    for part, count in COUNTS.items():
        parts[part] = []
        for number in range(count):
            distance = round(FARTHEST ** chance.random()) if part == "train" else 1 + number % FARTHEST
            key = chance.choice(KEYS)
            before, after = ("".join(chance.choices(OTHERS, k=distance)) for _ in range(2))
            parts[part].append((before + key + after, key))
    return parts
