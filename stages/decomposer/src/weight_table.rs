//! How probable ways to make up a sum are, by the prior: of each sum the probability of all its ways together and that of
//! its most probable one, from every state of the inventory's automaton on.
//!
//! The prior's factors are laid on the walk through the automaton (`inventory`): taking the nth of an action weighs
//! [`Prior::ln_next`], times the share of the devices for it that are still left; the end of a walk of n actions weighs
//! P(n) over the sum of the weights of all walks of n actions. That the state knows n costs a state for each number. Where
//! a command can have more actions than that is worth, the numbers are taken as geometric and the actions as if nothing
//! were known of how they go together: a factor for each action taken, which needs no more states than counting does.

use sizeleak_model::{Condition, Limits, Prior};

use crate::cache::{Cache, Rows};
use crate::inventory::{Automaton, Layer};
use crate::open::Open;

/// The most actions of a command whose number the states know, as many as the table has room for.
pub(crate) const COUNTED: [u32; 4] = [64, 32, 16, 8];

/// The places of the counting automaton with the numbers of an action taken from there are this many at most.
pub(crate) const MAX_TURNS: usize = 1 << 21;

/// Weights by which ways are compared, over one automaton.
#[derive(Debug, Clone)]
pub(crate) struct Ranking {
    automaton: Automaton,
    form: Form,
    cache: Cache<Cell>,
    /// Where numbers of actions are counted: which numbers of the layer's action lead to an end, from each state. A quarter of
    /// what `cache` takes.
    open: Cache<Open>,
}

/// What is known of the ways to make up a sum from a state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// The sum of their weights.
    mass: f64,
    /// The logarithm of the greatest.
    pub(crate) best: f64,
}

impl Default for Cell {
    /// There is no way.
    fn default() -> Self {
        Self { mass: 0.0, best: f64::NEG_INFINITY }
    }
}

impl Cell {
    fn end(sum: usize) -> Self {
        if sum == 0 { Self { mass: 1.0, best: 0.0 } } else { Self::default() }
    }

    /// Adds the ways of another state that is reached with a weight.
    fn add(&mut self, Turn { weight, ln, .. }: Turn, other: Self) {
        self.mass += weight * other.mass;
        self.best = self.best.max(ln + other.best);
    }
}

#[derive(Debug, Clone)]
enum Form {
    /// Of each state of each layer, what taking 0, 1, 2… of the action weighs; with the place of a state's first.
    Counted { turns: Vec<Turn>, firsts: Vec<usize> },
    /// What taking one more of each layer's action weighs, whatever came before. In the sums of weights, each byte weighs
    /// `per_byte` (a logarithm) more, so that the sums neither vanish nor overflow; it cancels out.
    Geometric { takes: Vec<Turn>, per_byte: f64 },
}

/// A number of an action is taken: the weight, its logarithm, and the next layer's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) weight: f64,
    pub(crate) ln: f64,
    pub(crate) pass: u32,
}

/// A way to go on from a state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    /// How many of the layer's action are taken.
    pub(crate) taken: u32,
    /// The state of the next layer.
    pub(crate) state: u32,
    /// What is left of the sum.
    pub(crate) rest: usize,
    /// The logarithm of the weight.
    pub(crate) ln: f64,
}

/// Where a way enters a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) layer: usize,
    pub(crate) state: u32,
    /// What is left of the sum.
    pub(crate) rest: usize,
    /// The logarithm of the weight so far.
    pub(crate) before: f64,
}

impl Place {
    /// Where a sum's ways begin, which has a weight of its own.
    pub(crate) fn beginning(sum: usize, before: f64) -> Self {
        Self { layer: 0, state: 0, rest: sum, before }
    }

    /// Where a way goes on.
    pub(crate) fn after(self, Choice { state, rest, ln, .. }: Choice) -> Self {
        Self { layer: self.layer + 1, state, rest, before: self.before + ln }
    }
}

impl Ranking {
    /// A ranking that knows numbers of actions, as far as its table has room; `None` where that is not worth having.
    pub(crate) fn counted(sizes: &[usize], limits: &Limits, prior: &Prior) -> Option<Self> {
        let (least, greatest) = (sizes.iter().min()?, sizes.iter().max()?);
        COUNTED.iter().find_map(|most| {
            // Beyond it there are commands of more actions than are counted.
            let max_sum = match limits.max_actions() {
                max if max <= *most => greatest.saturating_mul(max as usize),
                _ => least.saturating_mul(*most as usize + 1).saturating_sub(1),
            };
            let limits = limits.counting(*most);
            let automaton = Automaton::new(sizes, &limits)?;
            let cache = Cache::new(automaton.states, Some(max_sum));
            let form = counted(&automaton, &limits, prior).filter(|_| cache.reaches(max_sum))?;
            let open = Cache::new(automaton.states, Some(max_sum));
            Some(Self { automaton, form, cache, open })
        })
    }

