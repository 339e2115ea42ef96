"""Other names of settings: those from before 0.2, gone with 0.3, and those that other tools have for them."""

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

# What other tools call it: PyTorch, Keras, Hugging Face, fairseq and OpenNMT, Lightning.
ELSEWHERE = {
    "model.kind": "model_type arch architecture cell cell_type rnn_type",
    "model.size": "hidden_size hidden_dim d_model units n_embd rnn_size hidden_units",
    "model.depth": "num_layers n_layers n_layer layers num_hidden_layers",
    "model.dropout": "dropout_rate dropout_prob hidden_dropout_prob",
    "model.embedding": "embedding_dim embedding_size embed_dim emb_dim word_vec_size",
    "model.heads": "n_heads n_head num_heads nhead num_attention_heads",
    "model.feed_forward": "dim_feedforward d_ff ffn_dim intermediate_size feed_forward_size",
    "model.kernel_size": "kernel window filter_size",
    "model.tied": "tie_embeddings tie_weights weight_tying tie_word_embeddings",
    "train.learning_rate": "lr rate_max base_lr",
    "train.batch_tokens": "batch_size per_device_train_batch_size max_tokens",
    "train.steps": "epochs num_epochs max_epochs n_epochs num_train_epochs max_steps iterations train_steps",
    "train.optimizer": "optim",
    "train.schedule": "scheduler lr_scheduler lr_scheduler_type",
    "train.warmup": "warmup_steps num_warmup_steps",
    "train.weight_decay": "wd l2",
    "train.clip_norm": "grad_clip max_grad_norm gradient_clip_val clip_grad clipnorm",
    "train.accumulate_batches": "gradient_accumulation_steps accumulate_grad_batches update_freq",
    "train.seed": "random_seed random_state",
    "train.patience": "early_stopping early_stopping_patience",
    "data.vocabulary_size": "vocab_size num_words max_features",
    "data.max_length": "max_len maxlen max_seq_len max_seq_length seq_len block_size",
    "data.validation_share": "val_split validation_split valid_size val_size eval_size",
    "data.test_share": "test_split test_size",
    "data.source": "text_column text_col source_column input_column x_col",
    "data.target": "label_column label_col target_column y_col",
    "data.separator": "sep delimiter",
    "train.precision": "fp16 bf16 amp mixed_precision",
    "train.device": "gpu cuda use_gpu accelerator",
    "train.select_by": "metric monitor metric_for_best_model",
    "search.beam_size": "num_beams beam_width beam",
}
UNITS = {"train.batch_tokens": "tokens, not examples", "train.steps": "steps, not epochs"}


def find_new_name(name: str) -> str:
    """The name that a setting has now; nothing if it never had another."""
    section, _, key = name.rpartition(".")
    side = section.startswith("model.")
    new = RENAMED.get(f"{'model' if side else section}.{key}", "")
    return f"{section}.{new.rpartition('.')[2]}" if new else ""


def find_foreign_name(name: str) -> str:
    """The setting that other tools give this name; nothing if none does."""
    section, _, key = name.rpartition(".")
    own = next((ours for ours, theirs in ELSEWHERE.items() if key in theirs.split()), "")
    table, _, ours = own.partition(".")
    return f"{section}.{ours}" if section.startswith(f"{table}.") else own
