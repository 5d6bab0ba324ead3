#!/usr/bin/env python3
# make_hybrid.py FOLDER - a small target of the Qwen3.5 kind whose heads are as wide as
# published ones', and what it computes, in f64.  How tests/golden/target-hybrid-wide came
# about (numpy 2.4.6):
#
#   python3 tests/golden/make_hybrid.py tests/golden/target-hybrid-wide
#
# The recurrence goes token by token, each document alone.
import json
import sys
from pathlib import Path

import numpy as np

WIDTH, MLP, VOCAB, LAYERS, EPS = 64, 96, 256, ("linear", "full"), 1e-6
HEADS, KV, DIM, TURN, THETA = 2, 1, 256, 64, 1e7
KEYS, VALUES, SIZE = 2, 4, 128
LENGTHS = (1, 2, 3, 5, 17, 63, 64, 65, 130)
draw = np.random.default_rng(11)


def bf16(x):
    """The nearest bf16, ties to even, as f64, and its bits."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return (bits << 16).view(np.float32).astype(np.float64), bits.astype(np.uint16)


def make_weights():
    w, mix = {}, (2 * KEYS + VALUES) * SIZE

    def matrix(name, rows, cols, size=1.2):
        w[name] = size / cols**0.5 * draw.standard_normal((rows, cols))

    matrix("model.embed_tokens.weight", VOCAB, WIDTH, 0.7 * WIDTH**0.5)
    for i, kind in enumerate(LAYERS):
        p = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            w[p + name + ".weight"] = 0.3 * draw.standard_normal(WIDTH)
        matrix(p + "mlp.gate_proj.weight", MLP, WIDTH)
        matrix(p + "mlp.up_proj.weight", MLP, WIDTH)
        matrix(p + "mlp.down_proj.weight", WIDTH, MLP)
        if kind == "full":
            q = p + "self_attn."
            matrix(q + "q_proj.weight", 2 * HEADS * DIM, WIDTH)
            matrix(q + "k_proj.weight", KV * DIM, WIDTH)
            matrix(q + "v_proj.weight", KV * DIM, WIDTH)
            matrix(q + "o_proj.weight", WIDTH, HEADS * DIM)
            w[q + "q_norm.weight"] = 0.3 * draw.standard_normal(DIM)
            w[q + "k_norm.weight"] = 0.3 * draw.standard_normal(DIM)
            continue
        q = p + "linear_attn."
        matrix(q + "in_proj_qkv.weight", mix, WIDTH)
        matrix(q + "in_proj_z.weight", VALUES * SIZE, WIDTH)
        matrix(q + "in_proj_a.weight", VALUES, WIDTH)
        matrix(q + "in_proj_b.weight", VALUES, WIDTH)
        w[q + "conv1d.weight"] = 0.4 * draw.standard_normal((mix, 1, 4))
        w[q + "A_log"] = np.log(draw.uniform(0.05, 4.05, VALUES))
        w[q + "dt_bias"] = -2 + 0.5 * draw.standard_normal(VALUES)
        w[q + "norm.weight"] = 1 + 0.3 * draw.standard_normal(SIZE)
        matrix(q + "out_proj.weight", WIDTH, VALUES * SIZE)
    w["model.norm.weight"] = 0.3 * draw.standard_normal(WIDTH)
    matrix("lm_head.weight", VOCAB, WIDTH)
    return w


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def scaled(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)


def turn(x):
    """The first TURN channels of [tokens, heads, DIM], as two halves of pairs."""
    half = TURN // 2
    angle = np.arange(len(x))[:, None, None] * THETA ** (-np.arange(half) / half)
    a, b, c, s = x[..., :half], x[..., half:TURN], np.cos(angle), np.sin(angle)
    return np.concatenate((a * c - b * s, b * c + a * s, x[..., TURN:]), -1)


def attention(w, u):
    n = len(u)
    both = (u @ w["q_proj.weight"].T).reshape(n, HEADS, 2, DIM)
    gate = sigmoid(both[:, :, 1])
    q = turn(scaled(both[:, :, 0]) * (1 + w["q_norm.weight"]))
    k = (u @ w["k_proj.weight"].T).reshape(n, KV, DIM)
    k = turn(scaled(k) * (1 + w["k_norm.weight"]))
    v = (u @ w["v_proj.weight"].T).reshape(n, KV, DIM)
    out = np.zeros((n, HEADS, DIM))
    for h in range(HEADS):
        at = h * KV // HEADS
        score = q[:, h] @ k[:, at].T / DIM**0.5
        score[np.triu_indices(n, 1)] = -np.inf
        p = np.exp(score - score.max(1, keepdims=True))
        out[:, h] = p / p.sum(1, keepdims=True) @ v[:, at]
    return (out * gate).reshape(n, -1) @ w["o_proj.weight"].T


def delta(w, u):
    n = len(u)
    mix = u @ w["in_proj_qkv.weight"].T
    past = np.concatenate((np.zeros((3, mix.shape[1])), mix))
    mix = silu(sum(past[j : j + n] * w["conv1d.weight"][:, 0, j] for j in range(4)))
    q, k, v = np.split(mix, (KEYS * SIZE, 2 * KEYS * SIZE), 1)
    q, k, v = q.reshape(n, KEYS, SIZE), k.reshape(n, KEYS, SIZE), v.reshape(n, -1, SIZE)
    q = q / np.sqrt((q * q).sum(-1, keepdims=True) + 1e-6) / SIZE**0.5
    k = k / np.sqrt((k * k).sum(-1, keepdims=True) + 1e-6)
    beta = sigmoid(u @ w["in_proj_b.weight"].T)
    decay = u @ w["in_proj_a.weight"].T + w["dt_bias"]
    decay = np.exp(-np.exp(w["A_log"]) * np.log1p(np.exp(decay)))
    out = np.zeros((n, VALUES, SIZE))
    for h in range(VALUES):
        state, at = np.zeros((SIZE, SIZE)), h * KEYS // VALUES
        for t in range(n):
            state *= decay[t, h]
            state += np.outer(k[t, at], beta[t, h] * (v[t, h] - k[t, at] @ state))
            out[t, h] = q[t, at] @ state
    z = (u @ w["in_proj_z.weight"].T).reshape(n, VALUES, SIZE)
    out = scaled(out) * w["norm.weight"] * silu(z)
    return out.reshape(n, -1) @ w["out_proj.weight"].T


def below(w, prefix):
    return {k[len(prefix) :]: v for k, v in w.items() if k.startswith(prefix)}


def forward(w, ids):
    """The residual before and after every layer, and logits after every token."""
    x = w["model.embed_tokens.weight"][ids]
    states = [x]
    for i, kind in enumerate(LAYERS):
        y = below(w, f"model.layers.{i}.")
        u = scaled(x) * (1 + y["input_layernorm.weight"])
        full = kind == "full"
        x = x + (attention(below(y, "self_attn."), u) if full else delta(below(y, "linear_attn."), u))
        u = scaled(x) * (1 + y["post_attention_layernorm.weight"])
        up = silu(u @ y["mlp.gate_proj.weight"].T) * (u @ y["mlp.up_proj.weight"].T)
        x = x + up @ y["mlp.down_proj.weight"].T
        states.append(x)
    u = scaled(x) * (1 + w["model.norm.weight"])
    return np.stack(states), u @ w["lm_head.weight"].T


def compute(w):
    ids = draw.integers(3, VOCAB, sum(LENGTHS))
    ids[40:60] = 7
    cu = np.concatenate(([0], np.cumsum(LENGTHS)))
    hidden, logits, best, greedy = [], [], [], []
    for begin, end in zip(cu, cu[1:]):
        states, scores = forward(w, ids[begin:end])
        hidden.append(states)
        logits.append(scores[-1])
        best.append(scores.argmax(1))
        text = list(ids[begin:end]) + [scores[-1].argmax()]
        while len(text) < end - begin + 16:
            text.append(forward(w, text)[1][-1].argmax())
        greedy.append(text[end - begin :])
    return {
        "ids": ids.astype(np.int32),
        "cu": cu.astype(np.int32),
        "hidden": np.concatenate(hidden, 1).astype(np.float32),
        "logits": np.stack(logits).astype(np.float32),
        "argmax": np.concatenate(best).astype(np.int32),
        "greedy": np.array(greedy, np.int32),
    }


def save(path, tensors):
    kind = {"uint16": "BF16", "float32": "F32", "int32": "I32"}
    head, at = {}, 0
    for name, x in tensors.items():
        head[name] = {
            "dtype": kind[x.dtype.name],
            "shape": x.shape,
            "data_offsets": [at, at + x.nbytes],
        }
        at += x.nbytes
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(x.tobytes() for x in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


config = {
    "model_type": "qwen3_5_text",
    "attn_output_gate": True,
    "dtype": "bfloat16",
    "eos_token_id": 2,
    "head_dim": DIM,
    "hidden_act": "silu",
    "hidden_size": WIDTH,
    "intermediate_size": MLP,
    "layer_types": [kind + "_attention" for kind in LAYERS],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": SIZE,
    "linear_num_key_heads": KEYS,
    "linear_num_value_heads": VALUES,
    "linear_value_head_dim": SIZE,
    "max_position_embeddings": 4096,
    "num_attention_heads": HEADS,
    "num_hidden_layers": len(LAYERS),
    "num_key_value_heads": KV,
    "output_gate_type": "swish",
    "rms_norm_eps": EPS,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": THETA,
        "partial_rotary_factor": TURN / DIM,
    },
    "vocab_size": VOCAB,
}

to = Path(sys.argv[1])
(to / "model").mkdir(parents=True, exist_ok=True)
rounded = {name: bf16(x) for name, x in make_weights().items()}
save(to / "model" / "model.safetensors", {name: x[1] for name, x in rounded.items()})
save(to / "golden.safetensors", compute({name: x[0] for name, x in rounded.items()}))
(to / "model" / "config.json").write_text(json.dumps(config, indent=1) + "\n")
