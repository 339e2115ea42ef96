"""Settings that had another name before 0.2: whoever still types one is told the new one. Gone with 0.3."""

RENAMED = {
    "data.max_size": "data.vocabulary_size",
    "data.source_tokens": "data.source_tokenizer",
    "data.target_tokens": "data.target_tokenizer",
    "model.both_ways": "model.bidirectional",
    "model.locked": "model.variational_dropout",
    "model.recurrent_dropout": "model.recurrent_weight_dropout",
    "model.start": "model.initial_state",
    "model.initial": "model.init",
    "model.gain": "model.init_gain",
    "model.recurrence": "model.weight_constraint",
    "model.longest": "model.max_positions",
    "model.normalise": "model.norm_type",
    "model.candidate": "model.candidate_activation",
    "model.reset": "model.reset_gate",
    "model.look": "model.attention_style",
    "model.hard": "model.hard_attention",
    "model.alone": "model.channel_independent",
    "model.span": "model.patch_length",
    "train.rate": "train.learning_rate",
    "train.batch": "train.batch_tokens",
    "train.teacher": "train.teacher_forcing",
    "train.teacher_schedule": "train.teacher_forcing_schedule",
    "train.average": "train.ema",
    "train.sampled": "train.sampled_softmax",
    "train.smoothing": "train.label_smoothing",
    "train.balanced": "train.class_weights",
    "train.best": "train.select_by",
    "train.keep": "train.keep_checkpoints",
    "train.watch": "train.watch_every",
    "train.window": "train.bptt_window",
    "train.accumulate": "train.accumulate_batches",
    "train.clip": "train.clip_norm",
    "train.optimiser": "train.optimizer",
    "search.width": "search.beam_size",
}

RENAMED_RECIPES = {"transduce": "seq2seq"}  # and the task


def renamed(name: str) -> str:
    """The name that a setting has now; nothing if it never had another."""
    section, _, key = name.rpartition(".")
    side = section.startswith("model.")
    new = RENAMED.get(f"{'model' if side else section}.{key}", "")
    return f"{section}.{new.rpartition('.')[2]}" if new else ""
