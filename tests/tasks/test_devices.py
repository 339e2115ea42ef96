"""A model on another device: everything it is given goes there, and everything that is read from it comes back.

No GPU is needed: a mode of torch pretends that the model's tensors, and all that is computed from them, are elsewhere,
and refuses what torch would refuse.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from seqloom.config.recipe import Recipe
from seqloom.tasks import declare
from seqloom.tasks.generation import SamplingOptions
from seqloom.tasks.task import Feed
from seqloom.training.loop import Training, evaluation_mode

from ..recipes import forecasting, walks
from .test_matrix import FEW

FAR, HERE = torch.device("cuda", 0), torch.device("cpu")
DEVICE = Tensor.device.__get__
FREE = (Tensor.__getitem__, Tensor.__setitem__)  # where indices may be here while the values are there


def is_far(tensor: Tensor) -> bool:
    return getattr(tensor, "far", False)


def marked(found: Any, far: bool) -> Any:
    for tensor in tree_leaves(found):
        if isinstance(tensor, Tensor):
            tensor.far = far  # type: ignore[attr-defined]
    return found


class Elsewhere(TorchFunctionMode):
    """Pretends that FAR is a device of its own."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func == DEVICE:
            return FAR if is_far(args[0]) else HERE
        if func is Tensor.cpu:
            return marked(args[0].clone(), False)
        assert func is not Tensor.numpy or not is_far(args[0]), "what is elsewhere has no memory here"
        wanted = kwargs.pop("device", None)
        if func is Tensor.to:
            like = [value for value in args[1:] if isinstance(value, Tensor)]
            wanted = wanted or next((value for value in args[1:] if isinstance(value, torch.device)), None)
            wanted = (FAR if is_far(like[0]) else HERE) if like else wanted
            rest = [value for value in args[1:] if not isinstance(value, torch.device)]
            found = args[0].to(*rest, **kwargs) if rest or kwargs else args[0].clone()
            return marked(found, is_far(args[0]) if wanted is None else wanted == FAR)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        places = {is_far(tensor) for tensor in tensors if tensor.ndim}
        mixed = is_far(tensors[0]) is False if func in FREE else True
        assert len(places) < 2 or not mixed, f"{func} is given tensors here and elsewhere"
        found = func(*args, **kwargs)
        return marked(found, wanted == FAR if wanted is not None else any(map(is_far, tensors)))


def sent(model: torch.nn.Module) -> torch.nn.Module:
    for tensor in (*model.parameters(), *model.buffers()):
        marked(tensor, True)
    return model


TEXT = "".join(f"{number} green bottles on the wall.\n" for number in range(40))
SMALL = ("model.size=16", "train.steps=4", "train.batch_tokens=256", "train.device=cpu")
CASES: dict[str, tuple[Callable[[], Recipe], Any, Any]] = {
    "seq2seq": (lambda: Recipe.of({"task": "seq2seq"}), [("abc", "cba"), ("bd", "db"), ("cad", "dac")] * 8, "abd"),
    "classify": (lambda: Recipe.of({"task": "classify"}), FEW["classify"][0], "a good plot"),
    "tag": (lambda: Recipe.of({"task": "tag"}), FEW["tag"][0], "a good plot"),
    "crf": (lambda: Recipe.of({"task": "tag"}).override("model.crf=true"), FEW["tag"][0], "a good plot"),
    "caption": (lambda: Recipe.of({"task": "caption"}), FEW["caption"][0], FEW["caption"][0][0][0]),
    "language": (lambda: Recipe.of({"task": "language"}).override("train.bptt_window=16"), TEXT, "7 green"),
    "forecast": (lambda: forecasting(), walks(), walks(40)),
}


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
@pytest.mark.parametrize("case", CASES)
def test_a_model_that_is_elsewhere_trains_validates_answers_and_is_scored(case: str, kind: str, tmp_path: Any) -> None:
    make, examples, asked = CASES[case]
    recipe = make().override(*SMALL, f"model.kind={kind}")
    if isinstance(examples, str):
        (tmp_path / "text.txt").write_text(examples)
        recipe, examples = recipe.override(f"data.train={tmp_path / 'text.txt'}"), None
    elif isinstance(examples, list):
        examples = {part: examples for part in ("train", "validation", "test")}
    task, prepared = declare(recipe).prepare(recipe.resolved(), lambda line: None, examples)
    model = sent(task.shape.build())
    objective = task.objective(model)
    with Elsewhere():
        training = Training(objective, Feed(task, prepared), task.recipe.train.resolved())
        while not training.finished:
            training.advance()
        with evaluation_mode(objective):
            assert np.isfinite(task.shape.validate(model, prepared)["loss"])
            assert task.shape.predict(model, [asked])[0]
            assert task.score(model, task.shape.examples(prepared, "test"))
            if task.writer:
                assert task.writer.generate(model, asked, SamplingOptions(length=20, count=2)).finish()


def test_the_pretence_refuses_what_torch_would() -> None:
    far = marked(torch.ones(3), True)
    with Elsewhere():
        assert far.device == (2 * far).device == FAR and far.cpu().device == HERE
        for wrong in (lambda: far + torch.ones(3), far.numpy, lambda: torch.ones(3)[far > 0]):
            with pytest.raises(AssertionError):
                wrong()
