"""English prose that comes with Python: its own reference manual, as a sample for language models."""

PARTS = {"validation": 0.05, "test": 0.05}  # shares, from the end


def manual() -> dict[str, list[tuple[str]]]:
    """One text a part. A paragraph that several topics share is kept once, so no part repeats another."""
    from pydoc_data.topics import topics

    paragraphs = [paragraph for name in sorted(topics) for paragraph in topics[name].split("\n\n")]
    known = list(
        {" ".join(paragraph.split()): paragraph.rstrip() for paragraph in paragraphs if paragraph.strip()}.values()
    )
    total = sum(map(len, known))
    parts: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    read = 0
    for paragraph in known:
        left = 1 - read / total
        part = "train" if left > sum(PARTS.values()) else "validation" if left > PARTS["test"] else "test"
        parts[part].append(paragraph)
        read += len(paragraph)
    return {part: [("\n\n".join(chosen),)] for part, chosen in parts.items()}