    /// A ranking for numbers of actions without end.
    pub(crate) fn geometric(sizes: &[usize], limits: &Limits, prior: &Prior) -> Option<Self> {
        let automaton = Automaton::new(sizes, limits)?;
        let ln = |layer: &Layer| prior.ln_next(layer.action, 1) + prior.decay.ln();
        let lns: Vec<(f64, f64)> = automaton.layers.iter().map(|layer| (ln(layer), layer.size as f64)).collect();
        let per_byte = balance(&lns);
        let take = |(ln, size): (f64, f64)| Turn { weight: (ln + per_byte * size).exp(), ln, pass: 0 };
        let form = Form::Geometric { takes: lns.into_iter().map(take).collect(), per_byte };
        let cache = Cache::new(automaton.states, None);
        let open = Cache::new(0, Some(cache.reach()));
        Some(Self { automaton, form, cache, open })
    }

    /// Sees to it that all sums up to this one are in the table; says whether there is room for them.
    pub(crate) fn prepare(&mut self, sum: usize) -> bool {
        let Self { automaton, form, cache, open } = self;
        cache.grow(sum, |sum, smaller, row| {
            open.grow(sum, |_, _, open| form.fill(automaton, sum, smaller, (row, open)));
        });
        cache.reaches(sum)
    }

    /// The logarithm of the weights of all ways to make up a sum that is in the table.
    pub(crate) fn ln_mass(&self, sum: usize) -> f64 {
        let per_byte = if let Form::Geometric { per_byte, .. } = self.form { per_byte } else { 0.0 };
        self.cell(0, 0, sum).mass.ln() - per_byte * sum as f64
    }

    /// The logarithm of the weight of the best way to make up a sum from a state of a layer on.
    pub(crate) fn best(&self, layer: usize, state: u32, sum: usize) -> f64 {
        self.cell(layer, state, sum).best
    }

    /// Rates the ways to go on from a place that lead to an end, into `rated`: each with the logarithm of the weight of the
    /// best way that takes it. None beyond the last layer. Gives how many were looked at.
    pub(crate) fn rate(&self, place: Place, rated: &mut Vec<(f64, Choice)>) -> u64 {
        rated.clear();
        let Some(known) = self.automaton.layers.get(place.layer) else { return 0 };
        let next = self.automaton.layers.get(place.layer + 1);
        match &self.form {
            Form::Counted { .. } => self.rate_counted((known, next), place, rated),
            Form::Geometric { takes, .. } => {
                let ln = takes.get(place.layer).map_or(f64::NEG_INFINITY, |take| take.ln);
                let choices = geometric_choices(known, place.state, place.rest, ln);
                choices.map(|choice| self.rate_one(next, place.before, choice, rated)).count() as u64
            }
        }
    }

    /// Walks on from a place as long as there is one way alone, and tells how many of each layer's action it takes. Gives where
    /// it may go on in several ways, or that has to be found out, and how many were looked at. From that place on there is a
    /// way.
    #[inline]
    pub(crate) fn follow(&self, mut place: Place, mut take: impl FnMut(&Layer, u32)) -> (Place, u64) {
        let mut looked_at = 0;
        for layer in self.automaton.layers.iter().skip(place.layer) {
            if place.layer + 1 == self.layers() && place.rest.is_multiple_of(layer.size) {
                // What is left is made up here.
                let taken = place.rest / layer.size;
                take(layer, taken as u32);
                return (Place { layer: self.layers(), ..place }, looked_at + taken as u64 + 1);
            }
            let cell = layer.offset + place.state as usize;
            let Some(taken) = self.open.cell(place.rest, cell).only() else { break };
            let turns = self.form.turns(cell);
            let rest = place.rest.checked_sub(taken * layer.size);
            let Some((Turn { pass, ln, .. }, rest)) = turns.get(taken).zip(rest) else { break };
            looked_at += possible(turns, place.rest, layer);
            take(layer, taken as u32);
            place = place.after(Choice { taken: taken as u32, state: *pass, rest, ln: *ln });
        }
        (place, looked_at)
    }

