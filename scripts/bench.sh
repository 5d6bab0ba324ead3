#!/bin/sh
# bench.sh - runs the benches of one build, one after another, and says where.
#
#   scripts/bench.sh BUILD [PREFIX]     BUILD: a folder such as build/cc-release-cpu
#
# Tables on stdout, lines that begin with # are remarks.  THREADS limits the threads.
set -u
build=$1 prefix=${2:-}
cd "$(dirname "$0")/.." || exit 1
[ -x "$build/bench/bench_op" ] || { echo "bench.sh: no benches in $build: make bench" >&2; exit 64; }

echo "# $(git describe --always --dirty 2>/dev/null) $(basename "$build")"
sed -n 's/^model name[^:]*: /# /p' /proc/cpuinfo | sort | uniq -c | sed 's/^ *\([0-9]*\) # /# \1 x /'
echo "# load $(cut -d ' ' -f 1-3 /proc/loadavg) before"
status=0
for program in "$build"/bench/bench_*; do
    case $program in *.d | *.o) continue ;; "$build/bench/$prefix"*) ;; *) continue ;; esac
    echo
    echo "# $(basename "$program")"
    "$program" || status=1
done
exit $status
