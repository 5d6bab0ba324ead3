#!/bin/sh
# mutants_gpu.sh - shows that test_gpu can fail, and by how much.
#
#   make CUDA=1 gpu-mutants              needs nvcc: one test_gpu for each planted error,
#                                        into runs/mutants, to be copied with the tree
#   scripts/mutants_gpu.sh run           needs a GPU: each must be off by ten times a
#                                        limit at least; a line each
#
# For each line of tests/mutants_gpu.txt a copy of kernels/cuda is changed, the files of
# its group (attn*, delta*, or itself) are compiled for the architecture in ARCH (90) and
# linked in front of the archives of BUILD.  make gives CC, NVCC and LIBS.
set -eu
cd "$(dirname "$0")/.."
what=${1:-}
list=tests/mutants_gpu.txt out=runs/mutants arch=${ARCH:-90}

prepare() {
    build=$1 number=0
    mkdir -p "$out"
    while IFS='|' read -r file op change; do
        case $file in '#'* | '') continue ;; esac
        number=$((number + 1))
        src=$out/src
        rm -rf "$src"
        mkdir -p "$src/kernels"
        cp -r kernels/cuda "$src/kernels/"
        sed -i "$change" "$src/kernels/cuda/${file% }"
        if cmp -s "$src/kernels/cuda/${file% }" "kernels/cuda/${file% }"; then
            echo "mutants_gpu.sh: does not apply: $file|$op|$change" >&2
            exit 1
        fi
        group=$(echo "$file" | sed 's/^\(attn\|delta\).*/\1/; s/\..*//')
        for f in kernels/cuda/"$group"*.cu; do
            f=$(basename "$f" .cu)
            "$NVCC" -I"$src" -I"$src/kernels" -I"$src/kernels/cuda" -I. -Ilib -Ikernels \
                -D_GNU_SOURCE -std=c++20 -O3 -gencode "arch=compute_$arch,code=sm_$arch" \
                -c -o "$src/$f.o" "$src/kernels/cuda/$f.cu" &
        done
        wait # what failed is missing at the link
        # shellcheck disable=SC2086  # LIBS are words
        $CC -s -o "$out/$number" "$build/tests/test_gpu.c.o" "$src"/*.o \
            "$build/kit.a" "$build/parts.a" "$build/lib.a" $LIBS
    done <$list
    rm -rf "$out/src"
}

run() {
    number=0 wrong=0
    while IFS='|' read -r file op change; do
        case $file in '#'* | '') continue ;; esac
        number=$((number + 1))
        name=$(echo "$op" | tr -d ' ')
        OP=$name "$out/$number" >"$out/$number.out" 2>&1 || true
        worst=$(awk '/^NO/ { for (i = 1; i < NF; i++) if ($i == "of")
                     { r = $(i - 1) / $(i + 1); if ($(i - 1) == "inf") r = 1e9
                       if (r > 1e6) r = 1e6; if (r > worst) worst = r } }
                     END { printf "%.0f", worst }' \
            "$out/$number.out")
        [ "$worst" -ge 10 ] || wrong=$((wrong + 1))
        printf '%-15s %6s times the limit: %s\n' "$name" "$worst" "$change"
    done <$list
    echo "$number planted, $wrong not found tenfold"
    [ $wrong = 0 ]
}

case $what in
prepare) prepare "${2:?usage: mutants_gpu.sh prepare BUILD}" ;;
run) run ;;
*) echo "usage: mutants_gpu.sh prepare BUILD | run" >&2; exit 64 ;;
esac
