"""Words composed of their letters: padding changes nothing, and the window is PyTorch's convolution."""

import pytest
import torch
from torch import nn

from seqloom.layers.character_embeddings import CharacterCNN, CharacterRNN, CharacterWordEmbedding

WORDS = torch.tensor([[5, 3, 9, 0, 0, 0], [7, 0, 0, 0, 0, 0], [4, 4, 8, 2, 6, 1]])


@pytest.mark.parametrize("make", [CharacterCNN, CharacterRNN])
def test_what_stands_behind_a_word_changes_nothing(make):
    torch.manual_seed(0)
    letters = make(11, 8).double()
    together = letters(WORDS)
    for row, word in enumerate(WORDS):
        alone = letters(word[word != 0][None])
        assert torch.allclose(alone[0], together[row], atol=1e-12)


def test_the_window_over_letters_is_a_convolution():
    torch.manual_seed(0)
    letters = CharacterCNN(11, 8).double()
    slide = nn.Conv1d(32, 8, 3, padding=1).double()
    with torch.no_grad():
        slide.weight.copy_(letters.slide.weight.unflatten(1, (3, 32)).permute(0, 2, 1))
        slide.bias.copy_(letters.slide.bias)
    word = WORDS[2:]
    assert torch.allclose(slide(letters.embed(word).mT).amax(2), letters(word), atol=1e-12)


@pytest.mark.parametrize("make", [CharacterCNN, CharacterRNN])
def test_each_word_is_read_once_and_stands_wherever_it_occurs(make):
    torch.manual_seed(0)
    layer = CharacterWordEmbedding(20, make(11, 8), 8, 6).double()
    numbers = torch.tensor([[3, 4, 3], [5, 3, 4]])
    spelled = WORDS[torch.tensor([[0, 1, 0], [2, 0, 1]])]
    x = torch.cat([numbers[..., None], spelled], -1)
    whole = layer(x)
    assert whole.shape == (2, 3, 6)
    for row in range(2):
        for place in range(3):
            assert torch.allclose(layer(x[row : row + 1, place : place + 1])[0, 0], whole[row, place], atol=1e-12)
    whole.sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())
