"""A whole model as the text of model.py and its weights."""

from textwrap import indent

from torch import Tensor, nn

from ...layers.base import Encoder
from ...layers.embeddings import describe_inputs
from ...layers.heads import Head
from ...layers.materialize import materialize
from ...layers.recurrent import BridgedState, CopiedState, Recurrent, ZeroState
from ...models import Generator, Labeler
from . import code
from .parts import (
    Body,
    Part,
    Weights,
    body_of,
    embedding_part,
    linear_part,
    pool_code,
    product_part,
    recurrent_levels,
    refuse,
)


class Module:
    """The class Model while it is being put together."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.weights: Weights = {}
        self.methods: list[str] = []
        self.needs = {"mask"}

    def add(self, name: str, part: Part) -> None:
        self.lines.append(f"self.{name} = {part.code}")
        self.weights |= {f"{name}.{key}": value for key, value in part.weights.items()}

    def add_body(self, body: Body) -> None:
        for name, part in body.parts.items():
            self.add(name, part)
        if any("sinusoids" in line for line in body.before):
            self.needs.add("sinusoidal")
        self.needs.add("transformer" if body.transformer else "recurrent")

    def method(self, signature: str, *lines: str) -> None:
        self.methods.append(f"def {signature}:\n" + indent("\n".join(lines), "    "))

    def write(self, title: str) -> tuple[str, dict[str, Tensor]]:
        helpers = {
            "mask": code.MASK,
            "recurrent": code.RECURRENT,
            "transformer": code.TRANSFORMER,
            "sinusoidal": code.SINUSOIDAL,
        }
        parts = [code.HEADER.format(title=title), *(text for name, text in helpers.items() if name in self.needs)]
        built = "\n".join(["super().__init__()", *self.lines])
        methods = [f"def __init__(self):\n{indent(built, '    ')}", *self.methods]
        parts.append("\n\nclass Model(nn.Module):\n" + indent("\n\n".join(methods), "    ") + "\n")
        weights = {name: value.cpu().float().clone().contiguous() for name, value in self.weights.items()}
        return "".join([*parts, code.LOAD]), weights


def write_model(model: Labeler | Generator, title: str) -> tuple[str, dict[str, Tensor]]:
    """The text of model.py, and the weights by name; refused where torch.nn lacks something."""
    model = materialize(model)
    module = Module()
    if not model.generates:
        write_labeler(module, model)
    elif model.source is None:
        write_language_model(module, model)
    else:
        write_seq2seq(module, model)
    return module.write(title)


def add_embedding(module: Module, name: str, embed: nn.Module) -> str:
    part, applied = embedding_part(embed)
    if part is not None:
        module.add(name, part)
    return applied.replace("NAME", name)


FORMS = {
    "logits": ['outputs = {"logits": self.head(y)}'],
    "values": ['outputs = {"values": self.head(y).unflatten(-1, SHAPE)}'],
    "normal": [
        "mean, spread = self.head(y).chunk(2, -1)",
        'outputs = {"mean": mean, "spread": nn.functional.softplus(spread) + 1e-4}',
    ],
    "quantiles": ['outputs = {"quantiles": self.head(y).unflatten(-1, SHAPE).sort(-1).values}'],
}


def add_head(module: Module, head: Head) -> list[str]:
    """The head's modules, and the lines that give the outputs from features y."""
    readout = head.readout()
    if (
        readout is None
        or len(readout.hidden) % 3
        or not all(isinstance(part, nn.ReLU) for part in readout.hidden[1::3])
    ):
        raise refuse(head, "the head")
    lines = []
    for number, product in enumerate(readout.hidden[::3], 1):
        name = f"hidden_{number}" if number > 1 else "hidden"
        module.add(name, product_part(product.weight, product.bias))
        lines.append(f"y = self.{name}(y).relu()")
    module.add("head", product_part(readout.weight, readout.bias))
    return [*lines, *(line.replace("SHAPE", str(tuple(readout.shape))) for line in FORMS[readout.form])]


def write_reading(module: Module, encoder: Encoder, embed: nn.Module, name: str) -> list[str]:
    """The lines from `inputs` and `lengths` to `values` and `ends`."""
    applied = add_embedding(module, f"{name}_embed", embed)
    body = body_of(name, encoder.layer)
    module.add_body(body)
    if body.transformer:
        read = f"values, ends = run_transformer(self.{name}, x, lengths, {body.causal})"
    elif body.parts:
        read = f"values, ends = run_recurrent(self.{name}, x, lengths)"
    else:
        read = "values, ends = x, []"
    return [f"x = {applied}", *body.before, "mask = mask_of(lengths, x.shape[1])", read]


def write_labeler(module: Module, model: Labeler) -> None:
    lines = write_reading(module, model.encoder, model.embed, "encoder")
    lines.append("y = values" if model.per_element else f"y = {pool_code(model.encoder.pool)}")
    module.method("answer(self, inputs, lengths)", *lines, *add_head(module, model.head), "return outputs")


