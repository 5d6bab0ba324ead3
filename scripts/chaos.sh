#!/usr/bin/env bash
# chaos.sh - draft-fetch under random faults and SIGKILLs; in the end every byte is there.
#
#   scripts/chaos.sh BUILD RUNS [SEED]
#
# Rounds of runs into one folder: up to six of them on a server that spoils every eighth
# answer (tests/faultd.py --chaos), half of them killed at a random moment; then one on
# the server as it should be.  After every run each file under its final name equals the
# source; after the last one of a round all are there, nothing is left over, and a
# further run finds nothing to do.  Bytes that were sent beyond once each are counted:
# what faults and kills cost.  Ends with 'N passed, N failed'.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${1:?usage: chaos.sh BUILD RUNS [SEED]}
runs=${2:-300}
RANDOM=${3:-1}
case $build in /*) ;; *) build=$PWD/$build ;; esac
fetch=$build/bin/draft-fetch
work=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
tests=$PWD/tests
cd "$work" || exit

mkdir -p src/deep/er "src/a b"
for i in $(seq 40); do head -c $((RANDOM % 20000)) /dev/urandom >"src/a b/$i#%.bin"; done
for i in 1 2 3 4 5; do head -c $((200000 + RANDOM * 15)) /dev/urandom >"src/deep/$i.bin"; done
head -c 3000000 /dev/urandom >src/deep/er/large.bin
: >src/empty
size=$(find src -type f -printf '%s\n' | awk '{n += $1} END {print n}')

python3 "$tests/faultd.py" --ready port --bucket b=src --checksum crc64nvme --chaos 0.125 \
    --seed "$RANDOM" --log log >server.log 2>&1 &
server=$!
for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done
url=http://127.0.0.1:$(cat port)

fault_rate() { curl -sf -X PUT -d "$1" "$url/-/chaos"; }

# draw: the command of one run, with options drawn at random.
draw() {
    run=("$fetch" s3://b/ -o dst --endpoint "$url" --no-sign -j $((1 + RANDOM % 2))
        --connections $((2 + RANDOM % 15)) --part-size $((65536 << RANDOM % 4))
        --retries 4 --stall 0.7)
}

# What has a final name is whole.
good_so_far() {
    [ ! -d dst ] || (cd dst && find . -path ./.draft-fetch -prune -o -type f -print0) |
        while IFS= read -r -d '' f; do cmp "src/$f" "dst/$f" || exit 1; done
}

complete() {
    diff -r -x .draft-fetch src dst && [ ! -e dst/.draft-fetch/tmp ] &&
        [ "$(find dst/.draft-fetch -type f ! -name lock | wc -l)" = 1 ]
}

fail() {
    echo "chaos: run $n: $1"
    cat out
    failed=$((failed + 1))
}

n=0 failed=0 killed=0 rounds=0 ended=0
while [ $n -lt "$runs" ]; do
    rm -rf dst
    fault_rate 0.125
    for ((k = RANDOM % 6 + 1; k > 0 && n < runs; k--)); do
        n=$((n + 1))
        draw
        "${run[@]}" >out 2>&1 &
        pid=$!
        if [ $((RANDOM % 2)) = 0 ]; then
            sleep "0.$(printf %03d $((RANDOM % 1000)))"
            kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
        fi
        wait $pid 2>/dev/null
        status=$?
        case $status in
        0) ended=$((ended + 1)) ;;
        65 | 69 | 75 | 137) ;;
        *) fail "status $status" ;;
        esac
        good_so_far || fail "a wrong file under a final name"
    done
    fault_rate 0
    draw
    run+=(--retries 10 --stall 20) # a slow machine is not silence
    "${run[@]}" >out 2>&1 || fail "the clean run behind it: status $?"
    complete || fail "the clean run left a folder that differs"
    "${run[@]}" >out 2>&1
    grep -q "nothing to do" out || fail "the run behind the clean one found something"
    rounds=$((rounds + 1))
done
sent=$(python3 -c 'import json, sys
print(sum(json.loads(line)["sent"] for line in open("log") if "\"get\"" in line))')
echo "chaos: $n runs in $rounds rounds, $killed killed, $ended came through by themselves;" \
    "$((size * rounds >> 20)) MiB wanted, $((sent - size * rounds >> 20)) MiB sent beyond that"
echo "$((n - failed)) passed, $failed failed"
[ $failed = 0 ]
