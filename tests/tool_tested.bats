#!/usr/bin/env bats
# scripts/tested.sh: which kernels passed on a GPU is read from what passed there.

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return 1
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree/kernels/cuda" "$tree/scripts"
    cp scripts/tested.sh "$tree/scripts"
    cp kernels/op.h "$tree/kernels"
    cp kernels/cuda/*.cu "$tree/kernels/cuda"
    cd "$tree" || return 1
    output "$(scripts/tested.sh hash)" 0 >passed
}

# output HASH FAILURES: what test_gpu prints.
output() {
    printf '# kernels %s on NVIDIA H200, driver 13000, cuBLASLt 130000\n' "$1"
    printf '# bf16\n   add  T=1 H=1  y  0.0e+00 of 3e-03\n# f32\n'
    printf '%d%%: Checks: 2, Failures: %d, Errors: 0\n' $((100 - 50 * $2)) "$2"
}

@test "a passing run makes the tree tested, an edit untested" {
    [ "$(scripts/tested.sh)" = "kernels/cuda: UNTESTED" ]
    scripts/tested.sh write h200 passed
    [ "$(scripts/tested.sh)" = "kernels/cuda: TESTED on h200" ]
    grep -q "NVIDIA H200" bench/results/h200.tested
    echo "// another line" >>kernels/cuda/norm.cu
    [ "$(scripts/tested.sh)" = "kernels/cuda: UNTESTED as they stand on h200" ]
}

@test "what did not pass, or is of other kernels, is refused" {
    output "$(scripts/tested.sh hash)" 1 >failed
    grep -v bf16 passed >half
    output 0123456789abcdef 0 >other
    for file in failed half other /dev/null; do
        status=0
        scripts/tested.sh write h200 "$file" || status=$?
        [ "$status" = 65 ]
    done
    [ ! -e bench/results/h200.tested ]
}