# --- what writes --------------------------------------------------------------------------------------------------


def write_language_model(module: Module, model: Generator) -> None:
    if (body := body_of("decoder", model.decoder)).transformer:
        features = describe_inputs(model.embed).features
        element = f", {features}" if features else ""
        module.method("start(self, rows)", f'return {{"state.0": torch.zeros(int(rows), 0{element})}}')
        write_transformer_step(module, model, body, "")
        return
    entries = [entry for level in levels_of(model) for entry in level.cell.sizes]
    zeros = ", ".join(f'"state.{number}": torch.zeros(int(rows), {size})' for number, size in enumerate(entries))
    module.method("start(self, rows)", f"return {{{zeros}}}")
    write_recurrent_step(module, model, body)


def levels_of(model: Generator) -> list[Recurrent]:
    levels = recurrent_levels(model.decoder)
    for level in levels:
        if not isinstance(level, Recurrent):
            raise refuse(level, "a decoder")
    return levels  # type: ignore[return-value]


def write_recurrent_step(module: Module, model: Generator, body: Body) -> None:
    """Any number of elements a row, from the state that was before."""
    applied = add_embedding(module, "embed", model.embed)
    module.add_body(body)
    lines, count = [f"x, after = {applied}, {{}}"], 0
    for number, level in enumerate(levels_of(model)):
        places = list(range(count, count + len(level.cell.sizes)))
        states = ", ".join(f'state["state_{place}"][None]' for place in places)
        before = f"({states})" if len(places) > 1 else states
        lines += [f"x, end = self.decoder[{number}](x, {before})"]
        for index, place in enumerate(places):
            lines.append(f'after["next.{place}"] = {f"end[{index}]" if len(places) > 1 else "end"}[0]')
        count += len(places)
    lines += ["y = x", *add_head(module, model.head), "return outputs | after"]
    module.method("step(self, inputs, **state)", *lines)


def write_transformer_step(module: Module, model: Generator, body: Body, memory: str) -> None:
    """torch.nn keeps no keys and values, so all that was written is read again: the state is the elements."""
    applied = add_embedding(module, "embed", model.embed)
    module.add_body(body)
    kind = "" if memory else "run = run_transformer(self.decoder, x, torch.full((len(x),), x.shape[1]), True)[0]"
    lines = [
        'read = torch.cat([state["state_0"].to(inputs.dtype), inputs], 1)',
        f"x = {applied.replace('inputs', 'read')}",
        *body.before,
        kind or memory,
        "y = run[:, -inputs.shape[1] :]",
        *add_head(module, model.head),
        'return outputs | {"next.0": read}',
    ]
    module.method("step(self, inputs, **state)", *lines)


def write_seq2seq(module: Module, model: Generator) -> None:
    assert model.source is not None
    lines = write_reading(module, model.source.encoder, model.source.embed, "encoder")
    body = body_of("decoder", model.decoder, starts=False)
    if body.transformer:
        refused = 'raise ValueError("a source without elements gives attention nothing to look at")'
        start = "torch.zeros(len(inputs), 0, dtype=torch.long)"
        returned = f'return {{"state.0": {start}, "memory.0": values, "memory.1": lengths}}'
        module.method("encode(self, inputs, lengths)", "if not lengths.all():", f"    {refused}", *lines, returned)
        attended = (
            'hidden = ~mask_of(state["memory_1"], state["memory_0"].shape[1])\n'
            "past = nn.Transformer.generate_square_subsequent_mask(x.shape[1]).isinf()\n"
            'run = self.decoder(x, state["memory_0"], tgt_mask=past, memory_key_padding_mask=hidden)'
        )
        write_transformer_step(module, model, body, attended)
        return
    states, summary = start_lines(module, model)
    pooled = [f"summary = {pool_code(model.source.encoder.pool)}"] if summary else []
    module.method("encode(self, inputs, lengths)", *lines, *pooled, f"return {{{', '.join(states)}}}")
    write_recurrent_step(module, model, body)


def start_lines(module: Module, model: Generator) -> tuple[list[str], bool]:
    """Where each level of the decoder starts, and whether the summary of the source is needed for it."""
    states: list[str] = []
    needed = False
    for number, level in enumerate(levels_of(model)):
        match level.begin:
            case ZeroState():
                starts = [f"torch.zeros(len(inputs), {size})" for size in level.cell.sizes]
            case CopiedState(level=place):
                starts = [f"ends[{place}][{index}]" for index in range(len(level.cell.sizes))]
            case BridgedState(linear=linear, sizes=sizes):
                module.add(f"bridge{number}", linear_part(linear))
                bridged = f"self.bridge{number}(summary).tanh().split({list(sizes)}, 1)"
                starts, needed = [f"{bridged}[{index}]" for index in range(len(sizes))], True
            case _:
                raise refuse(level.begin, "the start of a decoder")
        states += [f'"state.{len(states) + index}": {value}' for index, value in enumerate(starts)]
    return states, needed
