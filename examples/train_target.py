#!/usr/bin/env python3
"""Trains the example target: a Qwen3 language model of six million weights.

  python3 train_target.py CORPUS OUT [--steps 2300] [--rows 64] [--device cuda]

CORPUS is what make_corpus.py wrote.  OUT receives tokenizer.json,
tokenizer_config.json, config.json, generation_config.json and model.safetensors, the
layout that transformers loads.  At the end the held-out text is scored in bits per
byte, every document alone.
"""
import argparse
import json
import math
import pathlib
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen3Config, Qwen3ForCausalLM

PIECES, EOS, MASK, VOCAB = 4158, 4158, 4159, 4160    # the special ids come last
ROW = 1024
AHEAD, AHEAD_LAYER, AHEAD_SHARE, AHEAD_WEIGHT = 8, 4, 8, 0.2
CONFIG = dict(
    architectures=["Qwen3ForCausalLM"], attention_bias=False, attention_dropout=0.0,
    bos_token_id=EOS, eos_token_id=EOS, head_dim=64, hidden_act="silu", hidden_size=256,
    initializer_range=0.02, intermediate_size=768, max_position_embeddings=2048,
    max_window_layers=6, model_type="qwen3", num_attention_heads=4, num_hidden_layers=6,
    num_key_value_heads=2, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=10000,
    sliding_window=None, tie_word_embeddings=True, torch_dtype="bfloat16",
    use_cache=True, use_sliding_window=False, vocab_size=VOCAB)
# Qwen's word splitter, but with up to three digits together, as Llama 3 has them.
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def texts(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line)["text"] for line in f]


