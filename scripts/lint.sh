#!/bin/sh
# lint.sh - what a machine can say about style; cheapest first, all findings printed.
#
# Format (clang-format), include rules (layers.sh), file and function length, banned
# calls, printing and exiting below tools/, names of files, their first lines, recipes,
# shell scripts (shellcheck), man pages (mandoc), spelling where codespell is installed.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
have() { command -v "$1" >/dev/null 2>&1; }

src=$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')

if have clang-format; then
    # shellcheck disable=SC2086  # $src are words
    printf '%s\n' $src | xargs -P 0 -n 50 clang-format --dry-run --Werror 2>&1 |
        sed -nE 's/^([^: ]+):[0-9]+:.*/\1: make format/p' | sort -u | grep . && bad=1
else
    echo "lint: skipped clang-format: not installed (scripts/deps.sh lint)"
fi

scripts/layers.sh || bad=1
scripts/modules.sh check || bad=1

# Text: tabs, trailing space, wide lines.
# shellcheck disable=SC2086  # $src are words
{
    grep -nP '\t' $src | sed -E 's/^([^:]*:[0-9]+):.*/\1: a tab/' | grep . && bad=1
    grep -nE ' +$' $src | sed -E 's/^([^:]*:[0-9]+):.*/\1: trailing space/' | grep . && bad=1
    awk 'length($0) > 88 {print FILENAME ":" FNR ": line over 88 columns"; e = 1} END {exit e}' $src || bad=1
}

# Files over 700 lines, functions over 80 (a CUDA kernel: 120).
# shellcheck disable=SC2086
awk '
    function ends() {if (lines > 700) {print file ": " lines " lines, over 700"; e = 1}}
    FNR == 1 {ends(); file = FILENAME; start = 0; name = ""; max = file ~ /\.cuh?$/ ? 120 : 80}
    {lines = FNR}
    /^[a-zA-Z_].*\)( *)$/ || /^[a-zA-Z_].*[(,]$/ {name = $0}
    /^\{/ {start = FNR}
    /^\}/ {if (start && FNR - start > max) {print file ":" start ": function of " FNR - start " lines: " name; e = 1} start = 0}
    END {ends(); exit e}' $src || bad=1

# Banned calls; printing, exiting and the environment below tools/.
# shellcheck disable=SC2086
grep -nE '\b(atoi|atof|atol|strcpy|strcat|sprintf|vsprintf|strtok|system|gets)\(' $src |
    sed 's|:|: banned call: |' | grep . && bad=1
for f in $src; do
    case $f in
    lib/err.c) ;;
    lib/* | model/* | kernels/*)
        sed -e 's|/\*.*\*/||; s|//.*||; s|/\*.*||; s|^ \*.*||' "$f" |
            grep -nE '\b(exit|_exit|abort|printf|puts|putchar|getenv)\(|\bstdout\b|\bstderr\b' |
            sed "s|^|$f: only tools print, exit or read the environment: |" |
            grep . && bad=1 ;;
    esac
done

# File names are unique, the cpu / cuda twins apart; every source opens with its idea.
git ls-files 'lib/*' 'kernels/*' 'model/*' 'tools/*' | grep -E '\.(c|cu)$' | grep -v '^kernels/cuda/' |
    sed 's|.*/||' | sort | uniq -d | sed 's|$|: two files of this name|' | grep . && bad=1
# shellcheck disable=SC2086
awk '
    FNR == 1 && $0 != "/* SPDX-License-Identifier: MIT */" {print FILENAME ": no SPDX line first"; e = 1}
    FNR == 2 {
        base = FILENAME; sub(/.*\//, "", base)
        if (index($0, "/* " base " - ") != 1) {print FILENAME ": line 2 does not open with its idea (/* " base " - ...)"; e = 1}
    }
    END {exit e}' $src || bad=1

# Recipes: KEY=value with values that make, sh, docker and Kubernetes read alike.
for f in $(git ls-files 'recipes/*.env'); do
    grep -vnE '^(#.*|[A-Z][A-Z0-9_]*=[A-Za-z0-9_./:,=@%+-]*)?$' "$f" | sed "s|^|$f: not KEY=value: |" | grep . && bad=1
done

scripts=$(git ls-files '*.sh' '.ci/run')
if have shellcheck; then
    # shellcheck disable=SC2086
    shellcheck $scripts || bad=1
fi
if have mandoc; then
    for f in $(git ls-files '*.1'); do mandoc -Tlint -Wwarning "$f" || bad=1; done
fi
if have codespell; then
    git ls-files '*.md' '*.c' '*.h' '*.1' '*.sh' | grep -v '^examples/data\|golden' |
        xargs codespell -q 3 -L 'ans,te,fo,ue,nd,dout' || bad=1
fi
[ $bad = 0 ] && echo "lint: clean"
exit $bad
