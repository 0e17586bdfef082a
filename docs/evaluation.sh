#!/bin/sh
# Prints the tables of figures.md: simulates homes, learns and evaluates, by the program alone.
#
#   docs/evaluation.sh [homes|unlabelled|large|change|parameters|recurring|quiet|curve|procedures|segmenters|speed]
#
# all of them without an argument. SIZELEAK is the program (default: target/release/sizeleak), COMMANDS the number of test
# commands a home (default 2000), SEED where all chance comes from. With JSON=1 each line is a JSON object instead: `name`,
# `paper`, and the keys of `sizeleak evaluate --format json` (with `--curve` for the curve). It needs jq, and takes some
# minutes.
set -eu

sizeleak=${SIZELEAK:-target/release/sizeleak}
commands=${COMMANDS:-2000}
seed=${SEED:-20261124}
gateway=192.168.1.20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# action NAME SET BYTES: an action whose reply is so many bytes longer than a plain one.
action() {
    printf '[[action]]\nname = "%s"\nset = %s\nreplies = [{ min = %s, max = %s }]\n' "$1" "$2" "$3" "$3"
}

# The actions of the standard home, whose replies have sizes of their own, but for two.
own_replies=$(action on '"on"' 0; action off '"off"' 1; action toggle '"toggle"' 4; action timer '{ on = 300 }' 9
    action dim '{ level = 40 }' 6; action white '{ ct = 2700 }' 6; action colour '{ rgb = "ffa030" }' 12)

# With limit=unknown, homes are simulated without computing the best that is possible.
limit=known

# simulate NAME [TOML…]: a home whose scenario has these lines beside the number of its commands.
simulate() {
    home=$work/$1
    shift
    # Two tables have homes of the same names.
    rm -rf "$home"
    mkdir "$home"
    printf 'test = { commands = %s }\n' "$commands" > "$home/scenario.toml"
    for lines in "$@"; do printf '%b\n' "$lines" >> "$home/scenario.toml"; done
    [ $limit = known ] || set -- --quiet
    [ $limit = unknown ] || set --
    "$sizeleak" simulate --scenario "$home/scenario.toml" --seed "$seed" -o "$home" "$@" 2> "$home/said"
    # The best that is possible for whoever sees replies, in percent; nothing where it is not known.
    sed -n 's/.* \([0-9.]*\) % with the size of each reply.*/\1/p' "$home/said" > "$home/possible"
}

# learn NAME LABELS MODEL [ARGUMENT…]
learn() {
    home=$work/$1 labels=$2 model=$3
    shift 3
    "$sizeleak" learn "$home/learn.pcap" --labels "$labels" --gateway $gateway --quiet \
        --inventory "$home/inventory.toml" -o "$model" "$@"
}

# evaluate NAME MODEL [ARGUMENT…]: JSON on stdout.
evaluate() {
    home=$work/$1 model=$2
    shift 2
    "$sizeleak" evaluate --model "$model" "$home/test.pcap" --labels "$home/test.csv" \
        --gateway $gateway --quiet --format json "$@"
}

# paper NAME: what the paper's procedure gives on the same captures, in $work/NAME/paper.json; null where it fails.
paper() {
    echo null > "$work/$1/paper.json"
    if learn "$1" "$work/$1/learn.csv" "$work/$1/paper.toml" --method paper 2> "$work/$1/paper.log"; then
        evaluate "$1" "$work/$1/paper.toml" --set pruner.mode=paper > "$work/$1/paper.found" 2> "$work/$1/paper.log" || :
        [ ! -s "$work/$1/paper.found" ] || mv "$work/$1/paper.found" "$work/$1/paper.json"
    fi
}

# row NAME [HOME]: a line of the table out of the JSON on stdin, beside the paper's procedure on this home.
row() {
    beside=/dev/null
    possible=$(cat "$work/${2:-$1}/possible" 2> /dev/null || :)
    [ ! -f "$work/${2:-$1}/paper.json" ] || beside=$work/${2:-$1}/paper.json
    if [ -n "${JSON:-}" ]; then
        jq -c --arg name "$1" --slurpfile paper "$beside" '{name: $name, paper: $paper[0]} + .'
        return
    fi
    jq -r --arg name "$1" --argjson possible "${possible:-null}" --slurpfile paper "$beside" '
        def percent: if . == null then "–" else . * 1000 | round / 10 end;
        def digits(n): if . == null then "–" else pow(10; n) as $p | . * $p | round / $p end;
        .commands as $all | .before_pruning as $before | .after_pruning as $after
        | (if $possible then $possible / 100 else null end) as $limit
        | $paper[0] as $paper
        | [$name, ($before.precision | percent), ($after.precision | percent),
           ($after.top_1 / $all | percent), ($limit | percent),
           (if $limit then $after.top_1 / $all / $limit else null end | digits(3)), ($after.top_5 / $all | percent),
           ($after.candidates.mean | digits(1)), ($after.credible_set.coverage | percent),
           ($after.calibration.expected_error | digits(3)), ($after.calibration.by_chance | digits(3)),
           (.missed + .ambiguous), .spurious,
           ($paper.after_pruning.precision | percent),
           (if $paper then $paper.after_pruning.top_1 / $all else null end | percent)]
        | "| " + (map(tostring) | join(" | ")) + " |"'
}

