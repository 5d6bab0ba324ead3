#!/usr/bin/env python3
"""Lets the example target write the drafter's training documents and the prompts.

  python3 make_data.py CORPUS TARGET OUT [--docs 2400] [--device cuda]

Beginnings of training documents are continued by the target, one half greedily, the
other sampled; continuations that loop are dropped.  OUT receives train-00000.jsonl to
train-00007.jsonl, lines of {"input_ids": [...], "loss_mask": [...]} with 0 on the
prompt and 1 on what the target wrote, and prompts.jsonl, beginnings of held-out
documents whose greedy continuation runs on for 128 tokens and does not loop.
"""
import argparse
import json
import pathlib
import random

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

EOS, MASK = 4158, 4159
NEW = 128                                            # tokens decoded from a prompt


def beginnings(path, tok, r, count):
    """(topic, ids) of prompts of 24 to 96 tokens from the first third of documents."""
    out = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            doc = json.loads(line)
            ids = tok.encode(doc["text"]).ids
            last = min(96, len(ids) // 3)
            if last >= 24 and len(ids) <= 1024:
                out.append((doc["topic"], ids[:max(r.randint(24, last),
                                                   r.randint(24, last))]))
            if len(out) == count:
                break
    return out


def distinct(ids):
    """Share of different ones among the runs of four tokens."""
    grams = [tuple(ids[i:i + 4]) for i in range(len(ids) - 3)]
    return len(set(grams)) / max(1, len(grams))


def continue_all(model, prompts, length, **how):
    """The target's continuation of each prompt, up to the end-of-text token."""
    out = []
    for i in range(0, len(prompts), 1024):
        part = prompts[i:i + 1024]
        n = max(map(len, part))
        left = [n - len(p) for p in part]
        ids = [[EOS] * k + p for k, p in zip(left, part)]
        seen = [[0] * k + [1] * len(p) for k, p in zip(left, part)]
        ids, seen = (torch.tensor(x, device=model.device) for x in (ids, seen))
        with torch.no_grad():
            y = model.generate(input_ids=ids, attention_mask=seen, pad_token_id=EOS,
                               eos_token_id=EOS, max_new_tokens=length, **how)
        for row in y[:, n:].tolist():
            out.append(row[:row.index(EOS) + 1] if EOS in row else row)
    return out


def training(model, tok, a, r):
    prompts = [p for _, p in beginnings(a.corpus / "train-00.jsonl", tok, r, a.docs)]
    half = len(prompts) // 2
    texts = continue_all(model, prompts[:half], 640, do_sample=False)
    texts += continue_all(model, prompts[half:], 640, do_sample=True, top_k=0,
                          top_p=1.0, temperature=a.temperature)
    lines, dropped = [], 0
    for p, t in zip(prompts, texts):
        bad = distinct(t) < 0.5 or len(t) < 32 or MASK in t or EOS in t[:-1]
        dropped += bad
        if not bad:
            lines.append(dict(input_ids=p + t, loss_mask=[0] * len(p) + [1] * len(t)))
    r.shuffle(lines)
    for k in range(8):
        with open(a.out / f"train-{k:05}.jsonl", "w") as f:
            for line in lines[k::8]:
                f.write(json.dumps(line, separators=(",", ":")) + "\n")
    total = sum(len(x["input_ids"]) for x in lines)
    print(f"training: {len(lines)} documents, {total} tokens, {dropped} dropped")


def held_out(model, tok, a, r):
    prompts = beginnings(a.corpus / "valid.jsonl", tok, r, 512)
    texts = continue_all(model, [p for _, p in prompts], NEW, do_sample=False)
    kept = [(topic, p, t) for (topic, p), t in zip(prompts, texts)
            if EOS not in t and distinct(t) >= 0.6]
    print(f"prompts: {len(kept)} of {len(prompts)} run on without a loop")
    kept = kept[:128]
    with open(a.out / "prompts.jsonl", "w") as f:
        for _, p, _ in kept:
            f.write(json.dumps({"input_ids": p}, separators=(",", ":")) + "\n")
    print(f"{len(kept)} prompts of {len({t for t, _, _ in kept})} topics, distinct "
          f"4-grams {sum(distinct(t) for _, _, t in kept) / max(1, len(kept)):.4f}")
    for topic, p, t in kept[:12]:
        print(f"--- {topic}\n{tok.decode(p)}>>>{tok.decode(t)}<<<")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("corpus", type=pathlib.Path)
    p.add_argument("target", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--docs", type=int, default=2400)
    p.add_argument("--temperature", type=float, default=0.8)
    p.add_argument("--device", default="cuda")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(2)
    tok = Tokenizer.from_file(str(a.target / "tokenizer.json"))
    model = AutoModelForCausalLM.from_pretrained(a.target, dtype=torch.float32)
    model = model.to(a.device).eval()
    held_out(model, tok, a, random.Random(4))
    training(model, tok, a, random.Random(3))


if __name__ == "__main__":
    main()
