"""What an answer is worth that needs no learning, or hardly any: the floor every score stands beside (SPEC E6, C6).

Plain functions and small fitted tables from arrays and texts to answers; whoever scores a model scores these with the
same metrics. Nothing here knows a model, a task, a metric, or torch.
"""

from .texts import most_frequent, transduction

__all__ = ["most_frequent", "transduction"]
