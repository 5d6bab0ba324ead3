#!/bin/sh
# mutants.sh - shows that tests can fail.
#
#   CC= FLAGS= LINK= LIBS= tests/mutants.sh BUILD [sample]     (make test-mutants)
#
# For each line of mutants.txt a copy of a folder (kernels/cpu unless the files say
# another) is changed, what the change touches is compiled and linked in front of the archives, and the test must then fail.  A
# change that no longer applies, does not compile or survives is an error.
set -u
build=$1 only=${2:-}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
survived=0 tried=0

fail() {
    echo "mutants: $1: $line"
    survived=$((survived + 1))
}

# flags and archives of a test program, as the Makefile links it
describe() {
    case $1 in
    test_grad*) define=-DREAL=double; object=$build/f64/tests/$1.c.o
        archives="$build/kit.a $build/f64.a $build/lib.a" ;;
    *) define=; object=$build/tests/$1.c.o
        archives="$build/kit.a $build/parts.a $build/lib.a" ;;
    esac
}

while IFS='|' read -r files program op change; do
    line="$files|$program|$op|$change"
    case $files in '#'* | '') continue ;; esac
    case $op in *'*'*) ;; *) [ "$only" != sample ] || continue ;; esac
    program=$(echo "$program" | tr -d ' ') op=$(echo "$op" | tr -d ' *')
    tried=$((tried + 1))
    rm -rf "$dir/src" "$dir"/*.o
    first=${files%% *} from=kernels/cpu
    case $first in */*) from=${first%/*} first=${first##*/} ;; esac
    cp -r "$from" "$dir/src"
    sed -i "$(echo "$change" | sed 's/^ //')" "$dir/src/$first"
    if cmp -s "$dir/src/$first" "$from/$first"; then
        fail "does not apply"
        continue
    fi
    describe "$program"
    objects=
    for f in $files; do
        case $f in *.h) continue ;; esac
        f=${f##*/}
        # shellcheck disable=SC2086  # flags are words
        $CC $FLAGS $define -w -c -o "$dir/$f.o" "$dir/src/$f" || { objects=; break; }
        objects="$objects $dir/$f.o"
    done
    # shellcheck disable=SC2086
    if [ -z "$objects" ] ||
        ! $CC $LINK -o "$dir/test" "$object" $objects $archives $LIBS; then
        fail "does not build"
    elif OP=$op "$dir/test" >"$dir/out" 2>&1; then
        fail "survives"
    elif ! grep -q '^0%\|Failures: [1-9]\|Errors: [1-9]' "$dir/out"; then
        fail "fails without a verdict"
    fi
done <tests/mutants.txt

echo "mutants: $tried planted, $((tried - survived)) found"
[ "$survived" = 0 ] && [ "$tried" != 0 ]
