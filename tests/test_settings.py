"""No setting without an effect: what nothing reads cannot be written, or is refused with when it would be read.

Every kind is built in every role, and every setting is changed, alone and beside every choice of every other one.
"""

from functools import cache

import pytest
import torch

from seqloom.architectures import ARCHITECTURES
from seqloom.config.messages import settings
from seqloom.config.model import side_class
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.layers.base import Memory

INPUTS, SIZE, STEPS = 3, 4, 5
ROLES = ("encoder", "decoder", "forwards")
LAYERS = {"depth": 2, "dropout": 0.3}  # so that there is something between layers
BASES = {"transformer": {"positions": "learned", "heads": 2}}  # what else lets every setting be read
NEAR = {"attention_window": [1]}  # what hides something of so short a source
BY_TASK = ("naive_bayes",)  # what the task reads, which knows the labels: tests/tasks/test_bag.py
FORMULAS = ("init", "merge")  # choose how numbers come about, and never what else is read
EVERY = [
    (kind, role)
    for kind, own in ARCHITECTURES.items()
    for role in ROLES
    if role == "encoder" or not (own.only_numbers or own.only_classifies)  # which write nothing
]
PAIRS = [pair for pair in EVERY if pair[1] != "forwards"]  # which has nothing that these have not


def class_of(kind, role):
    return side_class(ARCHITECTURES[kind], role)


def alternatives(kind, role, name):
    """Other values of a setting than that of the base."""
    if name in NEAR:
        return NEAR[name]
    setting, usual = settings(class_of(kind, role))[name], base_of(kind, role).get(name)
    usual = class_of(kind, role).model_fields[name].default if usual is None else usual
    if setting.choices:
        return [choice for choice in setting.choices if choice != usual]
    return {bool: [not usual], int: [usual + 2 if usual else 1], float: [0.5 * (usual + 0.2)]}[setting.type]


def base_of(kind, role):
    wanted = {"size": SIZE} | LAYERS | BASES.get(kind, {})
    return {name: value for name, value in wanted.items() if name in class_of(kind, role).model_fields}


@cache
def build(kind, role, changes=()):
    """The parameters and what comes out in training, always on the same draws; nothing if it is refused."""
    made = class_of(kind, role)(**(base_of(kind, role) | dict(changes)))
    if made.fault():
        return None
    torch.manual_seed(0)
    net = build_network(made.complete(), role)
    weights = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in net.parameters():  # what starts at zero would hide what stands behind it
            parameter += 0.1 * torch.randn_like(parameter)
    x, values = 0.3 * torch.randn(2, STEPS, INPUTS), torch.randn(2, 3, SIZE)
    if role == "encoder":
        found = net.train()(x)
        return weights, [found.values, found.summary]
    mask = torch.ones(2, 3, dtype=torch.bool)
    memory = Memory(values, mask, values[:, 0], ((values[:, 1],),)) if role == "decoder" else None
    return weights, [net.train()(x, net.initial_state(2, memory))[0]]


def build_network(made, role):
    if role == "encoder":
        return made.build_encoder(INPUTS)
    return made.build_decoder(INPUTS, SIZE, ((SIZE,),)) if role == "decoder" else made.build_decoder(INPUTS)


def differ(one, other):
    (weights, out), (others, again) = one, other
    if {name: w.shape for name, w in weights.items()} != {name: w.shape for name, w in others.items()}:
        return True
    same = all(torch.equal(weights[name], others[name]) for name in weights)
    return not same or not all(map(torch.equal, out, again))


def own_settings(kind, role):
    """Dropout in front of the head and behind the embedding is not the body's own: between layers it is."""
    outside = ("kind", "size") if "depth" in class_of(kind, role).model_fields else ("kind", "size", "dropout")
    return [name for name in settings(class_of(kind, role)) if name not in (*outside, *BY_TASK)]


@pytest.mark.parametrize(("kind", "role"), EVERY)
def test_every_setting_changes_the_network(kind, role):
    for name in own_settings(kind, role):
        for value in alternatives(kind, role, name):
            changed = build(kind, role, ((name, value),))
            assert changed is None or differ(changed, build(kind, role)), f"{name} = {value} changes nothing"


@pytest.mark.parametrize(("kind", "role"), PAIRS)
def test_beside_any_choice_a_setting_changes_the_network_or_is_refused(kind, role):
    declared = settings(class_of(kind, role))
    names = own_settings(kind, role)
    only = {name for name in names if role == "encoder" or name not in own_settings(kind, "encoder")}
    for other in (name for name in names if name not in FORMULAS and declared[name].type not in (int, float)):
        for choice in alternatives(kind, role, other):
            if (beside := build(kind, role, ((other, choice),))) is None:
                continue
            for name in names if other in only else only:  # the others are tried with the encoder
                for value in alternatives(kind, role, name)[:1] if name != other else ():
                    changed = build(kind, role, ((other, choice), (name, value)))
                    words = f"with {other} = {choice}, {name} = {value} changes nothing"
                    assert changed is None or differ(changed, beside), words


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["train.momentum=0.5"], "train.momentum is 0.5, but it is read only with train.optimizer sgd"),
        (
            ["train.teacher_forcing_schedule=linear"],
            'train.teacher_forcing_schedule is "linear", but it is read only with a train.teacher_forcing below 1',
        ),
        (
            ["model.kind=lstm", "model.bias=false", "model.forget_bias=2.0"],
            "the encoder has forget_bias 2.0, but it is read only with bias",
        ),
        (
            ["task=classify", "model.kind=transformer", "model.max_positions=64"],
            'the model has max_positions 64, but it is read only with positions "learned"',
        ),
        (["model.kind=rnn", "model.forget_bias=2.0"], "rnn has no setting forget_bias; lstm"),
        (["model.kind=orthogonal", "model.init_gain=2.0"], "orthogonal has no setting init_gain; rnn"),
        (
            ["model.kind=gru", "model.decoder.initial_state=learned"],
            "the decoder has no setting initial_state; the encoder has",
        ),
        *(
            (["task=forecast", "model.kind=linear", f"model.{name}"], f"linear has no setting {name.split('=')[0]}")
            for name in ("size=8", "kernel_size=3", "pool=mean")
        ),
    ],
)
def test_what_nothing_reads_is_refused_with_who_reads_it(overrides, sentence):
    with pytest.raises(RecipeError) as caught:
        Recipe().override(*overrides)
    assert sentence in str(caught.value)


def test_what_is_read_is_taken():
    assert Recipe().override("train.optimizer=sgd", "train.momentum=0.5").train.momentum == 0.5
    assert Recipe().override("task=forecast", "model.size=8").override("model.kind=linear").notes  # left out, and said