def train_tokenizer(sample, out):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(sample, trainers.BpeTrainer(
        vocab_size=PIECES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    tok.add_special_tokens(["<|endoftext|>", "<|mask|>"])
    assert tok.token_to_id("<|endoftext|>") == EOS and tok.get_vocab_size() == VOCAB
    tok.save(str(out / "tokenizer.json"))
    write_json(out / "tokenizer_config.json", dict(
        tokenizer_class="PreTrainedTokenizerFast", eos_token="<|endoftext|>",
        pad_token="<|endoftext|>", mask_token="<|mask|>", model_max_length=2048,
        clean_up_tokenization_spaces=False))
    return tok


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def encode(tok, docs):
    """Token ids of each document, an end-of-text token behind."""
    out = []
    for i in range(0, len(docs), 10000):
        for e in tok.encode_batch(docs[i:i + 10000], add_special_tokens=False):
            out.append(np.array(e.ids + [EOS], np.int16))
    return [d for d in out if len(d) <= ROW]


def pack(docs):
    """Whole documents in rows of ROW tokens; -1 fills what stays empty."""
    rows, bins = [], [[] for _ in range(64)]
    room = np.full(64, ROW)
    for d in docs:
        fits = np.where(room >= len(d), room, ROW + 1)
        i = int(fits.argmin())
        if fits[i] > ROW:                            # nothing fits: close the fullest
            i = int(room.argmin())
            rows.append(np.concatenate(bins[i]))
            bins[i], room[i] = [], ROW
        bins[i].append(d)
        room[i] -= len(d)
    rows += [np.concatenate(b) for b in bins if b]
    return np.stack([np.pad(r, (0, ROW - len(r)), constant_values=-1) for r in rows])


def loss_of(model, ids, reduction="mean"):
    """Cross-entropy of each next token, and the states behind every layer.

    ids is [rows, tokens] with -1 as filling.
    """
    y = model(input_ids=ids.clamp(min=0), use_cache=False, output_hidden_states=True)
    loss = F.cross_entropy(y.logits[:, :-1].reshape(-1, VOCAB).float(),
                           ids[:, 1:].reshape(-1), ignore_index=-1, reduction=reduction)
    return loss, y.hidden_states


class Ahead(torch.nn.Module):
    """Lets the state behind a middle layer foresee tokens 2 to AHEAD steps away.

    One linear map a distance, then the model's own head, on one position in
    AHEAD_SHARE.  It serves training alone, as multi-token prediction does in some
    published models, and is thrown away afterwards.
    """

    def __init__(self, width):
        super().__init__()
        self.maps = torch.nn.Linear(width, (AHEAD - 1) * width, bias=False)

    def forward(self, model, states, ids):
        rows, n, width = states.shape
        at = torch.randint(n - AHEAD, (rows, n // AHEAD_SHARE), device=ids.device)
        x = states.gather(1, at[..., None].expand(-1, -1, width))
        x = self.maps(F.rms_norm(x, (width,)))
        labels = torch.stack([ids.gather(1, at + k) for k in range(2, AHEAD + 1)], -1)
        logits = model.lm_head(x.reshape(-1, width) * model.model.norm.weight)
        return F.cross_entropy(logits.float(), labels.reshape(-1), ignore_index=-1)


def bits_per_byte(model, docs, sizes, device):
    nats = 0.0
    order = sorted(range(len(docs)), key=lambda i: len(docs[i]))
    with torch.no_grad():
        for i in range(0, len(order), 64):
            part = [docs[j] for j in order[i:i + 64]]
            n = max(map(len, part)) + 1              # the end-of-text token leads
            ids = np.full((len(part), n), -1, np.int64)
            for row, d in zip(ids, part):
                row[0], row[1:len(d) + 1] = EOS, d
            nats += loss_of(model, torch.tensor(ids, device=device), "sum")[0].item()
    return nats / math.log(2) / sum(sizes)


def train(model, rows, a):
    ahead = Ahead(CONFIG["hidden_size"]).to(a.device)
    weights = [*model.parameters(), *ahead.parameters()]
    # Decay would draw together the embeddings of words that stand in like places,
    # such as names, until the model could no longer tell them apart.
    tied = model.model.embed_tokens.weight
    decay = [p for p in weights if p.dim() > 1 and p is not tied]
    plain = [p for p in weights if p.dim() == 1] + [tied]
    opt = torch.optim.AdamW([dict(params=decay, weight_decay=0.1),
                             dict(params=plain, weight_decay=0.0)],
                            lr=a.lr, betas=(0.9, 0.95), fused=a.device == "cuda")
    warm = max(1, min(300, a.steps // 10))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(
        (s + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * max(0, s - warm) /
                                             max(1, a.steps - warm))))
    rows, start = torch.tensor(rows, device=a.device), time.time()
    order = torch.empty(0, dtype=torch.long, device=a.device)
    for step in range(a.steps):
        if len(order) < a.rows:
            order = torch.randperm(len(rows), device=a.device)
        pick, order = order[:a.rows], order[a.rows:]
        with torch.autocast(a.device, torch.bfloat16):
            ids = rows[pick].long()
            loss, states = loss_of(model, ids)
            more = ahead(model, states[AHEAD_LAYER + 1], ids)
        opt.zero_grad(set_to_none=True)
        (loss + AHEAD_WEIGHT * more).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        opt.step()
        sched.step()
        if step % 200 == 0 or step == a.steps - 1:
            done = (step + 1) * a.rows * ROW
            speed = done / (time.time() - start)
            print(f"step {step} loss {loss.item():.4f} {more.item():.3f} tokens "
                  f"{done / 1e6:.0f}M {speed / 1e6:.2f}M/s", flush=True)


def save(model, out):
    """bf16 weights; the tied head is the embedding and is not written twice."""
    w = {k: v.detach().to("cpu", torch.bfloat16).contiguous()
         for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(w, str(out / "model.safetensors"), metadata={"format": "pt"})
    write_json(out / "config.json", CONFIG)
    write_json(out / "generation_config.json",
               dict(bos_token_id=EOS, eos_token_id=EOS, pad_token_id=EOS))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("corpus", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--steps", type=int, default=2300)
    p.add_argument("--rows", type=int, default=64, help="rows of 1024 tokens a step")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--device", default="cuda")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    files = sorted(a.corpus.glob("train-*.jsonl"))
    first, start = texts(files[0]), time.time()
    tok = train_tokenizer(first[:20000], a.out)
    docs = encode(tok, first)
    for f in files[1:]:
        docs += encode(tok, texts(f))
    random.Random(1).shuffle(docs)
    rows = pack(docs)
    tokens = sum(map(len, docs))
    print(f"{len(docs)} documents, {tokens / 1e6:.1f}M tokens, {len(rows)} rows, "
          f"filled {tokens / rows.size:.4f}, {time.time() - start:.0f} s", flush=True)
    model = Qwen3ForCausalLM(Qwen3Config(**CONFIG)).to(a.device, torch.float32)
    torch.nn.init.normal_(model.model.embed_tokens.weight, std=0.06)
    train(model, rows, a)
    save(model, a.out)
    held = [t for t in texts(a.corpus / "valid.jsonl")[:2000]
            if len(tok.encode(t).ids) < ROW]
    model.to(torch.bfloat16).float()                 # score the weights as stored
    sizes = [len(t.encode()) for t in held]
    print(f"held-out: {bits_per_byte(model, encode(tok, held), sizes, a.device):.4f} "
          f"bits per byte over {sum(sizes)} bytes")


if __name__ == "__main__":
    main()
