#!/bin/sh
# mutants_emu.sh - planted errors in the CUDA kernels, found without a card.
#
#   make gpu-mutants [TEST=attn_span]    in a build without CUDA
#   scripts/mutants_emu.sh BUILD [OP]    COMPILE and CC, LIBS come from make
#
# The lines of tests/mutants_gpu.txt, and those of tests/mutants_emu.txt, which take away
# what puts threads in order: on a card such an error may hide.  Each is planted in a copy
# of kernels/cuda, the files that it reaches are compiled for the CPU (tests/emu) and
# linked in front of BUILD's archives, and test_gpu has to fail.  A line each says how:
# times the limit, other bits, or a message.
set -eu
cd "$(dirname "$0")/.."
build=$1 only=${2:-} planted=0 missed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# reached FILE: the sources that include it, by the compiler's own notes.
reached() {
    case $1 in
    *.cu) echo "${1%.cu}" ;;
    *) grep -l "kernels/cuda/$1" "$build"/emu/kernels/cuda/*.cu.d | sed 's|.*/||; s|\.cu\.d$||' ;;
    esac
}

# plant FILE CHANGE: the program with the error, at $work/test.
plant() {
    rm -rf "$work/kernels" "$work"/*.o
    mkdir "$work/kernels"
    cp -r kernels/cuda "$work/kernels/"
    sed -i "$2" "$work/kernels/cuda/$1"
    if cmp -s "$work/kernels/cuda/$1" "kernels/cuda/$1"; then
        echo "mutants_emu.sh: does not apply: $1|$2" >&2
        exit 1
    fi
    # shellcheck disable=SC2086  # COMPILE and LIBS are words
    for f in $(reached "$1"); do
        echo "$COMPILE -g0 -c -o $work/$f.o $work/kernels/cuda/$f.cu"
    done | xargs -P 2 -d '\n' -n 1 sh -c
    # shellcheck disable=SC2086
    $CC -Wl,-u,cuda_backend -o "$work/test" "$build/tests/test_gpu.c.o" "$work"/*.o \
        "$build/emu.a" "$build/kit.a" "$build/parts.a" "$build/lib.a" $LIBS
}

# found: how test_gpu has failed, nothing when it has not.
found() {
    if OP=$1 timeout 600 "$work/test" >"$work/out" 2>&1; then return; fi
    awk '/^NO/ { for (i = 1; i < NF; i++) if ($i == "of") {
                     r = $(i - 1) == "inf" ? 1e6 : $(i + 1) > 0 ? $(i - 1) / $(i + 1) : 1e6
                     if (r > worst) worst = r > 1e6 ? 1e6 : r }
                 if (/other bits/) other = 1 }
         /^kernel at/ { sub(/.*: /, ""); message = $0 }
         END { if (message) print message
               else if (worst > 1) printf "%.0f times the limit\n", worst
               else print other ? "other bits again" : "stopped" }' "$work/out"
}

while IFS='|' read -r file op change; do
    case $file in '#'* | '') continue ;; esac
    file=$(echo "$file" | tr -d ' ') op=$(echo "$op" | tr -d ' ')
    [ -z "$only" ] || [ "$only" = "$op" ] || continue
    plant "$file" "$change"
    how=$(found "$op")
    planted=$((planted + 1))
    [ -n "$how" ] || missed=$((missed + 1))
    printf '%-15s %-34s %s\n' "$op" "${how:-NOT FOUND}" "$file:$change"
done <<EOF
$(cat tests/mutants_gpu.txt tests/mutants_emu.txt)
EOF
echo "$planted planted, $missed not found"
[ $missed = 0 ] && [ $planted != 0 ]
