"""Which letter came first? Asked at the end, after up to 64 others that do not matter: how far does a net remember?"""

import random

FARTHEST = 64  # letters between the first and the question, at most
KEYS, OTHERS = "ABCDEFGH", "ijklmnop"
COUNTS = {"train": 12_000, "validation": 640, "test": 2560}
SEED = 1991  # the year in which it was first said why this is hard


def recall() -> dict[str, list[tuple[str, str]]]:
    """Pairs of (letters, a tag for each) by split: the tag of the question mark is the first letter, all others a dash.

    In validation and test, every distance is as frequent. It is told at the end, so reading backwards is no help.
    """
    chance = random.Random(SEED)
    found: dict[str, list[tuple[str, str]]] = {}
    for part, count in COUNTS.items():
        found[part] = []
        for number in range(count):
            distance = chance.randint(1, FARTHEST) if part == "train" else 1 + number % FARTHEST
            key = chance.choice(KEYS)
            letters = [key, *chance.choices(OTHERS, k=distance), "?"]
            found[part].append((" ".join(letters), " ".join(["-"] * (distance + 1) + [key])))
    return found
