#!/bin/sh
# modules.sh - the table of modules in ARCHITECTURE.md, made from the files' first lines.
#
#   scripts/modules.sh          prints the table
#   scripts/modules.sh check    1 when ARCHITECTURE.md holds another one
#   scripts/modules.sh write    puts it there
set -eu
cd "$(dirname "$0")/.."
doc=ARCHITECTURE.md

table() {
    for dir in lib kernels kernels/cpu kernels/cuda model tools tools/fetch tools/pack \
        tools/extract tools/train tools/eval tools/inspect; do
        printf '\n**%s/**\n\n| file | what it is |\n| --- | --- |\n' "$dir"
        git ls-files "$dir/*" | grep -E "^$dir/[^/]*\.(h|c|cu|cuh)$" | while read -r f; do
            # a header speaks for its source
            case $f in *.c | *.cu) [ -e "${f%.*}.h" ] && continue ;; esac
            # the idea: from line 2 up to the first full stop
            idea=$(sed -n '2,4s|^ *[/*]* *||p' "$f" | sed '1s|^[^ ]* - ||' | tr '\n' ' ' |
                sed -e 's|et al\. |et al@ |; s|\. .*||; s|\*/.*||; s|\. *$||; s| *$||; s|al@|al.|')
            # shellcheck disable=SC2016  # the backquotes are Markdown's
            printf '| `%s` | %s |\n' "$(basename "$f")" "$idea"
        done
    done
}

case ${1:-print} in
print) table ;;
check)
    tmp=$(mktemp)
    table >"$tmp"
    sed -n '/<!-- modules -->/,/<!-- end -->/p' "$doc" | sed '1d;$d' | diff - "$tmp" >/dev/null ||
        { rm -f "$tmp"; echo "$doc: the table of modules is old: scripts/modules.sh write"; exit 1; }
    rm -f "$tmp" ;;
write)
    tmp=$(mktemp)
    { sed '/<!-- modules -->/q' "$doc"; table; sed -n '/<!-- end -->/,$p' "$doc"; } >"$tmp"
    cat "$tmp" >"$doc"; rm -f "$tmp" ;;
esac
