//! The texts under the options of `sizeleak audit --help`.

/// Examples of the short help.
pub(super) const EXAMPLES: &str = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --best --budget 20% --table-json table.json\n  \
    sizeleak audit test.pcap --labels test.csv --gateway 192.168.1.20";

/// Examples of the long help.
const LONG_EXAMPLES: &str = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --inventory larger-home.toml --prior devices --decay 0.75\n  \
    sizeleak audit --model model.toml --export csv --secret number -o joint.csv\n  \
    sizeleak audit --model model.toml --export maybenot --policy padme -o trace.log\n  \
    sizeleak audit --model model.toml --policy padme\n  \
    sizeleak audit --model model.toml --best --budget 20% --least-set 10 --table-c padding_table.c\n  \
    sizeleak audit --model model.toml --curve --csv -o curve.csv\n  \
    sizeleak audit --model model.toml --countermeasures --policy padme\n  \
    sizeleak audit --model model.toml --dummies 30% --replies one-size\n  \
    sizeleak audit test.pcap --labels test.csv --gateway 192.168.1.20 --model model.toml";

/// What is computed, in words.
const HOW: &str = "Without captures nothing is sampled: all commands that the inventory allows are summed over, with what the \
    model has learned of their sizes, of ε and of replies. The observer has the model and the prior and guesses as \
    well as these allow. docs/audit.md explains every figure.";

/// The keys of an audit as JSON.
const JSON_KEYS: &str = "JSON keys: schema, sentence, prior {name, decay, sentence}, actions (their names), devices (null without an \
    inventory; a list: name, count, actions), commands, sizes, most_actions, left_out (the probability of commands \
    of more actions), block_bytes (null unless sizes are seen in blocks), by_size, with_known_epsilon, \
    with_reply_count, with_replies (null if replies say nothing, or if their observer is in the list too_many) \
    (each: is_exact (false: upper bounds), command, number, kinds (null without an inventory)), repeated (a list: \
    observations, named), in_the_end, by_number (a list: actions, commands, probability, sizes, alone, named), \
    collisions (a list: actions, bytes, commands (counts in the order of `actions`)). Each of command, number and \
    kinds: secrets, outputs, guessing, named, times_guessing, above_guessing, min_entropy_bits, capacity, \
    prior_bits, information_bits, remaining_bits, security, least_security, tries (tries, guessing, named), \
    worst_posterior, certain (posterior, probability), smallest_set, alone, sets (from, to, probability).";

/// What is measured on labelled captures, and its keys.
const MEASURED_KEYS: &str = "With `--labels`, it is measured how often an observer of labelled captures is right who learned from the \
    commands before; no model is needed. With `--model` it is also measured how often the observer of the audit is \
    right there, beside what the model says. JSON keys are then: schema, sentence, model_sentence (null without \
    figures of a model), remarks (sentences on what cannot be concluded), actions, labels {matched, missed, \
    ambiguous, spurious}, by_size, with_reply_count, with_reply_bytes (each: command, number, kinds (null if they \
    are not known)), order (as independence, of the labels and their order), model (null without one: learned_from \
    (those of the captures that the model was learned from), commands, unknown_commands, other_ciphers, \
    unknown_sizes, figures (null with a fault: command, number (each: named, expected, agrees, over_all_commands)), \
    fault), seed. Each of command, number and kinds: commands, secrets, secrets_once, outputs, guessing, \
    frequentist, named, from_others (each: share, interval {low, high}), vulnerability {low, high}, upper_bounds \
    {learned_by_heart, nearest_neighbour}, times_guessing {ratio, interval (high is null without bound)}, \
    independence {permutations, as_great, p_value}, information {bits, interval (null if `covered` is below 0.95), \
    covered}, fewest_commands (null if no number is enough).";

/// The keys of padding and other countermeasures.
const PADDING_KEYS: &str = "With padding (docs/padding.md), JSON keys are: schema, sentence, prior, policy, commands_per_day, \
    command_bytes, padded {name, added_bytes, added_share, megabytes_a_day, by_size}, unpadded; of `--policy` also \
    repeated (a list: observations, named), named_with_known_key; of `--best` also goal, floor_named, \
    floor_added_share (null if they are not computed), floor_left_out (why not); of `--best --random` also table \
    (like padded), named_after_two, named_in_the_end, named_without_epsilon, named_with_known_key (each: table, \
    random). Those of `--curve`: schema, prior, guessing, command_bytes, commands_per_day, floor_left_out, points \
    (a list: policy, added_bytes, added_share, megabytes_a_day, named, times_guessing, information_bits, \
    number_named, floor_named). Those of `--batch`, `--dummies`, `--delay` and `--replies`: schema, sentence, \
    prior, countermeasures (their names), commands_per_day, command_bytes, before, after (each: by_size, \
    with_replies (null if the model does not know what replies say), real_named (how often it is said rightly \
    whether a command is real), cost {added_bytes, added_share, added_reply_bytes, megabytes_a_day, \
    added_messages_a_day, added_replies_a_day (these null where the model does not know replies), \
    mean_delay_seconds, most_delay_seconds (null: no limit)}); by_size and with_replies: is_exact, command, number, \
    kinds, each with guessing, named, times_guessing, information_bits, worst_posterior, smallest_set. Those of \
    `--countermeasures`: schema, prior, policy, commands_per_day, command_bytes, countermeasures (a list: name, \
    effect (as `after`; null if it cannot be computed), fault (why, else null)).";

/// The whole text of the long help.
pub(super) fn long() -> String {
    [LONG_EXAMPLES, HOW, JSON_KEYS, MEASURED_KEYS, PADDING_KEYS].join("\n\n")
}
