#!/bin/sh
# layers.sh - includes point down only, and foreign headers have one home each.
#
#   tools, tests, bench -> model -> { rest of lib, kernels } -> base of lib -> libc
#
# Base of lib: what `base` below names.
#
# Prints every violation and exits 1 when there is one.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
base='err buf mem par rng num hash'

# layer FILE: which layer a project file belongs to, as a rank.
layer() {
    case $1 in
    lib/*)
        name=$(basename "$1"); name=${name%%.*}
        case " $base " in *" $name "*) echo 0 ;; *) echo 1 ;; esac ;;
    kernels/*) echo 1 ;;
    model/*) echo 2 ;;
    *) echo 3 ;;
    esac
}

# home HEADER: the only places that may include it.
home() {
    case $1 in
    cuda* | cublas* | nv*) echo 'kernels/cuda/|bench/|tests/emu/' ;;
    nccl.h) echo 'tools/train/comm_nccl' ;;
    zstd.h) echo 'lib/|tools/pack/(inflow|frame)|tests/|bench/' ;;
    lz4frame.h) echo 'tools/pack/frame' ;;
    xxhash.h) echo 'lib/hash' ;;
    jansson.h) echo 'lib/json|tests/test_json' ;;
    curl/*) echo 'tools/fetch/http' ;;
    expat.h) echo 'tools/fetch/xml' ;;
    openssl/*) echo 'tools/fetch/|tests/|bench/fastd' ;;
    archive.h | archive_entry.h) echo 'tools/pack/unpack|tests/' ;;
    check.h) echo 'tests/' ;;
    cblas.h) echo 'bench/' ;;
    esac
}

for f in $(git ls-files '*.c' '*.h' '*.cu' '*.cuh'); do
    from=$(layer "$f")
    # shellcheck disable=SC2013  # names of headers have no spaces
    for inc in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$f"); do
        to=
        for d in "$(dirname "$f")" lib kernels model tools tests .; do
            [ -f "$d/$inc" ] && { to=$d/$inc; break; }
        done
        if [ -z "$to" ]; then
            echo "$f: \"$inc\" is not a file of the project"; bad=1; continue
        fi
        to=${to#./}
        if [ "$(layer "$to")" -gt "$from" ]; then
            echo "$f: includes $to, which lies above it"; bad=1
        fi
        # inside lib and kernels: lib's rest and kernels know only lib's base and themselves
        case $f in
        lib/*) case $to in kernels/*) echo "$f: lib does not know kernels"; bad=1 ;; esac ;;
        kernels/*)
            case $to in
            lib/*) [ "$(layer "$to")" -eq 0 ] || { echo "$f: kernels knows only lib's base, not $to"; bad=1; } ;;
            esac ;;
        tools/*/*)
            case $to in
            tools/*/*) [ "$(dirname "$f")" = "$(dirname "$to")" ] || { echo "$f: a tool does not include another tool's $to"; bad=1; } ;;
            esac ;;
        esac
    done
    # shellcheck disable=SC2013
    for inc in $(sed -n 's/^#include <\([^>]*\)>.*/\1/p' "$f"); do
        at=$(home "$inc")
        [ -z "$at" ] || printf '%s\n' "$f" | grep -Eq "^($at)" || {
            echo "$f: <$inc> has its home in $at"; bad=1
        }
    done
done
exit $bad
