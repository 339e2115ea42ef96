"""The text of model.py: what is the same for all models. Lines of a constructor stand between."""

HEADER = '''"""{title}

Plain torch.nn. `load()` gives the model with its weights, ready to be asked.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
'''

MASK = '''

def mask_of(lengths, time):
    """True up to the length of each row."""
    return torch.arange(time) < lengths[:, None]
'''

RECURRENT = '''

def run_recurrent(layers, x, lengths):
    """Values (batch, time, features), zero behind the end of each row, and where each layer arrives."""
    mask, ends = mask_of(lengths, x.shape[1])[..., None], []
    for layer in layers:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
        y, end = layer(packed)
        x = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0] * mask
        entries = end if isinstance(end, tuple) else (end,)
        some = (lengths > 0)[:, None]  # a row without elements stays where it started
        ends.append(tuple(torch.cat(list(entry), 1) * some for entry in entries))
    return x, ends
'''

TRANSFORMER = """

def run_transformer(layers, x, lengths, causal):
    mask = mask_of(lengths, x.shape[1])
    hidden = ~mask & (lengths > 0)[:, None]  # attention to nothing at all is not a number
    past = nn.Transformer.generate_square_subsequent_mask(x.shape[1]).isinf() if causal else None
    return layers(x, mask=past, src_key_padding_mask=hidden) * mask[..., None], []
"""

SINUSOIDAL = """

def sinusoids(time, size):
    rate = 10000.0 ** (-torch.arange(0, size, 2) / size)
    angle = torch.arange(time)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :size]
"""

POOLS = {
    "mean": "values.sum(1) / lengths.clamp(min=1)[:, None]",
    "sqrtn": "values.sum(1) / lengths.clamp(min=1).sqrt()[:, None]",
    "max": "torch.where((lengths > 0)[:, None], values.masked_fill(~mask[..., None], -3.4e38).amax(1), 0)",
    "last": "values[torch.arange(len(values)), (lengths - 1).clamp(min=0)]",
    "first": "values[:, 0]",
    "ends": "torch.cat([values[torch.arange(len(values)), (lengths - 1).clamp(min=0), : values.shape[2] // 2], "
    "values[:, 0, values.shape[2] // 2 :]], 1)",
    "flatten": "values.flatten(1)",
}

LOAD = '''

def load():
    """The model with its weights."""
    net = Model()
    net.load_state_dict(load_file(Path(__file__).resolve().parent / "model.safetensors"))
    return net.eval()
'''
