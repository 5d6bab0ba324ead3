#!/usr/bin/env python3
"""tokenize.py MODEL chats.jsonl... >tokens.jsonl: chats into draft-pack's JSON lines.

An answer is what the text up to it has more than the prompt before it, by the model's own chat
template.  A chat whose template rewrites turns that are over (many drop earlier thinking) is
refused, or with --each-answer becomes a row for each answer, as the model sees it.
"""
import argparse, fileinput, json, os, sys
sys.path.pop(0)  # this folder: Python has a module of our name
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from transformers import AutoTokenizer
ROLES = dict(human="user", gpt="assistant", bot="assistant", model="assistant", function="tool")

def turns_of(record):
    find = lambda d, *keys: next((d[k] for k in keys if d.get(k) is not None), None)
    turns = find(record, "messages", "conversations", "conversation") or []
    if isinstance(record.get("system"), str):
        turns = [{"role": "system", "content": record["system"]}, *turns]
    return [{**t, "role": ROLES.get(who := find(t, "role", "from"), who),
             "content": find(t, "content", "value", "text")} for t in turns]

def rows_of(turns, tokens, end, each):
    answers = []
    for i in (i for i, t in enumerate(turns) if t["role"] == "assistant"):
        ids, prompt = tokens(turns[: i + 1]), tokens(turns[:i], add_generation_prompt=True)
        if ids[: len(prompt)] != prompt:
            raise ValueError("an answer does not begin with its prompt")
        back = ids[len(prompt):][::-1]  # what the template puts behind the end is not the model's
        answers.append((ids, len(prompt), len(ids) - (back.index(end) if end in back else 0)))
    rewritten = any(answers[-1][0][: len(ids)] != ids for ids, _, _ in answers)
    if not answers or (rewritten and not each):
        raise ValueError("the template rewrites turns that are over" if answers else "no answer")
    for group in [[a] for a in answers] if rewritten else [answers]:
        ids, said = group[-1][0], {t for _, first, stop in group for t in range(first, stop)}
        yield {"input_ids": ids, "loss_mask": [int(t in said) for t in range(len(ids))]}

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
parser.add_argument("model", help="a folder with tokenizer and chat template")
parser.add_argument("chats", nargs="+", help="JSON lines, also .gz; - is standard input")
parser.add_argument("--each-answer", action="store_true")
parser.add_argument("--template", type=json.loads, default={}, help='{"enable_thinking": false}')
call, sizes, refused = parser.parse_args(), [], {}
model = AutoTokenizer.from_pretrained(call.model)
for line in fileinput.input(call.chats, openhook=fileinput.hook_compressed, encoding="utf-8"):
    try:
        record = json.loads(line)
        tokens = lambda turns, **more: model.apply_chat_template(
            turns, tools=record.get("tools"), return_dict=False, **call.template, **more)
        for row in rows_of(turns_of(record), tokens, model.eos_token_id, call.each_answer):
            print(json.dumps(row, separators=(",", ":")))
            sizes.append(len(row["input_ids"]))
    except Exception as e:  # templates raise what they like
        place = f"{fileinput.filename()}:{fileinput.filelineno()}"
        refused.setdefault(f"{type(e).__name__}: {e}", []).append(place)
for why, places in refused.items():
    print(f"{len(places)} chats refused, first {places[0]}: {why}", file=sys.stderr)
lost = {cap: sum(max(0, n - cap) for n in sizes) for cap in (2048, 4096, 8192, 16384, 32768)}
print(f"{len(sizes)} rows, {sum(sizes)} tokens; lost at lengths of {lost}", file=sys.stderr)
sys.exit(0 if sizes else 65)
