"""Small models of transformers' own, with weights drawn by chance, in folders as that library writes them."""

from pathlib import Path
from typing import Any

import torch
import transformers

transformers.utils.logging.disable_progress_bar()

VOCABULARY = 50
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 36,
    "max_position_embeddings": 20,
}
DISTILLED = {
    "vocab_size": VOCABULARY,
    "dim": 24,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 36,
    "max_position_embeddings": 20,
}
GPT = {
    "vocab_size": VOCABULARY,
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 3,
    "n_positions": 40,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
MARIAN = {
    "vocab_size": VOCABULARY,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 36,
    "decoder_ffn_dim": 30,
    "max_position_embeddings": 40,
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": 44,
    "decoder_start_token_id": 44,
    "eos_token_id": 0,
    "forced_eos_token_id": None,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # the class, and what its configuration says
    "bert": ("BertForMaskedLM", SIZES),
    "bert-pretraining": ("BertForPreTraining", SIZES),
    "bert-relu": ("BertForMaskedLM", {**SIZES, "hidden_act": "relu", "type_vocab_size": 3, "layer_norm_eps": 1e-3}),
    "bert-sequence": ("BertForSequenceClassification", {**SIZES, "num_labels": 4}),
    "bert-token": ("BertForTokenClassification", {**SIZES, "num_labels": 5}),
    "distilbert": ("DistilBertForMaskedLM", DISTILLED),
    "distilbert-sequence": ("DistilBertForSequenceClassification", DISTILLED),
    "distilbert-token": ("DistilBertForTokenClassification", {**DISTILLED, "num_labels": 5}),
    "roberta": ("RobertaForMaskedLM", SIZES),
    "roberta-one-segment": ("RobertaForMaskedLM", {**SIZES, "type_vocab_size": 1, "pad_token_id": 3}),
    "roberta-sequence": ("RobertaForSequenceClassification", {**SIZES, "num_labels": 4}),
    "roberta-token": ("RobertaForTokenClassification", SIZES),
    "gpt2": ("GPT2LMHeadModel", GPT),
    "gpt2-untied": ("GPT2LMHeadModel", {**GPT, "tie_word_embeddings": False, "n_inner": 31}),
    "marian": ("MarianMTModel", MARIAN),
    "marian-separate": (
        "MarianMTModel",
        {**MARIAN, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 45, "scale_embedding": False},
    ),
    "bert-body": ("BertModel", SIZES),
    "distilbert-body": ("DistilBertModel", DISTILLED),
    "roberta-body": ("RobertaModel", SIZES),
    "gpt2-body": ("GPT2Model", GPT),
}
WITH_LOGITS = [name for name in KINDS if not name.endswith("body")]
PADDING = {
    "none": torch.ones(3, 9).bool(),
    "right": torch.arange(9) < torch.tensor([9, 4, 1])[:, None],
    "left": torch.arange(9) >= torch.tensor([0, 5, 8])[:, None],
}


def make(kind: str, seed: int = 0, **options: Any) -> Any:
    """A model of theirs, with no weight at a special value: a bias of zero would hide mistakes."""
    architecture, said = KINDS[kind]
    theirs = getattr(transformers, architecture)
    torch.manual_seed(seed)
    model = theirs(theirs.config_class(**{**said, **options})).eval()
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias += torch.randn_like(model.final_logits_bias)
    return model


def write(kind: str, folder: Path, seed: int = 0, **options: Any) -> Any:
    """The model, and its folder."""
    model = make(kind, seed, **options)
    model.save_pretrained(folder)
    return model


def draw_ids(rows: int, time: int, most: int = VOCABULARY, least: int = 4) -> torch.Tensor:
    return torch.randint(least, most, (rows, time))
