#!/usr/bin/env python3
"""torch_peer.py - PyTorch at the shapes of bench_attn, bench_step and bench_target.

    bench/torch_peer.py attention [CASE...]   FlexAttention: one five window short
    bench/torch_peer.py step [CASE...]        a drafter of 1704.0M weights: long short
    bench/torch_peer.py target [CASE...]      Qwen3-8B of random weights: one sixteen

Run beside the program of the same job, in one go on one card; needs PyTorch, and
transformers for targets.  A line each: medians of --runs (7) behind two to warm up.
FlexAttention takes minutes to compile a case.  What is computed is docs/drafter.md's,
in modules of torch.nn: products by cuBLAS, compiled attention, the loss in chunks that
are computed again."""
import argparse
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

HIDDEN, INTER, LAYERS, HEADS, KV, DIM, TAPS = 5120, 17408, 5, 32, 8, 128, 4
BLOCK, VOCAB, EPS, THETA, GAMMA = 16, 248320, 1e-6, 1e7, 7.0
LOSS_ANCHORS = 128  # of which logits exist at a time


def median_ms(run, times):
    took = []
    for i in range(times + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end))
    return sorted(took[2:])[times // 2]


def gib():
    return torch.cuda.max_memory_allocated() / 2**30


class Row:
    """Documents in a row, and anchors drawn from it."""

    def __init__(self, lengths, anchors):
        lengths = torch.tensor(lengths)
        self.doc = torch.repeat_interleave(torch.arange(len(lengths)), lengths).cuda()
        self.pos = torch.cat([torch.arange(n) for n in lengths]).cuda()
        self.length = len(self.doc)
        inside = (self.doc[1:] == self.doc[:-1]).nonzero()[:, 0]
        order = torch.randperm(len(inside), device="cuda")[:anchors]
        self.anchor = inside[order].sort().values
        slots = torch.arange(BLOCK, device="cuda")
        self.block_pos = (self.pos[self.anchor][:, None] + slots).flatten()


# ---- attention ----


def sees(row, window):
    """Keys are the row's, then the blocks'; a windowed layer is causal in its block."""
    anchor, doc, pos, length = row.anchor, row.doc, row.pos, row.length

    def mask(_batch, _head, query, key):
        block, slot = query // BLOCK, query % BLOCK
        at = anchor[block]
        context = key.clamp(max=length - 1)
        before = (key < length) & (context < at) & (doc[context] == doc[at])
        own = (key >= length) & ((key - length) // BLOCK == block)
        if window:
            before &= pos[at] + slot - pos[context] < window
            own &= (key - length) % BLOCK <= slot
        return before | own

    return mask


def flex(row, window):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    queries = len(row.anchor) * BLOCK
    mask = torch.compile(create_block_mask)(
        sees(row, window), None, None, queries, row.length + queries, device="cuda")
    attend = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: attend(q, k, v, block_mask=mask, enable_gqa=True)


def attention(name, runs):
    five = [1024, 512, 2048, 1536, 3072]
    lengths, anchors, window = {
        "one": ([8192], 512, 0), "five": (five, 512, 0), "window": ([8192], 512, 2048),
        "short": ([4096], 128, 0)}[name]
    row = Row(lengths, anchors)
    queries = len(row.anchor) * BLOCK
    make = lambda heads, n: torch.randn(
        1, heads, n, DIM, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    q, k, v = make(HEADS, queries), *(make(KV, row.length + queries) for _ in range(2))
    attend, gradient = flex(row, window), torch.randn_like(q)

    def both():
        attend(q, k, v).backward(gradient)
        q.grad = k.grad = v.grad = None

    with torch.no_grad():
        forward = median_ms(lambda: attend(q, k, v), runs)
    together = median_ms(both, runs)
    print(f"flex\t{name}\tforward {forward:.3f} ms\tboth {together:.3f} ms")


# ---- a training step ----


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, EPS)


def rotate(x, pos):
    rate = THETA ** (-torch.arange(0, DIM, 2, device="cuda", dtype=torch.float32) / DIM)
    angle = pos[:, None, None].float() * rate
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    low, high = x.chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


def plain(inside, outside):
    return nn.Linear(inside, outside, bias=False)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = Norm(HIDDEN), Norm(HIDDEN)
        self.q_norm, self.k_norm = Norm(DIM), Norm(DIM)
        self.q, self.o = plain(HIDDEN, HEADS * DIM), plain(HEADS * DIM, HIDDEN)
        self.k, self.v = plain(HIDDEN, KV * DIM), plain(HIDDEN, KV * DIM)
        self.gate, self.up = plain(HIDDEN, INTER), plain(HIDDEN, INTER)
        self.down = plain(INTER, HIDDEN)

    def forward(self, x, context, row, attend):
        y = self.before(x)
        keys = torch.cat((context, y))
        key_pos = torch.cat((row.pos, row.block_pos))
        q = rotate(self.q_norm(self.q(y).unflatten(-1, (HEADS, DIM))), row.block_pos)
        k = rotate(self.k_norm(self.k(keys).unflatten(-1, (KV, DIM))), key_pos)
        v = self.v(keys).unflatten(-1, (KV, DIM))
        o = attend(*(t.transpose(0, 1)[None] for t in (q, k, v)))
        x = x + self.o(o[0].transpose(0, 1).flatten(1))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Drafter(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.context_norm = plain(TAPS * HIDDEN, HIDDEN), Norm(HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm(HIDDEN)

    def forward(self, states, x, row, attend):
        context = self.context_norm(self.fc(states))
        for layer in self.layers:
            x = layer(x, context, row, attend)
        return self.norm(x)


def chunk_loss(x, head, label, weight):
    logits = (x.flatten(0, 1) @ head.T).float()
    each = F.cross_entropy(logits, label.flatten(), reduction="none")
    return (each * weight.flatten()).sum()


def loss_of(x, head, row, ids):
    """Slot s is to say the token at anchor + s, while its document goes on."""
    slot = torch.arange(BLOCK, device="cuda")
    at = row.anchor[:, None] + slot
    there = at.clamp(max=row.length - 1)
    same = row.doc[there] == row.doc[row.anchor][:, None]
    good = (at < row.length) & same & (slot > 0)
    weight = good * torch.exp(-(slot - 1).clamp(min=0) / GAMMA)
    x, label, total = x.unflatten(0, (-1, BLOCK)), ids[there], 0
    for i in range(0, len(x), LOSS_ANCHORS):
        part = slice(i, i + LOSS_ANCHORS)
        total = total + checkpoint(
            chunk_loss, x[part], head, label[part], weight[part], use_reentrant=False)
    return total / weight.sum()


def step(name, runs):
    length, anchors = {"long": (8192, 512), "short": (4096, 128)}[name]
    row = Row([length], anchors)
    with torch.device("cuda"):
        model = Drafter().bfloat16()
    draw = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    states = draw(length, TAPS * HIDDEN)
    table, head = draw(VOCAB, HIDDEN) * 0.02, draw(VOCAB, HIDDEN) * 0.02
    ids = torch.randint(VOCAB, (length,), device="cuda")
    blocks = torch.full((anchors, BLOCK), VOCAB - 1, device="cuda")
    blocks[:, 0] = ids[row.anchor]
    attend = flex(row, 0)

    def both():
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()
        x = model(states, table[blocks.flatten()], row, attend)
        loss_of(x, head, row, ids).backward()

    both()
    torch.cuda.reset_peak_memory_stats()
    ms, weights = median_ms(both, runs), sum(p.numel() for p in model.parameters())
    print(f"torch\t{name}\t{weights / 1e6:.1f}M\t{length} tokens, {anchors} anchors"
          f"\t{ms:.1f} ms\t{gib():.2f} GiB")


# ---- a target ----


@torch.no_grad()
def target(name, runs):
    import transformers

    rows, length = {"one": (1, 8192), "sixteen": (16, 512)}[name]
    config = transformers.Qwen3Config(
        vocab_size=151936, hidden_size=4096, intermediate_size=12288,
        num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
        max_position_embeddings=40960, tie_word_embeddings=False, dtype="bfloat16",
        attn_implementation="sdpa")
    with torch.device("cuda"):
        model = transformers.Qwen3Model(config).eval().bfloat16()
    ids = torch.randint(config.vocab_size, (rows, length), device="cuda")
    torch.cuda.reset_peak_memory_stats()
    ms = median_ms(lambda: model(ids, output_hidden_states=True, use_cache=False), runs)
    print(f"transformers\t{name}\t{rows} x {length}\t36 layers\t{ms:.1f} ms"
          f"\t{1e3 * rows * length / ms:.0f} tokens/s\t{gib():.2f} GiB")


def main():
    jobs = {"attention": (attention, "one five window short"),
            "step": (step, "long short"), "target": (target, "one sixteen")}
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("job", choices=jobs)
    p.add_argument("case", nargs="*")
    p.add_argument("--runs", type=int, default=7)
    a = p.parse_args()
    run, cases = jobs[a.job]
    for name in a.case or cases.split():
        if name not in cases.split():
            sys.exit(f"torch_peer.py: {a.job} has no case {name}, but {cases}")
        torch.manual_seed(1)
        run(name, a.runs)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
