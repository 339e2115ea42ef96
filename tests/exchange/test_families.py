"""Every family: their logits from our layers, and ours from theirs."""

import pytest
import torch

from seqloom.exchange import huggingface
from seqloom.layers.tap import recording

from .theirs import KINDS, PADDING, WITH_LOGITS, draw_ids, make, transformers, write

close = torch.testing.assert_close
NEAR = {"atol": 1e-4, "rtol": 1e-4}
each_kind = pytest.mark.parametrize("kind", WITH_LOGITS)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def positions_of(mask):
    """What a token's position is if padding takes no place."""
    return (mask.cumsum(1) - 1).clamp(min=0)


def ask_alone(theirs, kind, ids, target=None, **options):
    """Their logits of one row without any padding."""
    if kind.startswith("marian"):
        options["decoder_input_ids"] = target
    found = theirs(input_ids=ids, **options)
    return found.prediction_logits if kind == "bert-pretraining" else found.logits


def our_logits(ours, kind, ids, mask, target=None, target_mask=None):
    return ours.logits(ids, mask, target, target_mask) if kind.startswith("marian") else ours.logits(ids, mask)


@each_kind
@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (4, 13)])
@torch.no_grad()
def test_a_loaded_folder_gives_their_logits(kind, shape, tmp_path):
    theirs = write(kind, tmp_path)
    ours, ids, target = huggingface.load(tmp_path), draw_ids(*shape), draw_ids(shape[0], 5, 45)
    found = our_logits(ours, kind, ids, None, target)
    close(found, ask_alone(theirs, kind, ids, target), **NEAR)
    assert found.std() > 0.1, "logits that are all alike compare nothing"


@each_kind
@pytest.mark.parametrize("side", PADDING)
@torch.no_grad()
def test_padding_on_either_side_changes_nothing_of_theirs(kind, side, tmp_path):
    """Each row is held against theirs, asked alone: there is then nothing to get wrong about padding."""
    theirs, ours = write(kind, tmp_path), huggingface.load(tmp_path)
    mask, ids, target = PADDING[side], draw_ids(3, 9), draw_ids(3, 9, 45)
    found = our_logits(ours, kind, ids.masked_fill(~mask, 10**9), mask.long(), target, mask)
    for row, seen in enumerate(mask):
        alone = ask_alone(theirs, kind, ids[row : row + 1, seen], target[row : row + 1, seen])[0]
        close(found[row] if found.dim() == 2 else found[row][seen], alone, **NEAR)


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
@pytest.mark.parametrize("side", PADDING)
@torch.no_grad()
def test_a_padded_batch_is_theirs_when_both_count_positions_alike(kind, side, tmp_path):
    theirs, ours = write(kind, tmp_path), huggingface.load(tmp_path)
    mask, ids = PADDING[side], draw_ids(3, 9)
    positions = positions_of(mask) + (2 if kind == "roberta" else 0)
    expected = theirs(input_ids=ids, attention_mask=mask.long(), position_ids=positions).logits
    close(ours.logits(ids, mask)[mask], expected[mask], **NEAR)


@each_kind
@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_where_padding_counts_as_in_transformers_a_batch_is_theirs_as_it_is(kind, side, tmp_path):
    theirs, ours = write(kind, tmp_path), huggingface.load(tmp_path, count_padding=True)
    mask, padding = PADDING[side], theirs.config.pad_token_id
    ids, target = draw_ids(3, 9, 44).masked_fill(~mask, 0 if padding is None else padding), draw_ids(3, 9, 45)
    expected = ask_alone(theirs, kind, ids, target, attention_mask=mask.long())
    found = our_logits(ours, kind, ids, mask, target)
    if kind.startswith("marian"):
        close(found, expected, **NEAR)
    elif expected.dim() == 3:
        close(found[mask], expected[mask], **NEAR)
    elif side == "right":  # theirs takes the vector of a text from its first place, padding or not
        close(found, expected, **NEAR)


