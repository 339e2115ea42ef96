"""HTTP for trained runs: Open Inference Protocol v2, OpenAI's completions, and routes of our own.

A request passes `safety` (who asks, and how much), its protocol (`oip`, `openai`, `ours`), the `engine`, and waits for
the `batching` thread, which is the only one that touches a model. `runs` loads and unloads them, `models` is all that
this package knows of the rest of seqloom.
"""
