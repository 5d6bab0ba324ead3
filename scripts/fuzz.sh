#!/bin/sh
# fuzz.sh BUILD SECONDS [TARGET] - runs the fuzz targets, SECONDS each.
#
# The targets are tests/fuzz_*.c, built with clang, libFuzzer and the address and
# undefined sanitizers.  Corpora live in BUILD/fuzz and grow from run to run; what
# breaks a target is kept beside them and named.
set -eu
cd "$(dirname "$0")/.."
build=$1 seconds=$2 only=${3:-}
sanitizers=fuzzer-no-link,address,undefined
bin=$build/clang-release-fuzzer-no-link-address-undefined-cpu/fuzz
make -s CC=clang SAN=$sanitizers BUILD="$build" fuzz-targets
"$bin/fuzz_seeds" "$build/fuzz"
for target in "$bin"/fuzz_*"$only"*; do
    name=$(basename "$target")
    [ "$name" = fuzz_seeds ] && continue
    echo "fuzz: $name, $seconds s"
    mkdir -p "$build/fuzz/$name"
    "$target" -max_total_time="$seconds" -max_len=32768 -timeout=10 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$build/fuzz/$name-" "$build/fuzz/$name"
done
