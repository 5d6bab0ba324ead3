#!/bin/sh
# kernels.sh - what every CUDA kernel takes, from the compiler's own report.
#
#   scripts/kernels.sh [BUILD]     BUILD: a folder such as build/cc-release-cuda
#
# A line a kernel and architecture: registers, static and dynamic shared memory, stack
# frame, spilled bytes.  The reports lie beside the objects (Makefile); dynamic bytes come
# from the table that launches use (test_gpu --kernels).  Fails when a kernel has a stack
# frame or spills, takes more shared memory than sm_120 has, or is missing.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/cc-release-cuda}
set -- "$build"/kernels/cuda/*.cu.o.report
[ -f "$1" ] || { echo "kernels.sh: no reports in $build, build with make CUDA=1 tests" >&2; exit 1; }
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$build/tests/test_gpu" --kernels >"$table"
cat "$@" | c++filt | awk -v table="$table" '
    BEGIN {
        while ((getline line < table) > 0) {
            split(line, f, " ")
            name = substr(line, length(f[1] " " f[2]) + 2)
            dynamic[name] = f[2]
        }
        printf "%-62s %-7s %4s %7s %8s %6s %7s\n", "kernel", "arch", "regs", "static",
            "dynamic", "stack", "spills"
    }
    function bytes(text, word,    n, w, i) { # the number before "bytes word"
        n = split(text, w, /[ ,]+/)
        for (i = 3; i <= n; i++)
            if (w[i] == word && w[i - 1] == "bytes") return w[i - 2] + 0
        return 0
    }
    /Compiling entry function/ {
        split($0, q, "\047")
        name = q[2]; arch = q[4]
        sub(/^void /, "", name)
        sub(/\(.*/, "", name) # arguments
    }
    /stack frame/ {stack = bytes($0, "stack"); spills = bytes($0, "spill")}
    /Used [0-9]+ registers/ {
        match($0, /Used [0-9]+/)
        regs = substr($0, RSTART + 5, RLENGTH - 5)
        fixed = bytes($0, "smem")
        more = dynamic[name] + 0
        seen[name] = 1
        archs[arch] = 1
        rows[++n] = sprintf("%-62s %-7s %4d %7d %8d %6d %7d", name, arch, regs, fixed,
            more, stack, spills)
        if (stack || spills) bad[n] = "stack or spills"
        if (fixed + more > 101376) bad[n] = "shared memory over 101376 bytes"
    }
    END {
        for (i = 1; i <= n; i++) {
            print rows[i] (i in bad ? "  <- " bad[i] : "") | "sort"
            if (i in bad) wrong++
        }
        close("sort")
        for (name in dynamic)
            if (!(name in seen)) {print "no report of " name; wrong++}
        for (a in archs) count++
        printf "%d kernels on %d architectures, %d wrong\n", n / (count ? count : 1), count, wrong
        exit wrong > 0 || n == 0
    }'