    fn rate_counted(
        &self,
        (here, next): (&Layer, Option<&Layer>),
        Place { state, rest: sum, before, .. }: Place,
        rated: &mut Vec<(f64, Choice)>,
    ) -> u64 {
        let cell = here.offset + state as usize;
        let turns = self.form.turns(cell);
        let possible = possible(turns, sum, here);
        for taken in self.open.cell(sum, cell).iter(possible as usize) {
            let Some(turn) = turns.get(taken) else { break };
            let rest = sum - taken * here.size;
            self.rate_one(next, before, Choice { taken: taken as u32, state: turn.pass, rest, ln: turn.ln }, rated);
        }
        possible
    }

    fn rate_one(&self, next: Option<&Layer>, before: f64, choice: Choice, rated: &mut Vec<(f64, Choice)>) {
        let best = match next {
            Some(next) => self.cache.cell(choice.rest, next.offset + choice.state as usize).best,
            None => Cell::end(choice.rest).best,
        };
        let ln = before + choice.ln + best;
        if ln > f64::NEG_INFINITY {
            rated.push((ln, choice));
        }
    }

    /// How many layers there are: one for each action.
    pub(crate) fn layers(&self) -> usize {
        self.automaton.layers.len()
    }

    /// The action of a layer, by its place in the model's list; `None` beyond the last.
    pub(crate) fn action(&self, layer: usize) -> Option<usize> {
        self.automaton.layers.get(layer).map(|layer| layer.action)
    }

    fn cell(&self, layer: usize, state: u32, sum: usize) -> Cell {
        let Some(layer) = self.automaton.layers.get(layer) else { return Cell::end(sum) };
        self.cache.cell(sum, layer.offset + state as usize)
    }
}

/// How many of the numbers of an action are no more than is left of the sum.
fn possible(turns: &[Turn], rest: usize, layer: &Layer) -> u64 {
    turns.len().min(rest / layer.size + 1) as u64
}

/// The ways to go on from a state of a layer where every action taken weighs the same, by this logarithm; those that lead to
/// no end as well.
fn geometric_choices(layer: &Layer, state: u32, sum: usize, ln: f64) -> impl Iterator<Item = Choice> {
    let mut here = Some((state, sum, 0));
    std::iter::from_fn(move || {
        let (at, rest, taken) = here?;
        let step = layer.steps.get(at as usize)?;
        here = step.take.zip(rest.checked_sub(layer.size)).map(|(at, rest)| (at, rest, taken + 1));
        Some(Choice { taken, state: step.pass, rest, ln: ln * f64::from(taken) })
    })
}

impl Form {
    /// What taking 0, 1, 2… of the action weighs in a state of the counting form.
    fn turns(&self, place: usize) -> &[Turn] {
        let Self::Counted { turns, firsts } = self else { return &[] };
        let first = firsts.get(place).copied().unwrap_or(turns.len());
        let end = firsts.get(place + 1).copied().unwrap_or(turns.len());
        turns.get(first..end).unwrap_or_default()
    }

    /// Weighs the ways of one sum from every state, given those of all smaller sums.
    fn fill(&self, automaton: &Automaton, sum: usize, smaller: &Rows<'_, Cell>, row: (&mut [Cell], &mut [Open])) {
        let (mut rest, open) = row;
        let mut next: &mut [Cell] = &mut [Cell::end(sum)];
        for (number, layer) in automaton.layers.iter().enumerate().rev() {
            let (earlier_layers, current) = rest.split_at_mut(layer.offset);
            for (cell, state) in current.iter_mut().zip(0..) {
                *cell = match self {
                    Self::Counted { .. } => {
                        let (cell, numbers) = self.counted_cell(layer, state, sum, next, smaller);
                        if let Some(open) = open.get_mut(layer.offset + state) {
                            *open = numbers;
                        }
                        cell
                    }
                    Self::Geometric { takes, .. } => {
                        let step = layer.steps.get(state);
                        let mut cell = step.and_then(|step| next.get(step.pass as usize)).copied().unwrap_or_default();
                        let taken = step.and_then(|step| step.take).zip(sum.checked_sub(layer.size));
                        let taken = taken.and_then(|(take, sum)| smaller.cell(sum, layer.offset + take as usize));
                        if let Some((taken, turn)) = taken.zip(takes.get(number)) {
                            cell.add(*turn, taken);
                        }
                        cell
                    }
                };
            }
            (rest, next) = (earlier_layers, current);
        }
    }

