"""The other end of `_peers.CTranslate2`: builds the model from an .npz, then answers a line of JSON with a line."""

import json
import sys
import time
from pathlib import Path

sys.modules["torch"] = None  # type: ignore[assignment]  # its threads would be in the way

import ctranslate2  # noqa: E402
import numpy as np  # noqa: E402
from ctranslate2.specs import common_spec, transformer_spec  # noqa: E402


def build(file: str, heads: int) -> str:
    weights = dict(np.load(file))
    depth = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder."))
    spec = transformer_spec.TransformerSpec.from_config(
        (depth, depth), heads, pre_norm=False, activation=common_spec.Activation.GELU
    )

    def linear(place, *names):
        place.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
        place.bias = np.concatenate([weights[f"{name}.bias"] for name in names])

    def norm(place, name):
        place.gamma, place.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        table = part.embeddings[0] if side == "encoder" else part.embeddings
        table.weight, part.scale_embeddings = weights["embeddings"], True
        part.position_encodings.encodings = weights["positions"]
        for number, layer in enumerate(part.layer):
            name = f"{side}.layers.{number}"
            own = f"{name}.self_attn"
            linear(layer.self_attention.linear[0], *(f"{own}.{letter}_proj" for letter in "qkv"))
            linear(layer.self_attention.linear[1], f"{own}.out_proj")
            norm(layer.self_attention.layer_norm, f"{name}.self_attn_layer_norm")
            if side == "decoder":
                other = f"{name}.encoder_attn"
                linear(layer.attention.linear[0], f"{other}.q_proj")
                linear(layer.attention.linear[1], f"{other}.k_proj", f"{other}.v_proj")
                linear(layer.attention.linear[2], f"{other}.out_proj")
                norm(layer.attention.layer_norm, f"{name}.encoder_attn_layer_norm")
            linear(layer.ffn.linear_0, f"{name}.fc1")
            linear(layer.ffn.linear_1, f"{name}.fc2")
            norm(layer.ffn.layer_norm, f"{name}.final_layer_norm")
    linear(spec.decoder.projection, "head")
    symbols = ["<pad>", "<unk>", "<s>", "</s>", *map(str, range(4, len(weights["embeddings"])))]
    spec.register_source_vocabulary(symbols)
    spec.register_target_vocabulary(symbols)
    spec.config.decoder_start_token, spec.config.add_source_eos = "<s>", False
    spec.config.bos_token, spec.config.eos_token = "<s>", "</s>"
    spec.validate()
    folder = Path(file).with_name("model")
    folder.mkdir()
    spec.save(str(folder))
    return str(folder)


def main() -> None:
    file, heads, threads, kind = sys.argv[1:]
    clock = time.process_time if threads == "1" else time.perf_counter
    translator = ctranslate2.Translator(
        build(file, int(heads)), compute_type=kind, intra_threads=int(threads), inter_threads=1
    )
    for line in sys.stdin:
        asked = json.loads(line)
        source = [list(map(str, row)) for row in asked["tokens"]]
        begun = clock()
        found = translator.translate_batch(
            source,
            beam_size=asked["width"],
            max_decoding_length=asked["steps"],
            num_hypotheses=1,
            disable_unk=False,
        )
        seconds = clock() - begun
        names = {"<pad>": 0, "<unk>": 1, "<s>": 2}
        tokens = [[names.get(word) or int(word) for word in one.hypotheses[0]] for one in found]
        print(json.dumps({"seconds": seconds, "tokens": tokens}), flush=True)


if __name__ == "__main__":
    main()
