"""What an answer is worth that needs no learning, or hardly any: the floor every score stands beside.

Plain functions and small fitted tables from arrays and texts to answers; whoever scores a model scores these with the
same metrics. Nothing here knows a model, a task, a metric, or torch.

    texts        copy, most frequent target
    labels       chance, majority, tag of the word, nearest centroid of series
    bags         naive Bayes on words and pairs of neighbors
    language     uniform, unigram, n-grams (Kneser–Ney)
    numbers      persistence, seasonal naive, linear autoregression
    captions     best constant caption, caption of the nearest image
    music        frequency of pitches, the frame before
"""

from .texts import copy_and_most_frequent, most_frequent

__all__ = ["most_frequent", "copy_and_most_frequent"]
