#!/usr/bin/env bats
# draft-pack: the same bytes whatever the threads, the way in and the interruptions.

setup() {
    bats_require_minimum_version 1.5.0
    cd "$BATS_TEST_TMPDIR"
    pack=$BIN/draft-pack
    mkdir in
    # 400 documents of 1 .. 60 tokens in three files, one of them compressed
    awk 'BEGIN {
        for (i = 0; i < 400; i++) {
            n = 1 + (i * 37) % 60; ids = ""; mask = ""
            for (t = 0; t < n; t++) {
                ids = ids (t ? "," : "") (i * 7 + t * 3) % 500
                mask = mask (t ? "," : "") (t * 3 >= n)
            }
            printf "{\"input_ids\":[%s],\"loss_mask\":[%s]}\n", ids, mask >("in/" int(i / 150) ".jsonl")
        }
    }'
    zstd -q --rm in/1.jsonl
    o=(--length 64 --vocab 500 --window 100 --seed 3 -q)
}

same() { diff -r "$1" "$2" >&2; }

count() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" "${2:-report}" | head -1; }

@test "packs, reports, and does nothing the second time" {
    run -0 "$pack" in -o out --length 64 --vocab 500 --report report
    [[ $output == *"training: "*" rows of 64 tokens, 9"*" % full"* ]]
    [[ $output == *" rows, "*" tokens, "*" read, "*" written; "*" s, "*" at most"* ]]
    [ "$(count records)" = 400 ]
    [ "$(count documents)" -le 400 ]
    [ "$(count rejected)" = 0 ]
    [ -f out/packed-00000.safetensors ]
    [ -f out/packed-end.safetensors ]
    cp -r out before
    run -0 "$pack" in -o out --length 64 --vocab 500 --report report
    [[ $output == *"nothing to do: out is whole"* ]]
    same out before
}

@test "any number of threads, folder and pipe: the same bytes" {
    "$pack" in -o one -j 1 "${o[@]}"
    for j in 2 8; do
        "$pack" in -o "j$j" -j $j "${o[@]}"
        same one j$j
    done
    "$pack" in "${o[@]}" | cmp - <(cat one/packed-*.safetensors)
    "$pack" in/ -o slash "${o[@]}"
    same one slash
}

@test "the folder's files in order are the same rows" {
    "$pack" in -o one "${o[@]}"
    "$pack" in/0.jsonl in/1.jsonl.zst in/2.jsonl -o three "${o[@]}"
    same one three
    mkdir -p deep/sub
    cp in/0.jsonl deep/a.jsonl
    cp in/1.jsonl.zst deep/sub/b.jsonl.zst
    cp in/2.jsonl deep/z.jsonl
    touch deep/README.md deep/.hidden.jsonl deep/x.jsonl.tmp
    run -0 "$pack" deep -o other --length 64 --vocab 500 --window 100 --seed 3
    [[ $output == *"1 files of other names were not read"* ]]
    # other names in the header, the same tensors
    cmp <(tail -c 20000 one/packed-00000.safetensors) <(tail -c 20000 other/packed-00000.safetensors)
}

@test "stdin: plain or zstd, and compared when there is a run already" {
    cat in/0.jsonl >all
    zstd -dcq in/1.jsonl.zst >>all
    cat in/2.jsonl >>all
    "$pack" - -o plain "${o[@]}" <all
    zstd -cq all | "$pack" - -o zst "${o[@]}"
    cmp <(tail -c 20000 plain/packed-00000.safetensors) <(tail -c 20000 zst/packed-00000.safetensors)
    run -0 "$pack" - -o plain --length 64 --vocab 500 --window 100 --seed 3 <all
    [[ $output == *"nothing to do"* ]]
    run -78 "$pack" - -o plain "${o[@]}" <in/0.jsonl
    [[ $output == *"was packed from other input"* ]]
    run -64 "$pack" - - -o x <all
}

