"""Settings that had another name before 0.2: whoever still types one is told the new one. Gone with 0.3."""

RENAMED = {
    "data.vocabulary_size": "data.vocabulary_size",
    "data.source_tokenizer": "data.source_tokenizer",
    "data.target_tokenizer": "data.target_tokenizer",
    "model.bidirectional": "model.bidirectional",
    "model.variational_dropout": "model.variational_dropout",
    "model.recurrent_weight_dropout": "model.recurrent_weight_dropout",
    "model.initial_state": "model.initial_state",
    "model.init": "model.init",
    "model.init_gain": "model.init_gain",
    "model.weight_constraint": "model.weight_constraint",
    "model.max_positions": "model.max_positions",
    "model.norm_type": "model.norm_type",
    "model.candidate_activation": "model.candidate_activation",
    "model.reset_gate": "model.reset_gate",
    "model.attention_style": "model.attention_style",
    "model.hard_attention": "model.hard_attention",
    "model.channel_independent": "model.channel_independent",
    "model.patch_length": "model.patch_length",
    "train.learning_rate": "train.learning_rate",
    "train.batch_tokens": "train.batch_tokens",
    "train.teacher_forcing": "train.teacher_forcing",
    "train.teacher_forcing_schedule": "train.teacher_forcing_schedule",
    "train.ema": "train.ema",
    "train.sampled_softmax": "train.sampled_softmax",
    "train.label_smoothing": "train.label_smoothing",
    "train.class_weights": "train.class_weights",
    "train.select_by": "train.select_by",
    "train.keep_checkpoints": "train.keep_checkpoints",
    "train.watch_every": "train.watch_every",
    "train.bptt_window": "train.bptt_window",
    "train.accumulate_batches": "train.accumulate_batches",
    "train.clip_norm": "train.clip_norm",
    "train.optimizer": "train.optimizer",
    "search.beam_size": "search.beam_size",
}

RENAMED_RECIPES = {"transduce": "seq2seq"}  # and the task


def renamed(name: str) -> str:
    """The name that a setting has now; nothing if it never had another."""
    section, _, key = name.rpartition(".")
    side = section.startswith("model.")
    new = RENAMED.get(f"{'model' if side else section}.{key}", "")
    return f"{section}.{new.rpartition('.')[2]}" if new else ""
