#!/bin/sh
# Prints the tables of evaluation.md: simulates homes, learns and evaluates, by the program alone.
#
#   docs/evaluation.sh [table|quiet|curve|procedures|segmenters]     all of them without an argument
#
# SIZELEAK is the program (default: target/release/sizeleak), COMMANDS the number of test commands a home
# (default 10000), SEED where all chance comes from. With JSON=1 each line is a JSON object instead: `name`, and the keys of
# `sizeleak evaluate --json` (of the curve, of `sizeleak learn --json`). It needs jq, and takes some minutes.
set -eu

sizeleak=${SIZELEAK:-target/release/sizeleak}
commands=${COMMANDS:-10000}
seed=${SEED:-424201}
gateway=192.168.1.20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# simulate NAME [TOML…]: a home whose scenario has these lines beside the number of its commands.
simulate() {
    home=$work/$1
    shift
    mkdir "$home"
    printf 'test = { commands = %s }\n' "$commands" > "$home/scenario.toml"
    for lines in "$@"; do printf '%b\n' "$lines" >> "$home/scenario.toml"; done
    "$sizeleak" simulate --scenario "$home/scenario.toml" --seed "$seed" -o "$home" --quiet
}

# learn NAME LABELS MODEL [ARGUMENT…]
learn() {
    home=$work/$1 labels=$2 model=$3
    shift 3
    "$sizeleak" learn --capture "$home/learn.pcap" --labels "$labels" --gateway $gateway --quiet \
        --inventory "$home/inventory.toml" -o "$model" "$@"
}

# evaluate NAME MODEL [ARGUMENT…]: JSON on stdout.
evaluate() {
    home=$work/$1 model=$2
    shift 2
    "$sizeleak" evaluate --model "$model" --capture "$home/test.pcap" --labels "$home/test.csv" \
        --gateway $gateway --scenario "$home/scenario.toml" --quiet --json "$@"
}

# row NAME: a line of the table out of the JSON on stdin.
row() {
    if [ -n "${JSON:-}" ]; then
        jq -c --arg name "$1" '{name: $name} + .'
        return
    fi
    jq -r --arg name "$1" '
        def percent: . * 1000 | round / 10;
        def digits(n): pow(10; n) as $p | . * $p | round / $p;
        .commands as $all | .before_pruning as $before | .after_pruning as $after | .bayes_limit as $limit
        | [$name, ($before.precision | percent), ($after.precision | percent),
           ($after.top_1 / $all | percent), ($limit.top_1_with_replies | percent),
           ($limit.reached_in_the_end | digits(3)), ($after.top_5 / $all | percent),
           ($after.candidates.mean | digits(1)), ($after.credible_set.coverage | percent),
           ($after.calibration.expected_error | digits(3)), ($after.calibration.by_chance | digits(3)),
           (.missed + .ambiguous), .spurious]
        | "| " + (map(tostring) | join(" | ")) + " |"'
}

header() {
    [ -z "${JSON:-}" ] || return 0
    echo "| $1 | before % | after % | first % | possible % | reached | five % | mean | credible % | error | chance | missed | spurious |"
    echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|'
}

# home NAME [TOML…]: one line of the table.
home() {
    simulate "$@"
    learn "$1" "$work/$1/learn.csv" "$work/$1/model.toml"
    evaluate "$1" "$work/$1/model.toml" | row "$1"
}

table() {
    header home
    none='[replies]\nmode = "none"'
    for framing in websocket mqtt http; do
        session="[session]\nframing = \"$framing\""
        for suite in '1.2 aes-128-gcm' '1.2 chacha20-poly1305' '1.3 aes-128-gcm' '1.2 aes-128-cbc-sha'; do
            tls="[tls]\nversion = \"${suite% *}\"\nsuite = \"${suite#* }\""
            home "$framing, TLS $suite" "$session" "$tls"
            home "$framing, TLS $suite, no replies" "$session" "$tls" "$none"
        done
    done
    home 'websocket, chunks of 100 bytes' '[tls]\nchunk = 100'
    home 'websocket, 15 % reordered' '[capture]\nreordering = 0.15'
    home 'websocket, mid-stream' '[capture]\nmid-stream = true'
}

# An hour and more of keep-alives and telemetry, with three commands in it.
quiet() {
    commands=3
    header 'quiet home'
    for framing in websocket mqtt http; do
        simulate "quiet-$framing" "[session]\nframing = \"$framing\"" \
            '[command]\ninterval = { min = "30m", max = "45m" }' '[learn]\nrepeats = 3\nrandom = 30'
        learn "quiet-$framing" "$work/quiet-$framing/learn.csv" "$work/$framing.toml"
        evaluate "quiet-$framing" "$work/$framing.toml" | row "$framing"
    done
}

# The first labels of the standard home, so many, in order of time: what is not labelled is not learned from.
curve() {
    simulate curve
    learn curve "$work/curve/learn.csv" "$work/all.toml" --curve=14,20,28,42,60,90,120,192 --json \
        --test-capture "$work/curve/test.pcap" --test-labels "$work/curve/test.csv" > "$work/curve.json"
    if [ -n "${JSON:-}" ]; then
        jq -c '.points[] | {name: (.labels | tostring)} + .' "$work/curve.json"
        return
    fi
    echo '| labelled commands | sizes | before % | after % | first % | five % | mean |'
    echo '|---|---|---|---|---|---|---|'
    jq -r '
        def percent: . * 1000 | round / 10;
        .points[] | .commands as $all | .after_pruning as $after
        | [.labels, .sizes, (.before_pruning.precision | percent), ($after.precision | percent),
           ($after.top_1 / $all | percent), ($after.top_5 / $all | percent), ($after.candidates * 10 | round / 10)]
        | "| " + (map(tostring) | join(" | ")) + " |"' "$work/curve.json"
}

# What is learned here beside the paper's procedure, on the same captures.
procedures() {
    simulate procedures
    header procedure
    learn procedures "$work/procedures/learn.csv" "$work/robust.toml"
    learn procedures "$work/procedures/learn.csv" "$work/paper.toml" --method paper
    evaluate procedures "$work/robust.toml" | row 'robust fit, learned pruning'
    evaluate procedures "$work/robust.toml" --set pruner.mode=paper | row 'robust fit, pruning of the paper'
    evaluate procedures "$work/paper.toml" --set pruner.mode=paper | row 'all as the paper'
}

# Each algorithm of the segmenter, with one model, on homes that some of them find hard.
segmenters() {
    header 'segmenter, home'
    simulate chunks '[tls]\nchunk = 100'
    simulate mqtt '[session]\nframing = "mqtt"'
    commands=3
    simulate http-quiet '[session]\nframing = "http"' '[command]\ninterval = { min = "30m", max = "45m" }' \
        '[learn]\nrepeats = 3\nrandom = 30'
    for name in chunks mqtt http-quiet; do
        learn $name "$work/$name/learn.csv" "$work/$name/model.toml"
        for algorithm in gap record adaptive learned; do
            evaluate $name "$work/$name/model.toml" --set command-segmenter.algorithm=$algorithm \
                | row "$algorithm, $name"
        done
    done
}

for part in ${1:-table quiet curve procedures segmenters}; do
    case $part in
        table | quiet | curve | procedures | segmenters) ("$part"); [ -n "${JSON:-}" ] || echo ;;
        *) echo "evaluation.sh: \`$part\` is none of table, quiet, curve, procedures, segmenters" >&2; exit 2 ;;
    esac
done
