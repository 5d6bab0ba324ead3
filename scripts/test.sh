#!/bin/sh
# test.sh - runs the test programs of one build and gives the verdict.
#
#   scripts/test.sh BUILD [PREFIX]     BUILD: a folder such as build/cc-release-cpu
#
# Every BUILD/tests/test_* and tests/tool_*.bats whose name begins with PREFIX, two at a
# time; bats finds the tools through BIN.  One line a program with its time; the output
# of a failure is shown, and so are lines that begin with "skip:".  JOBS changes the two.
set -u
if [ "$1" = --one ]; then # the part that xargs runs: FOLDER PROGRAM
    dir=$2 program=$3
    name=$(basename "$program" .bats)
    begun=$(date +%s%N)
    case $program in
    *.bats) bats --formatter tap "$program" >"$dir/$name.out" 2>&1 ;;
    *) "$program" >"$dir/$name.out" 2>&1 ;;
    esac
    status=$?
    took=$((($(date +%s%N) - begun) / 10000000))
    verdict=ok
    [ $status = 0 ] || verdict=FAIL
    {
        printf '%-4s  %-28s %4d.%02d s\n' $verdict "$name" $((took / 100)) $((took % 100))
        if [ $status = 0 ]; then
            grep -E '^skip: |^ok .* # skip' "$dir/$name.out"
        else
            sed 's/^/      /' "$dir/$name.out"
            echo "      exit status $status"
        fi
    } >"$dir/$name.$verdict"
    cat "$dir/$name.$verdict" # whole, so that programs do not mix
    exit 0
fi

cd "$(dirname "$0")/.." || exit 1
build=$1 prefix=${2:-}
case $build in /*) ;; *) build=$PWD/$build ;; esac
BIN=$build/bin
BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-600}
export BIN BATS_TEST_TIMEOUT
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# A program of a source that is gone may still lie in the build folder.
for f in tests/test_*.c; do
    p=$build/tests/$(basename "$f" .c)
    if [ -x "$p" ]; then echo "$p"; fi
done >"$dir/all"
ls tests/tool_*.bats >>"$dir/all" 2>/dev/null
while read -r p; do
    case $(basename "$p") in "$prefix"*) echo "$p" ;; esac
done <"$dir/all" >"$dir/chosen"

xargs -r -n 1 -P "${JOBS:-2}" "$PWD/scripts/test.sh" --one "$dir" <"$dir/chosen"
passed=$(find "$dir" -name '*.ok' | wc -l)
failed=$(($(wc -l <"$dir/chosen") - passed))
[ "$passed$failed" != 00 ] || echo "no test begins with \"$prefix\""
scripts/tested.sh
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
