//! The minimum cut of a network with floating-point capacities, by Dinic's algorithm.

use std::collections::VecDeque;

/// A network between a source and a sink.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// Each arc and, next to it, its reverse.
    arcs: Vec<Arc>,
    /// The arcs out of each node: first the source, then the sink, then the others.
    out: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Arc {
    to: u32,
    left: f64,
}

const SOURCE: usize = 0;
const SINK: usize = 1;

/// A node of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// The source.
    Source,
    /// The sink.
    Sink,
    /// Another, by its number.
    Inner(usize),
}

impl Node {
    fn index(self) -> usize {
        match self {
            Self::Source => SOURCE,
            Self::Sink => SINK,
            Self::Inner(number) => number + 2,
        }
    }
}

impl Network {
    /// A network with so many inner nodes and no arcs.
    pub(crate) fn new(nodes: usize) -> Self {
        Self { arcs: Vec::new(), out: vec![Vec::new(); nodes + 2] }
    }

    /// Adds an arc; its capacity may be infinite, as long as no path has only such arcs.
    pub(crate) fn add(&mut self, from: Node, to: Node, capacity: f64) {
        if from == to || capacity <= 0.0 || from == Node::Sink || to == Node::Source {
            return;
        }
        for (from, to, left) in [(from, to, capacity), (to, from, 0.0)] {
            let arc = self.arcs.len() as u32;
            if let Some(out) = self.out.get_mut(from.index()) {
                out.push(arc);
            }
            self.arcs.push(Arc { to: to.index() as u32, left });
        }
    }

    /// Which inner nodes are on the source's side of a minimum cut: as few as possible.
    pub(crate) fn source_side(mut self) -> Vec<bool> {
        let capacities = self.arcs.iter().map(|arc| arc.left).filter(|left| left.is_finite());
        let negligible = capacities.fold(0.0, f64::max) * 1e-14;
        loop {
            let levels = self.levels(negligible);
            if levels.get(SINK).is_none_or(|level| *level == u32::MAX) {
                return levels.iter().skip(2).map(|level| *level < u32::MAX).collect();
            }
            self.block(&levels, negligible);
        }
    }

    /// How many arcs with something left lead from the source to each node; `u32::MAX` if none do.
    fn levels(&self, negligible: f64) -> Vec<u32> {
        let mut levels = vec![u32::MAX; self.out.len()];
        let mut queue = VecDeque::from([(SOURCE, 0)]);
        if let Some(level) = levels.first_mut() {
            *level = 0;
        }
        while let Some((node, level)) = queue.pop_front() {
            for arc in self.out.get(node).into_iter().flatten().filter_map(|arc| self.arcs.get(*arc as usize)) {
                let to = arc.to as usize;
                if let Some(of_node) = levels.get_mut(to).filter(|of| **of == u32::MAX && arc.left > negligible) {
                    *of_node = level + 1;
                    queue.push_back((to, level + 1));
                }
            }
        }
        levels
    }

    /// Sends along shortest paths until each of them has an exhausted arc.
    fn block(&mut self, levels: &[u32], negligible: f64) {
        let mut next = vec![0_usize; self.out.len()];
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        loop {
            if node == SINK {
                node = self.send(&mut path, negligible);
                continue;
            }
            let arc = next.get(node).and_then(|at| self.out.get(node)?.get(*at)).copied();
            let Some(arc) = arc else {
                // A dead end: back along the last arc, which is done with.
                let Some(back) = path.pop() else { return };
                node = self.start(back);
                if let Some(at) = next.get_mut(node) {
                    *at += 1;
                }
                continue;
            };
            let level = levels.get(node).copied().unwrap_or(u32::MAX);
            let forward = self.arcs.get(arc as usize).filter(|arc| {
                arc.left > negligible && levels.get(arc.to as usize).is_some_and(|to| *to == level.saturating_add(1))
            });
            match forward.map(|arc| arc.to as usize) {
                Some(to) => {
                    path.push(arc);
                    node = to;
                }
                None => {
                    if let Some(at) = next.get_mut(node) {
                        *at += 1;
                    }
                }
            }
        }
    }

    /// Sends as much as possible along a path, and goes back to the start of the first arc that it exhausts.
    fn send(&mut self, path: &mut Vec<u32>, negligible: f64) -> usize {
        let left_of = |arcs: &[Arc], arc: &u32| arcs.get(*arc as usize).map_or(0.0, |arc| arc.left);
        let sent = path.iter().map(|arc| left_of(&self.arcs, arc)).fold(f64::INFINITY, f64::min);
        for arc in path.iter() {
            if let Some(arc) = self.arcs.get_mut(*arc as usize) {
                arc.left -= sent;
            }
            if let Some(reverse) = self.arcs.get_mut(*arc as usize ^ 1) {
                reverse.left += sent;
            }
        }
        let exhausted = path.iter().position(|arc| left_of(&self.arcs, arc) <= negligible).unwrap_or(0);
        let start = path.get(exhausted).map_or(SOURCE, |arc| self.start(*arc));
        path.truncate(exhausted);
        start
    }

    /// The node that an arc comes from.
    fn start(&self, arc: u32) -> usize {
        self.arcs.get(arc as usize ^ 1).map_or(SOURCE, |reverse| reverse.to as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn node(number: usize) -> Node {
        match number {
            0 => Node::Source,
            1 => Node::Sink,
            number => Node::Inner(number - 2),
        }
    }

    fn cut(arcs: &[(usize, usize, u32)], side: &[bool]) -> u64 {
        let is_source = |number: usize| match number {
            0 => true,
            1 => false,
            number => side[number - 2],
        };
        let crosses = |(from, to, _): &&(usize, usize, u32)| is_source(*from) && !is_source(*to);
        arcs.iter().filter(crosses).map(|(_, _, capacity)| u64::from(*capacity)).sum()
    }

    proptest! {
        #[test]
        fn no_cut_is_smaller(arcs in prop::collection::vec((0_usize..8, 0_usize..8, 0_u32..20), 0..40)) {
            let mut network = Network::new(6);
            for (from, to, capacity) in &arcs {
                network.add(node(*from), node(*to), f64::from(*capacity));
            }
            let found = cut(&arcs, &network.source_side());
            let least = (0_u32..64).map(|bits| {
                let side: Vec<bool> = (0..6).map(|at| bits >> at & 1 == 1).collect();
                cut(&arcs, &side)
            });
            prop_assert_eq!(Some(found), least.min());
        }
    }

    #[test]
    fn infinite_arcs_are_not_cut() {
        let mut network = Network::new(2);
        network.add(Node::Source, Node::Inner(0), 3.0);
        network.add(Node::Inner(0), Node::Inner(1), f64::INFINITY);
        network.add(Node::Inner(1), Node::Sink, 2.0);
        assert_eq!(network.source_side(), [true, true]);
    }
}