header() {
    [ -z "${JSON:-}" ] || return 0
    echo "| $1 | before % | after % | first % | possible % | reached | five % | mean | credible % | error | chance | missed | spurious | paper % | paper first % |"
    echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|'
}

# home NAME [TOML…]: one line of the table.
home() {
    simulate "$@"
    learn "$1" "$work/$1/learn.csv" "$work/$1/model.toml"
    paper "$1"
    evaluate "$1" "$work/$1/model.toml" | row "$1"
}

# suites: a line for each cipher suite, `version suite`.
suites() {
    printf '%s\n' '1.2 aes-128-gcm' '1.2 chacha20-poly1305' '1.3 aes-128-gcm' "$@"
}

# of FRAMING SUITE: the lines of a scenario for both.
of() {
    printf '[session]\nframing = "%s"\n[tls]\nversion = "%s"\nsuite = "%s"\n' "$1" "${2% *}" "${2#* }"
}

homes() {
    header home
    for framing in websocket mqtt http; do
        suites '1.2 aes-128-cbc-sha' | while read -r suite; do
            home "$framing, TLS $suite" "$(of $framing "$suite")" "$own_replies"
        done
    done
    home 'replies alike'
    home 'no replies' '[replies]\nmode = "none"'
    home 'no replies, CBC' '[replies]\nmode = "none"' "$(of websocket '1.2 aes-128-cbc-sha')"
    home 'chunks of 100 bytes' '[tls]\nchunk = 100' "$own_replies"
    home '15 % reordered' '[capture]\nreordering = 0.15' "$own_replies"
    home 'mid-stream' '[capture]\nmid-stream = true' "$own_replies"
    limit=unknown
    # Labels that are off by 300 ms cannot tell which of two commands in 300 ms they are for.
    for share in 0.1 0.3; do
        home "$share overlapping" "[labels]\nerror = \"0s\"\n[command.overlap]\nshare = $share" "$own_replies"
    done
}

# singles NAME: the first label of each action alone, in $work/NAME/singles.csv.
singles() {
    awk -F, 'NR == 1 { print; next }
        { kind = 0; sum = 0; for (i = 2; i <= NF; i++) { sum += $i; if ($i) kind = i } }
        sum == 1 && !seen[kind]++' "$work/$1/learn.csv" > "$work/$1/singles.csv"
}

# 250 commands, seven of them labelled: each action alone.
unlabelled() {
    header 'seven labels'
    for framing in websocket mqtt http; do
        suites | while read -r suite; do
            name="$framing, TLS $suite"
            simulate "$name" '[learn]\nrepeats = 1\nrandom = 236' "$(of $framing "$suite")" "$own_replies"
            singles "$name"
            learn "$name" "$work/$name/singles.csv" "$work/$name/model.toml"
            paper "$name"
            evaluate "$name" "$work/$name/model.toml" | row "$name"
        done
    done
}

# 40 devices with twelve actions.
large() {
    header '40 devices'
    limit=unknown
    actions=$(action on '"on"' 0; action off '"off"' 1; action toggle '"toggle"' 4; action timer '{ on = 300 }' 9
        action dim '{ level = 40 }' 6; action white '{ ct = 2700 }' 6; action colour '{ rgb = "ffa030" }' 12
        action open '"open"' 2; action close '"close"' 3; action tilt '{ tilt = 45 }' 7; action heat '{ c = 21 }' 10
        action eco '"eco-mode"' 13)
    devices='[[device]]\nname = "plug"\ncount = 18\nactions = ["on", "off", "toggle", "timer"]
[[device]]\nname = "lamp"\ncount = 12\nactions = ["on", "off", "toggle", "timer", "dim", "white", "colour"]
[[device]]\nname = "blind"\ncount = 6\nactions = ["open", "close", "tilt"]
[[device]]\nname = "radiator"\ncount = 4\nactions = ["heat", "eco"]'
    home 'twelve actions' '[learn]\nrepeats = 3\nrandom = 300' "$devices" "$actions"
}

# New firmware in the middle of the test; message ids that grow.
change() {
    header change
    for kind in firmware ids; do
        case $kind in
            firmware) lines='[firmware-change]\nbytes = 6' ;;
            ids) lines='[command.message-id]\nmin-digits = 4\nmax-digits = 7\ndraw = "growing"' ;;
        esac
        home "$kind" "$lines" "$own_replies"
        evaluate "$kind" "$work/$kind/model.toml" --set epsilon-corrector.fixed=true | row "$kind, fixed" "$kind"
    done
}

