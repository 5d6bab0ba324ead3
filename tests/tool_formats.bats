#!/usr/bin/env bats
# draft-pack on files that other libraries wrote: the same rows whatever the format, and
# nothing but an error of what is meant to do harm.

setup() {
    bats_require_minimum_version 1.5.0
    data=$BATS_TEST_DIRNAME/golden/data
    cd "$BATS_TEST_TMPDIR"
    pack=$BIN/draft-pack
    o=(--length 64 --vocab 300 --min-supervised 0 -q)
    sed 's/, "loss_mask.*/}/' "$data/documents.jsonl" >plain.jsonl
}

# Tokens, mask and documents of a run's only shard of N rows, without where they are from.
columns() { tail -c $(($2 * 64 * 9)) "$1/packed-00000.safetensors"; }

# packs NAME LIKE INPUT...: the rows of INPUT are those of LIKE, a folder packed before.
packs() {
    local name=$1 like=$2
    shift 2
    "$pack" "$@" -o "$name" "${o[@]}" --report report
    rows=$(sed -n 's/^ *"rows": \([0-9]*\),$/\1/p' report | head -1)
    cmp <(columns "$like" "$rows") <(columns "$name" "$rows")
}

@test "documents without a mask: npy, plain numbers, Megatron's pairs" {
    "$pack" plain.jsonl -o like "${o[@]}"
    packs npy like "$data/npy/vector.npy" --separator 0
    gzip -c "$data/npy/version3.npy" >v.npy.gz
    packs npygz like v.npy.gz --separator 0
    packs stdin like - --separator 0 <v.npy.gz
    packs raw like "$data/npy/plain.u16" --format raw --dtype u16 --separator 0
    for type in uint16 int16 int32 int64; do
        packs "$type" like "$data/megatron/$type.bin"
        packs "$type-idx" like "$data/megatron/$type.idx"
        packs "$type-both" like "$data/megatron/$type.idx" "$data/megatron/$type.bin"
    done
    mkdir folder
    cp "$data"/megatron/int32.* folder
    packs folder-out like folder
    run -64 "$pack" "$data/npy/vector.npy" -o x "${o[@]}"
    [[ $output == *"where do documents end?"* ]]
    run -64 "$pack" "$data/npy/plain.u16" -o x "${o[@]}" --format raw --separator 0
    run -64 "$pack" plain.jsonl -o x "${o[@]}" --dtype float
    run -64 "$pack" plain.jsonl -o x "${o[@]}" --separator end
    rm folder/int32.bin
    run -66 "$pack" folder -o x "${o[@]}"
    [[ $output == *"int32.bin"* ]]
}

@test "documents with a mask: tars, MosaicML's folders, packed rows" {
    "$pack" "$data/documents.jsonl" -o like "${o[@]}"
    packs tar like "$data/tar/arrays.tgz"
    packs json like "$data/tar/json.tar.gz"
    mkdir members
    gzip -dc "$data/tar/arrays.tgz" | tee arrays.tar | zstd -q >members/a.tar.zst
    packs zst like members
    packs pipe like - <arrays.tar
    for kind in static dynamic labels gzip; do packs "mds-$kind" like "$data/mds-$kind"; done
    packs mds-bytes like "$data/mds-bytes" --dtype i64
    for j in 2 5; do
        "$pack" "$data/tar/json.tar.gz" -o "json$j" -j "$j" "${o[@]}"
        diff -r json "json$j"
    done
    # packed rows hold the documents in another order: sort them into rows of one each
    "$pack" like -o again "${o[@]}"
    [ "$("$BIN/draft-inspect" like 2>&1 | grep -E 'tokens|documents|supervised')" = \
        "$("$BIN/draft-inspect" again 2>&1 | grep -E 'tokens|documents|supervised')" ]
    cat like/packed-*.safetensors | "$pack" - -o stream "${o[@]}"
    cmp <(columns again 6) <(columns stream 6)
}

