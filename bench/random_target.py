#!/usr/bin/env python3
"""random_target.py - a Qwen3 checkpoint of random weights, and tokens for it, to try sizes.

    bench/random_target.py DIR [--hidden 5120 --layers 6 ... --rows 6] [--tokens-only]

Writes DIR/config.json and DIR/model-*.safetensors (bf16, one file a layer) and
DIR/tokens.jsonl, documents of 8192 random tokens.  The defaults have the widths and the
vocabulary of Qwen3.6-27B in few layers: what draft-train asks of a target does not depend
on their number.  Needs numpy."""
import argparse
import json
import os

import numpy as np


def write(path, tensors, rng):
    """tensors: name -> shape; norms are ones, all else is uniform, sigma 0.02."""
    header, at, parts = {}, 0, []
    for name, shape in tensors.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name, shape in tensors.items():
            left = int(np.prod(shape))
            while left > 0:
                n = min(left, 1 << 24)
                if "norm" in name:
                    v = np.ones(n, np.float32)
                else:
                    v = (rng.random(n, np.float32) - np.float32(0.5)) * np.float32(0.07)
                f.write((v.view(np.uint32) >> 16).astype("<u2").tobytes())
                left -= n


def layer(p, a):
    q, kv = a.heads * a.head_dim, a.kv_heads * a.head_dim
    return {f"{p}.input_layernorm.weight": (a.hidden,), f"{p}.post_attention_layernorm.weight": (a.hidden,),
            f"{p}.self_attn.q_proj.weight": (q, a.hidden), f"{p}.self_attn.k_proj.weight": (kv, a.hidden),
            f"{p}.self_attn.v_proj.weight": (kv, a.hidden), f"{p}.self_attn.o_proj.weight": (a.hidden, q),
            f"{p}.self_attn.q_norm.weight": (a.head_dim,), f"{p}.self_attn.k_norm.weight": (a.head_dim,),
            f"{p}.mlp.gate_proj.weight": (a.inter, a.hidden), f"{p}.mlp.up_proj.weight": (a.inter, a.hidden),
            f"{p}.mlp.down_proj.weight": (a.hidden, a.inter)}


def describe(a, rng):
    with open(f"{a.dir}/config.json", "w") as f:
        json.dump({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": a.hidden,
                   "intermediate_size": a.inter, "num_hidden_layers": a.layers, "num_attention_heads": a.heads,
                   "num_key_value_heads": a.kv_heads, "head_dim": a.head_dim, "vocab_size": a.vocab,
                   "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1e7,
                   "tie_word_embeddings": False, "attention_bias": False, "hidden_act": "silu",
                   "dtype": "bfloat16"}, f)
    with open(f"{a.dir}/tokens.jsonl", "w") as f:
        for _ in range(a.rows):
            f.write(json.dumps({"input_ids": rng.integers(0, a.vocab - 8, a.length).tolist()}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    for name, value in (("hidden", 5120), ("layers", 6), ("heads", 32), ("kv-heads", 8), ("head-dim", 128),
                        ("inter", 17408), ("vocab", 248320), ("rows", 6), ("length", 8192), ("seed", 1)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--tokens-only", action="store_true", help="config.json and tokens.jsonl, no weights")
    a = parser.parse_args()
    rng = np.random.default_rng(a.seed)
    os.makedirs(a.dir, exist_ok=True)
    describe(a, np.random.default_rng(a.seed + 1))
    if a.tokens_only:
        return
    files = {"embed": {"model.embed_tokens.weight": (a.vocab, a.hidden)},
             "head": {"lm_head.weight": (a.vocab, a.hidden), "model.norm.weight": (a.hidden,)}}
    for i in range(a.layers):
        files[f"layer-{i}"] = layer(f"model.layers.{i}", a)
    index = {}
    for name, tensors in files.items():
        write(f"{a.dir}/model-{name}.safetensors", tensors, rng)
        index.update(dict.fromkeys(tensors, f"model-{name}.safetensors"))
    with open(f"{a.dir}/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": index}, f)


main()