# Actions with numbers and names in them.
parameters() {
    header parameters
    with() {
        printf '[[action]]\nname = "%s"\nset = %s\nreplies = [{ min = %s, max = %s }]\nparameter = %s\n' \
            "$1" "$2" "$3" "$3" "$4"
    }
    rooms='{ name = ["Bad", "Küche", "Flur", "Wohnzimmer", "Kinderzimmer oben"] }'
    actions=$(with on '"on"' 0 "$rooms"; with off '"off"' 1 "$rooms"; action toggle '"toggle"' 4
        action timer '{ on = 300 }' 9; with dim '"dim"' 6 '{ number = { min = 1, max = 100 } }'
        with white '"white"' 6 '{ number = { min = 900, max = 6500 } }'; action colour '{ rgb = "ffa030" }' 12)
    for framing in websocket mqtt http; do
        home "$framing" "[session]\nframing = \"$framing\"" '[learn]\nrepeats = 3\nrandom = 400' "$actions"
    done
}

# A third of the commands are one of six; with and without what was learned of that.
recurring() {
    header recurring
    limit=unknown
    for share in 0.33 0.0; do
        home "share $share" "[command.recurring]\nshare = $share\ncommands = 6" '[replies]\nmode = "none"'
        evaluate "share $share" "$work/share $share/model.toml" --set decomposer.prior=learned \
            | row "share $share, prior = learned" "share $share"
    done
}

# An hour and more of keep-alives and telemetry, with three commands in it.
quiet() {
    commands=3
    header 'quiet home'
    for framing in websocket mqtt http; do
        home "$framing" "[session]\nframing = \"$framing\"" '[command]\ninterval = { min = "30m", max = "45m" }' \
            '[learn]\nrepeats = 3\nrandom = 30'
    done
}

# Random samples of the first two thirds of the labels of the standard home, so many: what is not labelled is not learned
# from.
curve() {
    simulate curve
    home=$work/curve
    { cat "$home/learn.csv"; tail -n +2 "$home/test.csv"; } > "$home/all.csv"
    "$sizeleak" evaluate "$home/learn.pcap" "$home/test.pcap" --labels "$home/all.csv" --gateway $gateway --quiet \
        --inventory "$home/inventory.toml" --curve=14,20,28,42,60,90,120,192 -o "$work/curve.json"
    if [ -n "${JSON:-}" ]; then
        jq -c '.points[] | {name: (.labels | tostring)} + .' "$work/curve.json"
        return
    fi
    echo '| labelled commands | models | with warnings | sizes | before % | after % | first % | five % | mean |'
    echo '|---|---|---|---|---|---|---|---|---|'
    jq -r '
        def percent: . * 1000 | round / 10;
        def within: "\(.median | percent) (\(.interval.low * 100 | floor)–\(.interval.high * 100 | ceil))";
        .points[] | .after_pruning as $after
        | [.labels, "\(.learned) of \(.draws)", .warned, .sizes, (.before_pruning.precision | within),
           ($after.precision | within), ($after.top_1 | within), ($after.top_5 | within),
           ($after.candidates * 10 | round / 10)]
        | "| " + (map(tostring) | join(" | ")) + " |"' "$work/curve.json"
}

# What is learned here beside the paper's procedure, on the same captures.
procedures() {
    simulate procedures "$own_replies"
    header procedure
    learn procedures "$work/procedures/learn.csv" "$work/robust.toml"
    learn procedures "$work/procedures/learn.csv" "$work/paper.toml" --method paper
    evaluate procedures "$work/robust.toml" | row 'robust fit, learned pruning' procedures
    evaluate procedures "$work/robust.toml" --set pruner.mode=paper | row 'robust fit, pruning of the paper' procedures
    evaluate procedures "$work/paper.toml" --set pruner.mode=paper | row 'all as the paper' procedures
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
                | row "$algorithm, $name" $name
        done
    done
}

# Learning from 100,000 commands: time and peak memory, where GNU time is there to tell.
speed() {
    simulate speed '[learn]\nrepeats = 3\nrandom = 99958' '[command]\ninterval = { min = "1s", max = "3s" }' "$own_replies"
    [ ! -x /usr/bin/time ] || sizeleak="/usr/bin/time -f %es,%Us_user,%MkB $sizeleak"
    # Unquoted: a command with its arguments.
    $sizeleak learn "$work/speed/learn.pcap" --labels "$work/speed/learn.csv" --gateway $gateway --quiet \
        --inventory "$work/speed/inventory.toml" -o "$work/speed/model.toml" 2>&1
}

all='homes unlabelled large change parameters recurring quiet curve procedures segmenters speed'
for part in ${1:-$all}; do
    case " $all " in
        *" $part "*) ("$part"); [ -n "${JSON:-}" ] || echo ;;
        *) echo "evaluation.sh: \`$part\` is none of $all" >&2; exit 2 ;;
    esac
done