@pytest.mark.parametrize("kind", ["bert", "bert-sequence", "bert-relu", "roberta"])
@torch.no_grad()
def test_segments_are_theirs(kind, tmp_path):
    theirs, ours = write(kind, tmp_path), huggingface.load(tmp_path)
    ids, segments = draw_ids(2, 8), torch.randint(2, (2, 8))
    expected = theirs(input_ids=ids, token_type_ids=segments).logits
    close(ours.logits(ids, segments=segments), expected, **NEAR)
    assert not torch.allclose(expected, theirs(input_ids=ids).logits, atol=1e-2)


@torch.no_grad()
def test_the_next_sentence_is_theirs(tmp_path):
    theirs, ours = write("bert-pretraining", tmp_path), huggingface.load(tmp_path)
    ids, segments = draw_ids(2, 8), torch.randint(2, (2, 8))
    expected = theirs(input_ids=ids, token_type_ids=segments).seq_relationship_logits
    close(ours.next_sentence_logits(ids, segments=segments), expected, **NEAR)


@pytest.mark.parametrize("kind", ["bert-body", "distilbert-body", "roberta-body"])
@torch.no_grad()
def test_a_body_alone_has_features(kind, tmp_path):
    theirs, ours, ids = write(kind, tmp_path), huggingface.load(tmp_path), draw_ids(2, 7)
    memory, expected = ours.read(ids), theirs(input_ids=ids)
    close(memory.values, expected.last_hidden_state, **NEAR)
    if "distil" not in kind:
        close(memory.summary, expected.pooler_output, **NEAR)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_what_is_saved_is_theirs_again(kind, tmp_path):
    """The same names, shapes and numbers as their own folder; so nothing is missing, left over or turned around."""
    theirs = write(kind, tmp_path / "theirs")
    huggingface.save(huggingface.load(tmp_path / "theirs"), tmp_path / "ours")
    again, notes = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(notes[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    expected, found = theirs.state_dict(), again.state_dict()
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name
    assert again.config.to_dict().items() >= {
        (key, value) for key, value in KINDS[kind][1].items() if key != "num_labels"
    }


@pytest.mark.parametrize("kind", ["bert", "bert-sequence", "distilbert", "roberta", "gpt2", "marian"])
def test_what_is_trained_here_is_loaded_there_with_equal_logits(kind, tmp_path):
    architecture, said = KINDS[kind]
    name = make(kind).config.model_type
    ours = huggingface.create(
        {"model_type": name, **{k: v for k, v in said.items() if k != "num_labels"}}, architecture
    )
    ids, target = draw_ids(4, 6), draw_ids(4, 5)
    optimizer = torch.optim.Adam(ours.parameters(), 0.02)
    for _ in range(3):
        logits = our_logits(ours.train(), kind, ids, None, target)
        wanted = torch.zeros(logits.shape[:-1], dtype=torch.long)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    huggingface.save(ours.eval(), tmp_path / "made")
    theirs = getattr(transformers, architecture).from_pretrained(tmp_path / "made").eval()
    with torch.no_grad():
        found = our_logits(ours, kind, ids, None, target)
        close(found, ask_alone(theirs, kind, ids, target), **NEAR)
    assert found.argmax(-1).eq(0).any(), "three steps towards token 0 have moved nothing"


@pytest.mark.parametrize("kind", ["bert", "distilbert", "gpt2"])
@torch.no_grad()
def test_recorded_attention_is_theirs(kind, tmp_path):
    theirs, ours, ids = write(kind, tmp_path), huggingface.load(tmp_path), draw_ids(2, 7)
    theirs.set_attn_implementation("eager")
    with recording(ours, "*attend.weights") as tape:
        ours.logits(ids)
    expected = theirs(input_ids=ids, output_attentions=True).attentions
    assert len(tape) == len(expected) == 2
    for (weights,), one in zip(tape.values(), expected, strict=True):
        close(weights, one, **NEAR)


@torch.no_grad()
def test_recorded_attention_of_a_translator_is_theirs(tmp_path):
    theirs, ours, ids, target = write("marian", tmp_path), huggingface.load(tmp_path), draw_ids(2, 7), draw_ids(2, 5)
    theirs.set_attn_implementation("eager")
    with recording(ours, "*attend.weights") as tape:
        ours.logits(ids, decoder_ids=target)
    told = theirs(input_ids=ids, decoder_input_ids=target, output_attentions=True)
    encoder = [weights for name, (weights,) in tape.items() if "source" in name]
    own, cross = ([weights for name, (weights,) in tape.items() if "source" not in name][first::2] for first in (0, 1))
    for found, expected in (
        (encoder, told.encoder_attentions),
        (own, told.decoder_attentions),
        (cross, told.cross_attentions),
    ):
        assert len(found) == len(expected) > 1
        for weights, one in zip(found, expected, strict=True):
            close(weights, one, **NEAR)


PUBLISHED = {  # of the body, and with the head that it was trained with
    "bert-base": (109_482_240, 110_106_428, "BertModel", "BertForPreTraining"),
    "bert-large": (335_141_888, 336_226_108, "BertModel", "BertForPreTraining"),
    "gpt2": (124_439_808, 124_439_808, "GPT2Model", "GPT2LMHeadModel"),
    "gpt2-medium": (354_823_168, 354_823_168, "GPT2Model", "GPT2LMHeadModel"),
    "distilbert": (66_362_880, 66_985_530, "DistilBertModel", "DistilBertForMaskedLM"),
}


@pytest.mark.parametrize("preset", huggingface.PRESETS)
def test_presets_have_the_published_numbers_of_parameters(preset):
    from seqloom.exchange.huggingface.folder import FAMILIES, build, read_settings

    body, whole, *names = PUBLISHED[preset]
    said = huggingface.PRESETS[preset]
    family = FAMILIES[said["model_type"]]
    for count, name in zip((body, whole), names, strict=True):
        settings = read_settings(family, said, preset)
        assert build(family, settings, name, family.needed.get(name, frozenset())).count_parameters() == count
        theirs = getattr(transformers, name)
        with torch.device("meta"):
            made = theirs(theirs.config_class(**{key: value for key, value in said.items() if key != "model_type"}))
        assert sum(parameter.numel() for parameter in made.parameters()) == count


@pytest.mark.parametrize("preset", huggingface.PRESETS)
@torch.no_grad()
def test_presets_as_wide_as_they_are_give_their_logits(preset, tmp_path):
    """With one layer and few words, so that it takes a moment and not a gigabyte."""
    said = {key: value for key, value in huggingface.PRESETS[preset].items() if key != "model_type"}
    theirs = getattr(transformers, PUBLISHED[preset][3])
    depth = {theirs.config_class.attribute_map.get("num_hidden_layers", "num_hidden_layers"): 1}
    model = theirs(
        theirs.config_class(**{**said, **depth, "vocab_size": 99, "bos_token_id": 0, "eos_token_id": 0})
    ).eval()
    model.save_pretrained(tmp_path)
    ids = draw_ids(2, 33, 99)
    expected = ask_alone(model, "bert-pretraining" if "bert-" in preset else preset, ids)
    close(huggingface.load(tmp_path).logits(ids), expected, **NEAR)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
@torch.no_grad()
def test_another_head_keeps_the_body(kind, tmp_path):
    write(kind, tmp_path / "masked")
    model = huggingface.load(tmp_path / "masked")
    name = model.architecture.replace("MaskedLM", "SequenceClassification")
    other = huggingface.change_head(model, name, ["bad", "so so", "good"])
    ids = draw_ids(2, 6)
    close(other.read(ids).values, model.read(ids).values)
    huggingface.save(other.eval(), tmp_path / "labels")
    theirs = getattr(transformers, name).from_pretrained(tmp_path / "labels").eval()
    assert theirs.config.id2label == {0: "bad", 1: "so so", 2: "good"}
    close(other.logits(ids), theirs(input_ids=ids).logits, **NEAR)
