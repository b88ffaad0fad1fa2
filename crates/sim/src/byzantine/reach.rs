//! Endpoints that the two machines of a twin reach.

use quorate_deterministic::Rng;
use std::collections::BTreeMap;

/// Choice, for each endpoint, of the machine of each twin that it talks with.
#[derive(Debug)]
pub struct Twins {
    /// The hosts of each pair.
    pairs: Vec<(usize, usize)>,
    reach: BTreeMap<(usize, usize), Reach>,
    endpoints: usize,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    First,
    Second,
    Both,
    Neither,
}

impl Twins {
    /// The twins among the hosts.
    #[must_use]
    pub fn new(pairs: Vec<(usize, usize)>, endpoints: usize, rng: Rng) -> Self {
        let mut twins = Self { pairs, reach: BTreeMap::new(), endpoints, rng };
        twins.shuffle();
        twins
    }

    /// Returns `true` if there are no twins.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Draws anew who reaches whom.
    pub fn shuffle(&mut self) {
        let style = self.rng.below(3);
        for pair in 0..self.pairs.len() {
            for endpoint in 0..self.endpoints {
                let reach = match (style, self.rng.below(8)) {
                    (0, _) => Reach::Both,
                    (1, draw) if draw < 4 => Reach::First,
                    (_, 0..=2) => Reach::First,
                    (_, 3) => Reach::Both,
                    (2, 4) => Reach::Neither,
                    (_, _) => Reach::Second,
                };
                self.reach.insert((pair, endpoint), reach);
            }
        }
    }

    /// Returns `true` if two endpoints talk at present. The machines of one twin never do.
    #[must_use]
    pub fn connects(&self, a: usize, b: usize) -> bool {
        self.pairs.iter().enumerate().all(|(pair, hosts)| {
            self.reaches(pair, *hosts, a, b) && self.reaches(pair, *hosts, b, a)
        })
    }

    fn reaches(
        &self,
        pair: usize,
        (first, second): (usize, usize),
        from: usize,
        to: usize,
    ) -> bool {
        let allowed = match () {
            () if from == first => [Reach::First, Reach::Both],
            () if from == second => [Reach::Second, Reach::Both],
            () => return true,
        };
        to != first && to != second && allowed.contains(&self.reach[&(pair, to)])
    }
}
