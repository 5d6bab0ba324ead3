#!/usr/bin/env bats
# scripts/tokenize.py: chats of several shapes through a model's template, masks included.

setup() {
    bats_require_minimum_version 1.5.0
    tree=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
    python=$tree/build/venv/bin/python
    "$python" -c 'import sys, importlib.util as u; sys.exit(not u.find_spec("transformers"))' 2>/dev/null ||
        skip "no transformers in build/venv (scripts/deps.sh python)"
    cd "$BATS_TEST_TMPDIR"
    mkdir model
    # bytes as tokens, four special ones; a template of ChatML's shape that, as many do,
    # shows thinking in the last turn only
    "$python" - <<'EOF'
import json
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
other = [b for b in range(256) if b not in plain]
vocab = {chr(b if b in plain else 256 + other.index(b)): b for b in range(256)}
special = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]
added = [{"id": 256 + i, "content": s, "special": True, "single_word": False, "lstrip": False,
          "rstrip": False, "normalized": False} for i, s in enumerate(special)]
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
json.dump({"version": "1.0", "added_tokens": added, "pre_tokenizer": level, "decoder": level,
           "model": {"type": "BPE", "vocab": vocab, "merges": []}}, open("model/tokenizer.json", "w"))
json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"},
          open("model/tokenizer_config.json", "w"))
EOF
    cat >model/chat_template.jinja <<'EOF'
{%- for m in messages %}{% if m.role not in ['system', 'user', 'assistant', 'tool'] %}{{ raise_exception('no role ' ~ m.role) }}{% endif %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.thinking and loop.last %}{{ '<think>' + m.thinking + '</think>' }}{% endif %}{{ m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% if quiet %}{{ '<think></think>' }}{% endif %}{% endif %}
EOF
    sed -i -z 's/\n$//' model/chat_template.jinja
}

tokenize() { "$python" "$tree/scripts/tokenize.py" model "$@"; }

# shown FILE: its rows as draft-pack took them and draft-inspect shows them.
shown() {
    rm -rf packed
    "$BIN/draft-pack" -q "$1" -o packed --length 256 --vocab 260 --window 1
    for ((row = 0; row < $(wc -l <"$1"); row++)); do
        "$BIN/draft-inspect" -q packed --row $row --tokenizer model/tokenizer.json
    done
}

@test "the usual keys give the same tokens, answers supervised up to their end" {
    cat >chats.jsonl <<'EOF'
{"messages":[{"role":"system","content":"S"},{"role":"user","content":"Hé"},{"role":"assistant","content":"Yo"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"?"}]}
{"conversations":[{"from":"system","value":"S"},{"from":"human","value":"Hé"},{"from":"gpt","value":"Yo"},{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}
{"system":"S","conversation":[{"role":"user","text":"Hé"},{"role":"model","text":"Yo"},{"role":"user","text":"a"},{"role":"bot","text":"b"}]}
EOF
    printf '{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"%3000s"}]}\n' x >long.jsonl
    gzip -k chats.jsonl
    tokenize chats.jsonl.gz chats.jsonl long.jsonl - <chats.jsonl >tokens.jsonl 2>said
    [ "$(wc -l <tokens.jsonl)" = 10 ]
    # what a limit would cost: the long one alone is over 2048
    long=$(sed -n 7p tokens.jsonl | tr -cd '0-9,[' | cut -d '[' -f 2 | tr , '\n' | grep -c .)
    [ "$long" -gt 3000 ]
    grep -q "^10 rows, .* tokens; lost at lengths of {2048: $((long - 2048)), 4096: 0, 8192: 0, " said
    sed -i 7d tokens.jsonl
    [ "$(sort -u tokens.jsonl | wc -l)" = 1 ]
    sed -i 2,\$d tokens.jsonl
    run -0 shown tokens.jsonl
    [[ $output == *"<|im_start|>user
Hé<|im_end|>
<|im_start|>assistant
{+Yo<|im_end|>+}
<|im_start|>user
a<|im_end|>
<|im_start|>assistant
{+b<|im_end|>+}"* ]]
}

@test "what is refused, and a row for each answer where a template rewrites history" {
    cat >chats.jsonl <<'EOF'
{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yo","thinking":"hm"},{"role":"user","content":"a"},{"role":"assistant","content":"b","thinking":"so"}]}
{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yo","thinking":"hm"}]}
{"messages":[{"role":"user","content":"Hi"}]}
{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":
{"messages":[{"role":"judge","content":"Hi"},{"role":"assistant","content":"x"}]}
{"text":"no chat"}
EOF
    tokenize chats.jsonl >tokens.jsonl 2>said
    [ "$(wc -l <tokens.jsonl)" = 1 ]
    grep -q "2 chats refused, first chats.jsonl:3: ValueError: no answer" said
    grep -q "1 chats refused, first chats.jsonl:4: JSONDecodeError" said
    grep -q "1 chats refused, first chats.jsonl:5: TemplateError: no role judge" said
    grep -q "1 chats refused, first chats.jsonl:1: ValueError: the template rewrites turns that are over" said
    tokenize chats.jsonl --each-answer >tokens.jsonl 2>said
    [ "$(wc -l <tokens.jsonl)" = 3 ]
    [ "$(sed -n 1p tokens.jsonl)" = "$(sed -n 3p tokens.jsonl)" ]
    run -0 shown tokens.jsonl
    [[ $output == *"assistant
{+<think>hm</think>Yo<|im_end|>+}"* ]]
    [[ $output == *"assistant
Yo<|im_end|>
<|im_start|>user
a<|im_end|>
<|im_start|>assistant
{+<think>so</think>b<|im_end|>+}"* ]]
}

@test "where the prompt ends is the template's to say" {
    echo '{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yo"}]}' >chats.jsonl
    run -65 --separate-stderr tokenize chats.jsonl --template '{"quiet": true}'
    [ "$output" = "" ]
    [[ $stderr == *"an answer does not begin with its prompt"* ]]
}