@test "options that change the content are kept apart" {
    "$pack" in -o out "${o[@]}"
    for other in "--seed 4" "--window 50" "--length 32" "--block 3" "--min-supervised 1" "--long cut"; do
        # shellcheck disable=SC2086
        run -78 "$pack" in -o out "${o[@]}" $other
        [[ $output == *"is of another run"* ]]
        # shellcheck disable=SC2086
        "$pack" in -o - "${o[@]}" $other | run -1 cmp - out/packed-00000.safetensors
    done
    printf '{"input_ids":[1,2]}\n' >>in/2.jsonl
    run -78 "$pack" in -o out "${o[@]}"
    [[ $output == *"is of another run: input is"* ]]
}

@test "validation: a split by document, the same for any order of files" {
    v=("${o[@]}" --valid 0.2 --valid-output valid --report report)
    "$pack" in -o train "${v[@]}"
    [ "$(grep -c '"rows"' report)" = 2 ]
    a=$(sed -n '/"train"/,/"valid"/s/^ *"documents": \([0-9]*\),$/\1/p' report | head -1)
    b=$(sed -n '/"valid"/,$s/^ *"documents": \([0-9]*\),$/\1/p' report | head -1)
    [ $((a + b)) = 400 ]
    [ "$b" -gt 40 ]
    [ "$b" -lt 120 ]
    # the same document twice is on one side: a second copy of everything doubles both
    mkdir twice
    cp in/* twice
    for f in in/*; do cp "$f" "twice/copy-${f#in/}"; done
    "$pack" twice -o train2 "${o[@]}" --valid 0.2 --valid-output valid2 --report report2
    b2=$(sed -n '/"valid"/,$s/^ *"documents": \([0-9]*\),$/\1/p' report2 | head -1)
    [ "$b2" = $((2 * b)) ]
    run -64 "$pack" in -o train --valid 0.2 "${o[@]}"
    run -64 "$pack" in -o train --valid-output valid "${o[@]}"
    run -64 "$pack" in -o train --valid 0.2 --valid-output train "${o[@]}"
    run -64 "$pack" in -o train --valid 1 --valid-output v "${o[@]}"
}

@test "refused records are counted and written down, the others packed" {
    {
        echo '{"input_ids":[1,2,3]}'
        echo '{"input_ids":[1,2'
        echo
        echo '{"input_ids":[1,500]}'
        echo '{"input_ids":[1,2],"loss_mask":[1]}'
        echo '{"input_ids":[]}'
        echo '{"text":"no ids"}'
        echo '{"input_ids":[4,5]}'
    } >bad.jsonl
    run -0 "$pack" bad.jsonl -o out --length 64 --vocab 500 --rejects rejects --report report
    [[ $output == *"1 of 7 records refused: id_out_of_vocabulary"* ]]
    [ "$(count records)" = 7 ]
    [ "$(count rejected)" = 5 ]
    [ "$(count pieces)" = 2 ]
    [ "$(wc -l <rejects)" = 5 ]
    grep -q '^{"file":"bad.jsonl","record":3,"kind":"id_out_of_vocabulary","reason":"input_ids\[1\] is 500' rejects
    grep -q '"record":4,"kind":"lengths_differ"' rejects
    run -65 "$pack" bad.jsonl -o out2 --length 64 --vocab 500 --strict --rejects rejects2
    [[ $output == *"bad.jsonl: record 1: bad JSON"* ]]
    [ ! -e rejects2 ]
    [ ! -e out2/packed-end.safetensors ]
}

@test "nothing to pack, nothing to read" {
    : >empty.jsonl
    run -65 "$pack" empty.jsonl -o out "${o[@]}"
    [[ $output == *"nothing to pack: 0 records"* ]]
    echo '{"input_ids":[1,2],"loss_mask":[0,1]}' >poor.jsonl
    run -65 "$pack" poor.jsonl -o out "${o[@]}"
    run -0 "$pack" poor.jsonl -o out "${o[@]}" --min-supervised 1
    mkdir void
    run -66 "$pack" void -o out3 "${o[@]}"
    run -66 "$pack" none -o out3 "${o[@]}"
    run -64 "$pack" -o out3 "${o[@]}"
    printf 'GARBAGE' >x.jsonl
    run -65 "$pack" x.jsonl -o out3 "${o[@]}"
    [[ $output == *"x.jsonl: unknown format"* ]]
    [ ! -e out3/packed-end.safetensors ]
}

@test "the format can be named" {
    "$pack" in -o auto "${o[@]}"
    "$pack" in -o named "${o[@]}" --format jsonl
    cmp <(tail -c 20000 auto/packed-00000.safetensors) <(tail -c 20000 named/packed-00000.safetensors)
    run -64 "$pack" in -o out "${o[@]}" --format csv
    [[ $output == *"no format \"csv\"; there are auto, "* ]]
}

# the tensors of two runs of one shard, whatever their headers say
same_rows() { cmp -i 4096 "$1/packed-00000.safetensors" "$2/packed-00000.safetensors"; }

@test "Arrow: a saved dataset, a split, a file, a stream are the same rows as JSON lines" {
    golden=$BATS_TEST_DIRNAME/golden/arrow
    a=(--length 64 --vocab 1000 -q)
    "$pack" "$golden/saved.jsonl" -o lines "${a[@]}"
    for j in 1 3; do
        "$pack" "$golden/saved" -o saved$j "${a[@]}" -j $j
        # three rows of ids, documents and mask; `source` before them counts by file
        cmp <(tail -c $((3 * 64 * 9)) lines/packed-00000.safetensors) \
            <(tail -c $((3 * 64 * 9)) saved$j/packed-00000.safetensors)
    done
    same saved1 saved3
    for name in zstd lz4 file batches large v4; do
        rm -rf one two
        "$pack" "$golden/$name.jsonl" -o one "${a[@]}"
        "$pack" "$golden/$name.arrow" -o two "${a[@]}"
        same_rows one two
        "$pack" - -o - "${a[@]}" <"$golden/$name.arrow" >pipe
        cmp -i 4096 -n $(($(stat -c %s one/packed-00000.safetensors) - 4096)) pipe one/packed-00000.safetensors
    done
    run -0 "$pack" "$golden/dict" -o dict --length 64 --vocab 1000
    [[ $output == *"dict: split train, of train, test"* ]]
    "$pack" "$golden/dict" --split test -o test "${a[@]}"
    "$pack" "$golden/dict-test.jsonl" -o test-lines "${a[@]}"
    same_rows test test-lines
    run -66 "$pack" "$golden/dict" --split dev -o dev "${a[@]}"
    [[ $output == *"no split \"dev\", but: train, test"* ]]
}

@test "Arrow: what is refused, what is damaged, and Parquet" {
    golden=$BATS_TEST_DIRNAME/golden/arrow
    a=(--length 64 --vocab 1000)
    run -0 "$pack" "$golden/nulls.arrow" -o out "${a[@]}" --rejects rejects
    [ "$(wc -l <rejects)" = 12 ]
    grep -q '^{"file":"nulls.arrow","record":3,"kind":"no_input_ids","reason":"no input_ids ' rejects
    head -c 2000 "$golden/batches.arrow" >cut.arrow
    run -65 "$pack" cut.arrow -o out2 "${a[@]}"
    [[ $output == *"cut.arrow: record 7: cut: it ends "* ]]
    [ ! -e out2/packed-end.safetensors ]
    : >none.arrow
    run -65 "$pack" none.arrow in -o out3 "${a[@]}"
    [[ $output == *"none.arrow: cut: it ends "* ]]
    printf 'PAR1....PAR1' >x.parquet
    run -65 "$pack" x.parquet -o out4 "${a[@]}"
    [[ $output == *"x.parquet: Parquet is not read; convert it: python3 -c"* ]]
    run -65 "$pack" in/0.jsonl --format arrow -o out5 "${a[@]}"
    [[ $output == *"0.jsonl: record 0: there is no message where one must begin"* ]]
}

@test "what came before is left out on request" {
    cat in/0.jsonl in/0.jsonl >twice.jsonl
    sed 's/"loss_mask":\[0,/"loss_mask":[1,/' in/0.jsonl >>twice.jsonl
    run -0 "$pack" twice.jsonl -o out "${o[@]}" --report all
    [ "$(count duplicate_documents all)" = 0 ]
    run -0 "$pack" twice.jsonl -o once --length 64 --vocab 500 --window 100 --dedup --report report
    # the second copy, and those of the third whose mask did not change
    same_mask=$(grep -vc '"loss_mask":\[0,' in/0.jsonl)
    [ "$(count duplicate_documents)" = $((150 + same_mask)) ]
    [[ $output == *" documents that came before: "* ]]
    [ $(($(count tokens) + $(count unsupervised_tokens) + $(count duplicate_tokens))) = "$(count document_tokens)" ]
    run -78 "$pack" twice.jsonl -o out "${o[@]}" --dedup
}

@test "a file without records is said to be one" {
    : >in/empty.jsonl
    printf '' | zstd -q >in/nothing.jsonl.zst
    : >in/zero.jsonl.zst
    run -0 "$pack" in -o out "${o[@]}" --report report
    [[ $output == *"in/empty.jsonl: no records in this file (3 such files)"* ]]
    [ "$(count files_empty)" = 3 ]
    [ "$(count records)" = 400 ]
}

@test "documents without a mask are counted and said" {
    printf '{"input_ids":[1,2,3]}\n{"input_ids":[4,5],"loss_mask":null}\n{"input_ids":[6],"loss_mask":[1]}\n' >bare.jsonl
    run -0 "$pack" bare.jsonl -o out --length 64 --vocab 500 --report report
    [ "$(count unmasked_documents)" = 2 ]
    [[ $output == *"2 documents came without a mask: all their tokens are supervised"* ]]
    run -0 "$pack" in -o out2 "${o[@]}" --report report
    [ "$(count unmasked_documents)" = 0 ]
    [[ $output != *"without a mask"* ]]
}

@test "a mark in front of the first line is no text, and none elsewhere" {
    (printf '\357\273\277' && cat in/0.jsonl) >marked.jsonl
    run -0 "$pack" marked.jsonl -o out "${o[@]}" --report marked
    run -0 "$pack" in/0.jsonl -o plain "${o[@]}" --report report
    [ "$(count bytes marked)" = $(($(count bytes) + 3)) ]
    diff <(grep -v '"bytes"' marked) <(grep -v '"bytes"' report)
    printf '{"input_ids":[1,2,3]}\n\357\273\277{"input_ids":[2,3]}\n' >inside.jsonl
    run -0 "$pack" inside.jsonl -o out2 --length 64 --vocab 500 --report report
    [ "$(count rejected)" = 1 ]
    printf '\357\273' >half.jsonl
    run -65 "$pack" half.jsonl -o out3 "${o[@]}"
    [[ $output == *"half.jsonl"* ]]
}

@test "files of one name in two folders are told apart" {
    mkdir a b
    printf '{"input_ids":[1,2,3]}\n{"input_ids":[7777]}\n' | tee a/x.jsonl >b/x.jsonl
    printf '{"input_ids":[7777]}\n{"input_ids":[1]}\n' >b/y.jsonl
    run -0 "$pack" a b -o out --length 64 --vocab 500 --rejects rejects
    [ "$(grep -o '"file":"[^"]*"' rejects)" = $'"file":"a/x.jsonl"\n"file":"b/x.jsonl"\n"file":"y.jsonl"' ]
    # what is written does not know where they lie
    run -0 "$pack" "$PWD/a" "$PWD/b" -o out2 --length 64 --vocab 500
    diff -r out out2
}

@test "the vocabulary comes from -m" {
    mkdir target
    echo '{"model_type":"any","vocab_size":400}' >target/config.json
    run -0 "$pack" in -o out --length 64 -m target --report report
    [ "$(count id_out_of_vocabulary)" -gt 0 ]
    run -78 "$pack" in -o out2 --length 64 --target target --vocab 500
    echo '{"text_config":{"vocab_size":500}}' >target/config.json
    run -0 "$pack" in -o out3 --length 64 -m target --report report
    [ "$(count rejected)" = 0 ]
    echo '{}' >target/config.json
    run -65 "$pack" in -o out4 --length 64 -m target
    [[ $output == *"target/config.json: no key \"vocab_size\""* ]]
    run -0 "$pack" in -o out5 --length 64
    [[ $output == *"ids are not checked"* ]]
}

@test "long documents: split, cut, drop" {
    awk 'BEGIN {printf "{\"input_ids\":[0"; for (i = 1; i < 150; i++) printf ",%d", i; print "]}"}' >long.jsonl
    echo '{"input_ids":[1,2,3]}' >>long.jsonl
    run -0 "$pack" long.jsonl -o split --length 64 --vocab 500 --report report --block 4
    [ "$(count pieces)" = 4 ]
    [ "$(count tokens)" = 153 ]
    [ "$(count supervised_tokens)" = 145 ]
    [ "$(count anchors)" = $((63 + 59 + 17 + 2)) ]
    run -0 "$pack" long.jsonl -o cut --length 64 --vocab 500 --report report --long cut
    [ "$(count pieces)" = 2 ]
    [ "$(count long_tokens)" = 86 ]
    run -0 "$pack" long.jsonl -o drop --length 64 --vocab 500 --report report --long drop
    [ "$(count pieces)" = 1 ]
    [ "$(count long_tokens)" = 150 ]
    run -64 "$pack" long.jsonl -o x --length 64 --long shred
}

@test "parts share the documents and lie side by side" {
    for i in 0 1 2; do "$pack" in -o out "${o[@]}" --part $i/3 --report report$i; done
    [ $(($(count records report0) + $(count records report1) + $(count records report2))) = 400 ]
    [ "$(ls out)" = "packed-0-of-3-00000.safetensors
packed-0-of-3-end.safetensors
packed-1-of-3-00000.safetensors
packed-1-of-3-end.safetensors
packed-2-of-3-00000.safetensors
packed-2-of-3-end.safetensors" ]
    run -78 "$pack" in -o out "${o[@]}"
    run -64 "$pack" in -o out "${o[@]}" --part 3
}

@test "a bus error ends with a message and 74" {
    case $BIN in *address* | *thread*) skip "the signal is a sanitizer's" ;; esac
    mkfifo pipe
    "$pack" - -o out --format jsonl <pipe 2>err &
    exec 8>pipe
    for _ in $(seq 400); do [ ! -e out/.packed.lock ] || break; sleep 0.05; done
    [ -e out/.packed.lock ]
    kill -BUS $!
    run -74 wait $!
    exec 8>&-
    [[ $(cat err) == *"cut short meanwhile"* ]]
}

@test "one writer at a time in a folder, or in a part of it" {
    mkdir out
    exec 9>out/.packed.lock
    flock 9
    run -75 "$pack" in -o out "${o[@]}"
    [[ $output == *"out: another process is at work here (it holds out/.packed.lock)"* ]]
    run -75 "$pack" in -o out "${o[@]}" --part 0/2
    exec 9>out/.packed.lock-0-of-2
    flock 9
    run -75 "$pack" in -o out "${o[@]}" --part 0/2
    [ "$(ls out)" = "" ]
    run -0 "$pack" in -o out "${o[@]}" --part 1/2
    exec 9>&-
    run -0 "$pack" in -o out "${o[@]}" --part 0/2
}

@test "damaged and cut compression is an error, and nothing passes for whole" {
    head -c 400 in/1.jsonl.zst >cut.jsonl.zst
    run -65 "$pack" cut.jsonl.zst -o out "${o[@]}"
    [[ $output == *"cut.jsonl.zst: cut: it ends inside a zstd frame"* ]]
    [ ! -e out/packed-end.safetensors ]
    { head -c 300 in/1.jsonl.zst; printf XXXX; tail -c +305 in/1.jsonl.zst; } >bad.jsonl.zst
    run -65 "$pack" bad.jsonl.zst -o out2 "${o[@]}"
}

@test "memory is bounded, however much comes" {
    case $BIN in *address* | *thread*) skip "a sanitizer's memory is not" ;; esac
    ids=$(seq -s , 1 400)
    # 600 MB of rows do not fit into 500 MB, a shard of 256 MiB and a window do
    n=$(
        ulimit -v 500000
        yes "{\"input_ids\":[$ids]}" | "$pack" - -q -j 1 --vocab 500 2>err | head -c 600M | wc -c
    )
    cat err
    [ "$n" = $((600 << 20)) ]
}

@test "killed anywhere, run again: identical bytes" {
    # rows of 1 MiB and more, so that a run has several shards
    awk 'BEGIN {for (i = 0; i < 9000; i++) {printf "{\"input_ids\":[%d", i
        for (t = 1; t < 50; t++) printf ",%d", (i * t) % 4000; print "]}"}}' >big.jsonl
    b=(--length 1M --vocab 10000 --window 3000 -q --valid 0.3 --valid-output)
    "$pack" big.jsonl -o want "${b[@]}" want-v --report want-report
    for ms in 010 040 080 160; do
        rm -rf out v report
        "$pack" big.jsonl -o out "${b[@]}" v --report report &
        pid=$!
        sleep 0.$ms
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
        run -0 "$pack" big.jsonl -o out "${b[@]}" v --report report
        same want out
        same want-v v
        cmp want-report report
    done
}

@test "random data sets hold what a model in Python promises" {
    python=$BATS_TEST_DIRNAME/../build/venv/bin/python
    [ -x "$python" ] || skip "no build/venv (scripts/deps.sh python)"
    run -0 "$python" "$BATS_TEST_DIRNAME/pack_model.py" "$pack" 0 100
}

@test "a reader that closes: 74" {
    set +e
    "$pack" in "${o[@]}" 2>err | head -c 10 >/dev/null
    status=("${PIPESTATUS[@]}")
    set -e
    [ "${status[0]}" = 74 ] || [ "${status[0]}" = 0 ] # all may fit into the pipe
    run -74 sh -c "'$pack' in --length 64 --vocab 500 >/dev/full"
}

@test "the first record refused is named, even when all are" {
    printf '{"input_ids":[1,-2]}\n' >"$BATS_TEST_TMPDIR/bad.jsonl"
    run "$BIN/draft-pack" "$BATS_TEST_TMPDIR/bad.jsonl" -o "$BATS_TEST_TMPDIR/out"
    [ "$status" -eq 65 ]
    [[ $output == *"bad.jsonl: record "*" refused: "* ]]
}

@test "a side file never lands on the input or on another" {
    cp in/0.jsonl keep.jsonl
    run -64 "$pack" keep.jsonl -o out "${o[@]}" --report keep.jsonl
    run -64 "$pack" keep.jsonl -o out "${o[@]}" --rejects ./keep.jsonl
    run -64 "$pack" keep.jsonl -o out "${o[@]}" --report one --rejects one
    cmp in/0.jsonl keep.jsonl
    [ ! -e out/packed-00000.safetensors ]
}

@test "nothing to pack: the report and the rejects say why" {
    printf '{"input_ids":[1,2]}\n{"input_ids":[9]}\n' >bad.jsonl
    run -65 "$pack" bad.jsonl -o out --vocab 1 --report report --rejects rejects
    [ "$(count rejected)" = 2 ]
    [ "$(wc -l <rejects)" = 2 ]
}
