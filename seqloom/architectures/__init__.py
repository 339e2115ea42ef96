"""The architectures, one file a family: the settings of each kind beside the functions that build a network of them.

Importing this loads no torch: a recipe is read, shown and refused without it.
"""

from .bag import Bag
from .base import Architecture as Architecture
from .convolution import Convolution, Linear
from .recurrent import GRU, GRUD, LSTM, RNN, Coupled, MinGRU, MinLSTM, Orthogonal, Peephole
from .transformer import Transformer

DEFAULT = "gru"
ARCHITECTURES: dict[str, type[Architecture]] = {
    "rnn": RNN,
    "lstm": LSTM,
    "peephole": Peephole,
    "coupled": Coupled,
    "gru": GRU,
    "gru-d": GRUD,
    "orthogonal": Orthogonal,
    "mingru": MinGRU,
    "minlstm": MinLSTM,
    "convolution": Convolution,
    "linear": Linear,
    "transformer": Transformer,
    "bag": Bag,
}
