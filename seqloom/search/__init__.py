"""Writing a sequence with any decoder, and knowing how well it was searched for.

Everything here asks a function `step(last, state) -> (logits, state)` and knows nothing of the model behind it.
"""

from .base import Abandoned as Abandoned
from .base import Constraint as Constraint
from .base import Hypothesis as Hypothesis
from .base import Patience as Patience
from .base import Step as Step
from .base import Stop as Stop
from .base import WrittenTokens as WrittenTokens
from .base import stop_unless_wanted as stop_unless_wanted
from .beams import BeamOptions as BeamOptions
from .beams import beam as beam
from .choosing import Sampling as Sampling
from .choosing import choose_likeliest as choose_likeliest
from .constraints import BannedPhrases as BannedPhrases
from .constraints import BannedTokens as BannedTokens
from .constraints import MinLength as MinLength
from .constraints import NoRepeat as NoRepeat
from .constraints import Prefix as Prefix
from .constraints import RepetitionPenalty as RepetitionPenalty
from .constraints import RequiredTokens as RequiredTokens
from .scoring import score as score
from .text import Pieces as Pieces
from .text import StopText as StopText
from .text import StopTokens as StopTokens
from .tree import Node as Node
from .tree import Recorder as Recorder
from .tree import Tree as Tree
from .writing import Pick as Pick
from .writing import greedy as greedy
from .writing import sample as sample
from .writing import sample_tokens as sample_tokens
from .writing import stream as stream
from .writing import write as write