@test "an index of MosaicML's is followed, and what it misses is an error" {
    "$pack" "$data/documents.jsonl" -o like "${o[@]}"
    cp -r "$data/mds-labels" both
    for f in both/*.zstd; do zstd -dq "$f" -o "${f%.zstd}"; done
    cp both/shard.00000.mds both/stray.mds
    packs both-out like both
    mv both/shard.00001.mds both/shard.00001.mds.zstd .
    run -66 "$pack" both -o x "${o[@]}"
    [[ $output == *"index.json: shard 1: shard.00001.mds.zstd is not there"* ]]
    head -c 100 shard.00001.mds >both/shard.00001.mds
    run -65 "$pack" both -o x "${o[@]}"
    [[ $output == *"shard.00001.mds has 100 bytes, not "* ]]
    sed 's|"shard.00001.mds"|"../shard.00001.mds"|' both/index.json >index.json
    cp index.json both/index.json
    run -65 "$pack" both -o x "${o[@]}"
    [[ $output == *"a shard outside the folder: ../shard.00001.mds"* ]]
}

@test "names in a tar are texts: nothing is written, the odd ones are refused" {
    mkdir -p deep/er/still
    cd deep/er/still
    run -0 "$pack" "$data/tar/odd.tar" -o out --length 64 --vocab 300 --rejects rejects
    [ "$(wc -l <rejects)" = 9 ]
    grep -q '"file":"odd.tar","record":1,.*"reason":"member /etc/evil.json: its name is absolute"' rejects
    grep -q '"record":2,.*member ../../evil.json: its name has a' rejects
    grep -q '"record":4,.*member link.json: a link' rejects
    [ "$(find ../.. -name 'evil*' -o -name 'hard*' -o -name '*.json')" = "" ]
    [ ! -e /etc/evil.json ]
}

@test "bombs: little memory, and an error" {
    case $pack in *address* | *thread*) skip "a sanitizer's memory is not" ;; esac
    # 512 MiB out of 50 KB and less; never more than 1.5 GiB of address space
    bomb() { head -c 512M /dev/zero | tr '\0' "$1" | zstd -q; }
    limited() { (ulimit -v 1500000; "$pack" "$@" -o out "${o[@]}" -j 1); }
    bomb '\0' >zeros.jsonl.zst
    [ "$(stat -c %s zeros.jsonl.zst)" -lt 53687 ]
    run -65 limited zeros.jsonl.zst
    [[ $output == *"unknown format"* ]]
    run -65 limited zeros.jsonl.zst --format raw --dtype u16 --separator 1
    [[ $output == *"a document of over 256 MiB: is this the right separator?"* ]]
    run -65 limited zeros.jsonl.zst --format mds
    run -65 limited zeros.jsonl.zst --format packed
    bomb ' ' >spaces.jsonl.zst
    run -65 limited spaces.jsonl.zst
    [[ $output == *"a line of over 256 MiB"* ]]
    # a member of 300 MiB in a tar
    mkdir t && truncate -s 300M t/big.json && cp plain.jsonl t/x.txt
    tar -C t -cf - big.json x.txt | zstd -q >big.tar.zst
    run -65 limited big.tar.zst --strict
    [[ $output == *"record 0: member big.json: it is over 256 MiB"* ]]
}

@test "what comes out opens in Python, tokens and mask as they went in" {
    python=$BATS_TEST_DIRNAME/../build/venv/bin/python
    [ -x "$python" ] || skip "no build/venv (scripts/deps.sh python)"
    "$pack" "$data/tar/arrays.tgz" -o out "${o[@]}"
    run -0 "$python" - "$data/documents.jsonl" out/packed-00000.safetensors <<'PY'
import json, sys
from safetensors.numpy import load_file
rows = load_file(sys.argv[2])
found = {}
for ids, mask, doc in zip(rows["input_ids"], rows["loss_mask"], rows["doc_ids"]):
    for d in sorted(set(doc.tolist()) - {-1}):
        found[int(rows["source"][d][1])] = (ids[doc == d].tolist(), mask[doc == d].tolist())
want = [json.loads(line) for line in open(sys.argv[1])]
assert len(found) == len(want) == 14
for i, w in enumerate(want):
    assert found[i] == (w["input_ids"], w["loss_mask"]), i
PY
}

@test "nothing is lost in silence: an empty index, one key twice" {
    cp "$data"/megatron/*.bin m.bin 2>/dev/null || head -c 48 /dev/zero >m.bin
    : >m.idx
    run -65 "$pack" m.idx plain.jsonl -o out "${o[@]}"
    [[ $output == *"m.idx: cut: the index is empty"* ]]
    mkdir twice
    echo '{"input_ids": [1, 2]}' >twice/a.json
    tar cf twice.tar -C twice a.json
    echo '{"input_ids": [3, 4]}' >twice/a.json
    tar rf twice.tar -C twice a.json
    run -0 "$pack" twice.tar plain.jsonl -o out "${o[@]}" --rejects rejects
    grep -q 'a.json: the record has two such members' rejects
}