    /// The ways from a state, and which numbers of the layer's action lead to one.
    fn counted_cell(
        &self,
        layer: &Layer,
        state: usize,
        sum: usize,
        next: &[Cell],
        smaller: &Rows<'_, Cell>,
    ) -> (Cell, Open) {
        let (mut cell, mut open, mut rest) = (Cell::default(), Open::default(), Some(sum));
        let next_offset = layer.offset + layer.steps.len();
        for (turn, taken) in self.turns(layer.offset + state).iter().zip(0..) {
            let Some(sum_left) = rest else { break };
            let after = if taken == 0 {
                next.get(turn.pass as usize).copied()
            } else if next_offset == smaller.width() {
                Some(Cell::end(sum_left))
            } else {
                smaller.cell(sum_left, next_offset + turn.pass as usize)
            };
            if let Some(after) = after.filter(|after| after.best > f64::NEG_INFINITY) {
                cell.add(*turn, after);
                open.insert(taken);
            }
            rest = sum_left.checked_sub(layer.size);
        }
        (cell, open)
    }
}

/// What taking actions weighs where the states know their number; `None` where that takes too much room.
fn counted(automaton: &Automaton, limits: &Limits, prior: &Prior) -> Option<Form> {
    let (mut turns, mut firsts) = (Vec::new(), Vec::new());
    // The weights of all walks into each state of a layer, and in the end of all walks of each number of actions.
    let mut into = vec![1.0];
    let mut by_number = vec![0.0; limits.max_actions() as usize + 1];
    let last = automaton.layers.len() - 1;
    for (layer, number) in automaton.layers.iter().zip(0..) {
        let after = automaton.layers.get(number + 1).map_or(0, |next| next.steps.len());
        let mut into_next = vec![0.0; after];
        for state in 0..layer.steps.len() {
            firsts.push(turns.len());
            let entering = into.get(state).copied().unwrap_or(0.0);
            for (turn, actions) in turns_from(layer, state, limits, prior) {
                let target =
                    if number == last { by_number.get_mut(actions) } else { into_next.get_mut(turn.pass as usize) };
                if let Some(sum) = target {
                    *sum += entering * turn.weight;
                }
                turns.push(turn);
            }
            if turns.len() > MAX_TURNS {
                return None;
            }
        }
        into = into_next;
    }
    // Now that they are known, the ends of walks.
    let mut last_turns = turns.iter_mut().skip(firsts.get(automaton.layers.last()?.offset).copied()?);
    for state in 0..automaton.layers.last()?.steps.len() {
        for (_, actions) in turns_from(automaton.layers.last()?, state, limits, prior) {
            let turn = last_turns.next()?;
            let all = by_number.get(actions).copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
            turn.ln += prior.ln_number(u32::try_from(actions).unwrap_or(u32::MAX)) - all.ln();
            turn.weight = turn.ln.exp();
        }
    }
    Some(Form::Counted { turns, firsts })
}

/// What taking 0, 1, 2… of a layer's action from a state weighs, and how many actions there are then.
pub(crate) fn turns_from(
    layer: &Layer,
    state: usize,
    limits: &Limits,
    prior: &Prior,
) -> impl Iterator<Item = (Turn, usize)> {
    let class = limits.class_of(layer.action);
    let with = limits.conditions().iter().filter(move |condition| condition.holds_class(class));
    let devices = with.map(Condition::devices).min().unwrap_or(u32::MAX);
    let (mut at, mut ln, mut nth) = (layer.steps.get(state), 0.0, 0);
    std::iter::from_fn(move || {
        let step = at?;
        let turn = (Turn { weight: f64::exp(ln), ln, pass: step.pass }, step.number as usize);
        nth += 1;
        let left = if devices == u32::MAX { 1.0 } else { f64::from(step.left) / f64::from(devices) };
        ln += prior.ln_next(layer.action, nth) + left.ln();
        at = step.take.and_then(|take| layer.steps.get(take as usize));
        Some(turn)
    })
}

/// The weight of a byte, as a logarithm, with which the heaviest action weighs 1 and no other more.
fn balance(actions: &[(f64, f64)]) -> f64 {
    let per_byte = actions.iter().map(|(ln, size)| -ln / size).fold(f64::INFINITY, f64::min);
    if per_byte.is_finite() { per_byte } else { 0.0 }
}
