"""From the ledger of `doctor.py` to the tables of docs/doctor.md: what stands between two marks is written anew."""

import re
from collections import defaultdict
from pathlib import Path
from statistics import mean, median
from typing import Any

from _ills import KINDS, LAGS, MORE, TEN, Ill

CHANCE = 1 / 8  # letters to choose from
Done = dict[str, Any]
# The score that a task is judged by beside its loss, the higher the better.
SCORES = ("accuracy", "exact")


def write_page(done: Done, page: Path) -> None:
    text = page.read_text("utf-8")
    for mark, lines in {
        "ten": ill_table(done, "ten", TEN),
        "more": ill_table(done, "more", MORE),
        "healthy": healthy_table(done),
        "lags": lag_table(done),
    }.items():
        body = "\n".join(lines)
        text = re.sub(
            rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)",
            lambda found, body=body: f"{found[1]}\n{body}\n\n{found[2]}",
            text,
            flags=re.S,
        )
    page.write_text(text, encoding="utf-8")


def cases(done: Done, part: str) -> dict[str, dict[int, Done]]:
    found: dict[str, dict[int, Done]] = defaultdict(dict)
    for key, result in done.items():
        if key.startswith(f"{part}/"):
            *name, seed = key.split("/")[1:]
            found["/".join(name)][int(seed)] = result
    return found


def rank(case: Ill, result: Done) -> int:
    """The place of the first finding that is right; 0 if there is none."""
    return next((place for place, one in enumerate(result["found"], 1) if one["name"] in case.names), 0)


def helped(case: Ill, results: dict[int, Done]) -> bool:
    """Whether what was typed made validation better on average; nothing typed is right where nothing can be learned."""
    if "nothing to learn" in case.names:
        return all(rank(case, result) == 1 and not result["typed"] for result in results.values())
    return mean(r["after"]["loss"] - r["before"]["loss"] if r["typed"] else 0.0 for r in results.values()) < 0


def ill_table(done: Done, part: str, ills: dict[str, Ill]) -> list[str]:
    found = cases(done, part)
    if not found:
        return ["Not run yet."]
    lines = [
        "| illness | first finding | right at | typed | loss before → after | score before → after | helped |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, case in ills.items():
        results = found.get(name)
        if not results:
            continue
        first = sorted({r["found"][0]["name"] if r["found"] else "nothing" for r in results.values()})
        ranks = ", ".join(str(rank(case, r) or "–") for _, r in sorted(results.items()))
        typed = sorted({r["typed"] or "nothing" for r in results.values()})
        losses = "; ".join(f"{r['before']['loss']:.2f} → {r['after']['loss']:.2f}" for _, r in sorted(results.items()))
        scores = "; ".join(f"{score(r['before'])} → {score(r['after'])}" for _, r in sorted(results.items()))
        cells = [
            f"{name}: {case.plant}",
            ", ".join(first),
            ranks,
            ", ".join(f"`{one}`" for one in typed),
            losses,
            scores,
        ]
        lines.append(f"| {' | '.join(cells)} | {'yes' if helped(case, results) else 'no'} |")
    right = sum(rank(ills[name], r) == 1 for name, results in found.items() if name in ills for r in results.values())
    count = sum(len(results) for name, results in found.items() if name in ills)
    good = sum(helped(ills[name], results) for name, results in found.items() if name in ills)
    return [
        *lines,
        "",
        f"Right at the first place in {right} of {count} runs; helped in {good} of {len(found)} illnesses.",
    ]


def score(scores: dict[str, float]) -> str:
    name = next((name for name in SCORES if name in scores), "")
    return f"{scores[name]:.2f}" if name else "–"


def healthy_table(done: Done) -> list[str]:
    lines = ["| healthy run | validation | findings |", "|---|---|---|"]
    quiet = count = 0
    for key, result in done.items():
        if not key.startswith("healthy/"):
            continue
        count += 1
        quiet += not result["found"]
        told = ", ".join(f"{name} {value:.2f}" for name, value in result["scores"].items())
        names = ", ".join(f"{one['name']} ({one['severity']:.2f})" for one in result["found"]) or "none"
        lines.append(f"| {key.removeprefix('healthy/')} | {told} | {names} |")
    return [*lines, "", f"Quiet on {quiet} of {count}."]


def collapse(results: dict[int, dict[int, Done]], seed: int) -> float:
    """The lag at which accuracy falls half-way to chance: between the last that was learned and the next."""
    half = (1 + CHANCE) / 2
    learned = [lag for lag in LAGS if lag in results and results[lag][seed]["accuracy"] >= half]
    failed = [
        lag
        for lag in LAGS
        if lag in results and results[lag][seed]["accuracy"] < half and lag > max(learned, default=0)
    ]
    if not learned or not failed:
        return float(max(learned, default=0))
    return float((max(learned) * min(failed)) ** 0.5)


def lag_table(done: Done) -> list[str]:
    lines = [
        f"| kind, seed | accuracy at lag {', '.join(map(str, LAGS))} | collapses at | memory length where it failed | "
        "factor | memory length at the lags that were learned |",
        "|---|---|---|---|---|---|",
    ]
    inside = count = 0
    for kind in KINDS:
        found: dict[int, dict[int, Done]] = defaultdict(dict)
        for key, result in done.items():
            if key.startswith(f"lags/{kind}/"):
                lag, seed = map(int, key.split("/")[2:])
                found[lag][seed] = result
        for seed in sorted({seed for results in found.values() for seed in results}):
            if any(seed not in found.get(lag, {}) for lag in LAGS):
                continue
            at = collapse(found, seed)
            accuracy = " ".join(f"{found[lag][seed]['accuracy']:.2f}".replace("1.00", "1") for lag in LAGS)
            failed = [found[lag][seed]["memory"] for lag in LAGS if lag > at]
            learned = ", ".join(f"{found[lag][seed]['memory']:.0f}" for lag in LAGS if lag <= at)
            told = median(failed) if failed else float("nan")
            factor = max(told / at, at / told) if failed and told and at else float("nan")
            inside += factor <= 1.5
            count += 1
            spread = f"{told:.0f} ({min(failed):.0f}–{max(failed):.0f})" if failed else "–"
            lines.append(f"| {kind}, {seed} | {accuracy} | {at:.0f} | {spread} | {factor:.2f} | {learned} |")
    return [*lines, "", f"Within a factor of 1.5 in {inside} of {count}."]
