#!/bin/sh
# gpu_demo.sh - the demo on a GPU beside the same demo on the CPU.
#
#   make CUDA=1 gpu-demo             both steps, on a machine with a GPU and a compiler
#   scripts/gpu_demo.sh prepare BUILD [RECIPE]    without a GPU: rows and programs into
#                                    runs/gpu, to be copied with the tree
#   scripts/gpu_demo.sh run [RECIPE]              with a GPU: needs no more than that
#
# Hidden states of both devices are compared; 50 steps on the GPU are taken twice, and
# once more by a run that is killed and goes on: the same bytes; memory taken inside a step
# ends a run with 70.  Then the whole recipe
# on both, the curves side by side: final validation accuracy within 0.01, tau within 0.1.
# Ends with 1 when anything is not so.  DEVICE names the GPU (cuda), CPU the other (cpu).
set -eu
cd "$(dirname "$0")/.."
what=${1:-}
case $what in
prepare) build=${2:?usage: gpu_demo.sh prepare BUILD [RECIPE]} recipe=${3:-recipes/demo.env} ;;
run) recipe=${2:-recipes/demo.env} ;;
*) echo "usage: gpu_demo.sh prepare BUILD [RECIPE] | run [RECIPE]" >&2; exit 64 ;;
esac
# shellcheck disable=SC1090  # the recipe is the argument
. "./$recipe"
GPU=${DEVICE:-cuda} CPU=${CPU:-cpu} STEPS=50
out=runs/gpu

if [ "$what" = prepare ]; then
    mkdir -p "$out/bin"
    for tool in extract train eval; do
        strip -o "$out/bin/draft-$tool" "$build/bin/draft-$tool"
    done
    strip -o "$out/bin/near_aux" "$build/bench/near_aux"
    cp "$build/plant.so" "$out/bin"
    sed "s|^OUT=.*|OUT=$out|" "$recipe" >"$out/recipe.env"
    BIN=$build/bin ./pipeline.sh "$out/recipe.env" fetch pack
    exit
fi

bin=$out/bin wrong=0
begun=$(date +%s)
: >"$out/table"
line() { printf '%-44s %s\n' "$1" "$2" | tee -a "$out/table"; }
bad() { wrong=1; line "$1" "WRONG: $2"; }
step() { echo "== $1 ($(($(date +%s) - begun)) s)"; }

# recipe NAME: the recipe for a device, in a folder of its own
recipe_for() {
    mkdir -p "$out/$1"
    ln -sfn ../packed "$out/$1/packed"
    ln -sfn ../packed-valid "$out/$1/packed-valid"
    sed "s|^OUT=.*|OUT=$out/$1|" "$recipe" >"$out/$1/recipe.env"
}

# train RUN DEVICE OPTION...: becomes a run of STEPS steps on the GPU's states
train() {
    run=$1 device=$2
    shift 2
    exec "$bin/draft-train" -q "$out/gpu/hidden" -m "$TARGET" -d "$device" -o "$out/$run" \
        --layers "$LAYERS" --inter "$INTER" --block "$BLOCK" --mask-id "$MASK_ID" \
        --anchors "$ANCHORS" --gamma "$GAMMA" --lr "$LR" --warmup "$WARMUP" \
        --steps $STEPS --accumulate "$ACCUMULATE" --seed "$SEED" "$@"
}
last=$(printf 'step-%08d' $STEPS)
same() { # NAME RUN RUN
    for file in model.safetensors state.safetensors; do
        cmp "$out/$2/$last/$file" "$out/$3/$last/$file" || { bad "$1" "$file"; return; }
    done
    line "$1" "equal"
}

step "states on both devices"
recipe_for cpu
recipe_for gpu
export BIN="$bin"
DEVICE=$CPU ./pipeline.sh "$out/cpu/recipe.env" extract extract
DEVICE=$GPU ./pipeline.sh "$out/gpu/recipe.env" extract extract
if "$bin/near_aux" "$out/cpu/hidden" "$out/gpu/hidden" >"$out/near"; then
    line "hidden states, worst tap" "$(awk '{ print $(NF - 2) }' "$out/near" | sort -g | tail -1)"
else
    bad "hidden states" "$(tr '\n' ' ' <"$out/near")"
fi

step "$STEPS steps, twice, and killed"
rm -rf "$out/one" "$out/two" "$out/killed"
(train one "$GPU" --save-every 0)
(train two "$GPU" --save-every 0)
same "$STEPS steps, twice" one two
train killed "$GPU" --save-every 10 --keep 0 &
pid=$!
until [ -e "$out/killed/step-00000020" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -9 $pid 2>/dev/null || true
wait $pid || true
rm -rf "$out/killed/step-00000040" "$out/killed/$last" # where the kill came late
(train killed "$GPU" --save-every 10 --keep 0)
same "$STEPS steps, killed and resumed" one killed

step "4 MiB taken inside a step"
rm -rf "$out/planted"
status=0
(LD_PRELOAD=$PWD/$bin/plant.so PLANT_AT=150 train planted "$GPU") 2>"$out/planted.err" ||
    status=$?
if [ $status = 70 ] && grep -q "something allocates inside a step" "$out/planted.err"; then
    line "4 MiB taken inside a step" "70, $(sed -n 's/.*step \([0-9]*: [0-9]*\) bytes.* it, \([0-9]*\) after.*/step \1 and \2 free/p' "$out/planted.err")"
else
    bad "4 MiB taken inside a step" "status $status, $(tail -1 "$out/planted.err")"
fi

step "the recipe on $CPU"
DEVICE=$CPU ./pipeline.sh "$out/cpu/recipe.env" train eval
step "the recipe on $GPU"
DEVICE=$GPU ./pipeline.sh "$out/gpu/recipe.env" train eval

# field NAME FILE: the last value of a JSON number of that name
field() { sed -n "s/.*\"$1\": *\\([0-9.eE+-]*\\).*/\\1/p" "$2" | tail -1; }
# near NAME A B LIMIT
near() {
    if verdict=$(awk -v a="$2" -v b="$3" -v l="$4" 'BEGIN {
        d = a - b; if (d < 0) d = -d
        printf "%s and %s, %.4f apart", a, b, d; exit !(a != "" && b != "" && d <= l) }'); then
        line "$1, $CPU and $GPU" "$verdict"
    else
        bad "$1" "$verdict"
    fi
}
curve() { # accuracy of training, means of 50 steps
    grep '"kind":"step"' "$1" | sed 's/.*"loss":\([^,]*\),"accuracy":\([^,]*\),.*/\1 \2/' |
        awk '{ l += $1; a += $2 } NR % 50 == 0 { printf "%d %.4f %.4f\n", NR, l / 50, a / 50
            l = a = 0 }'
}
curve "$out/cpu/train.jsonl" >"$out/cpu/curve"
curve "$out/gpu/train.jsonl" >"$out/gpu/curve"
echo "== curves: step, loss and accuracy on $CPU and on $GPU, means of 50 steps"
paste "$out/cpu/curve" "$out/gpu/curve" | awk '{ print $1, $2, $3, $5, $6 }'
for run in cpu gpu; do
    grep '"kind":"valid"' "$out/$run/train.jsonl" | tail -1 | tr ',' '\n' >"$out/$run/valid"
done
near "validation accuracy" "$(field accuracy "$out/cpu/valid")" \
    "$(field accuracy "$out/gpu/valid")" 0.01
near "tau" "$(field tau "$out/cpu/report.json")" "$(field tau "$out/gpu/report.json")" 0.1
line "time" "$(($(date +%s) - begun)) s"
echo
cat "$out/table"
exit $wrong
