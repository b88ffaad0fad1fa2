//! An author's side: its own chain, who acknowledged how much of it, and the certificate made of
//! that.

use super::certificate::{Acknowledged, enough};
use super::{Acknowledgement, AvailabilityCertificate, Covered};
use crate::frames::AVAILABLE_BODIES_MAX;
use quorate_crypto::{Digest, Signature};
use quorate_types::{Available, BodyRef, Committee, ReplicaId};
use std::collections::{BTreeMap, VecDeque};

/// An author's own bodies, from the oldest that is not both certified and decided.
#[derive(Debug)]
pub(crate) struct Collector {
    author: ReplicaId,
    first: u64,
    before: Digest,
    own: VecDeque<Own>,
    acknowledged: BTreeMap<ReplicaId, (u64, Signature)>,
    /// The number after the last certified one.
    certified: u64,
    last: Option<AvailabilityCertificate>,
}

#[derive(Debug)]
struct Own {
    digest: Digest,
    link: Digest,
    decided: bool,
}

impl Collector {
    /// Before the author sealed anything.
    pub(crate) fn new(author: ReplicaId) -> Self {
        Self {
            author,
            first: 0,
            before: Digest::ZERO,
            own: VecDeque::new(),
            acknowledged: BTreeMap::new(),
            certified: 0,
            last: None,
        }
    }

    /// The author sealed its next body.
    pub(crate) fn seal(&mut self, name: &BodyRef) {
        if name.sequence != self.end() {
            self.first = name.sequence;
            self.before = Available::start(self.author, name.sequence);
            self.own.clear();
        }
        let before = self.own.back().map_or(self.before, |last| last.link);
        let link = Available::link(before, name.sequence, name.digest);
        self.own.push_back(Own { digest: name.digest, link, decided: false });
        while self.own.len() > AVAILABLE_BODIES_MAX {
            self.forget_first();
        }
    }

    /// A checked acknowledgement by `from`; `true` if it says something new about the own chain.
    pub(crate) fn acknowledge(&mut self, from: ReplicaId, given: &Acknowledgement) -> bool {
        let Available { author, sequence, link } = given.available;
        let known = self.acknowledged.get(&from).is_some_and(|(reached, _)| *reached >= sequence);
        let fits = || self.at(sequence).is_some_and(|own| own.link == link);
        let news = author == self.author && from != author && !known && fits();
        if news {
            self.acknowledged.insert(from, (sequence, given.signature));
        }
        news
    }

    /// The author's own bodies were decided.
    pub(crate) fn decide(&mut self, sequence: u64) {
        let index = sequence.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(own) = index.and_then(|index| self.own.get_mut(index)) {
            own.decided = true;
        }
        self.tidy();
    }

    /// Returns `true` if more can be certified than is.
    pub(crate) fn is_ripe(&self, committee: &Committee, own: Option<&Available>) -> bool {
        let mut reached = self.reached(own);
        enough(committee, &mut reached).is_some_and(|k| reached[k - 1].0 >= self.certified)
    }

    /// Certifies what can be, if it is more than before. `own` is how far the author's bodies are
    /// stored at itself, with its signature.
    pub(crate) fn certify(
        &mut self,
        committee: &Committee,
        own: Option<&Acknowledgement>,
    ) -> Option<(AvailabilityCertificate, Covered)> {
        let mut reached = self.reached(own.map(|own| &own.available));
        let members = enough(committee, &mut reached)?;
        let last = reached[members - 1].0;
        if last < self.certified {
            return None;
        }
        let mut acknowledged: Vec<Acknowledged> = reached[..members]
            .iter()
            .filter_map(|(sequence, signer)| {
                let signature = match own.filter(|_| *signer == self.author) {
                    Some(own) => own.signature,
                    None => self.acknowledged.get(signer)?.1,
                };
                Some(Acknowledged { signer: *signer, count: self.count(*sequence), signature })
            })
            .collect();
        acknowledged.sort_unstable_by_key(|one| one.signer);
        let named = self.count(reached[0].0) as usize;
        let certificate = AvailabilityCertificate {
            author: self.author,
            first: self.first,
            before: self.before,
            bodies: self.own.iter().take(named).map(|own| own.digest).collect(),
            acknowledged,
        };
        let covered = certificate.clone().into_covered(self.count(last) as usize);
        self.certified = last + 1;
        self.last = Some(certificate.clone());
        self.tidy();
        Some((certificate, covered))
    }

    /// For a member that can chain nothing from `next` on: the last certificate, and the names of
    /// what is not certified yet.
    pub(crate) fn help(
        &self,
        next: u64,
        names_max: usize,
    ) -> (Option<&AvailabilityCertificate>, Vec<BodyRef>) {
        let certificate = self.last.as_ref().filter(|_| self.certified > next);
        let names = (self.first..)
            .zip(&self.own)
            .filter(|(sequence, _)| *sequence >= next.max(self.certified))
            .map(|(sequence, own)| BodyRef { author: self.author, sequence, digest: own.digest });
        (certificate, names.take(names_max).collect())
    }

    fn reached(&self, own: Option<&Available>) -> Vec<(u64, ReplicaId)> {
        let others = self.acknowledged.iter().map(|(member, (sequence, _))| (*sequence, *member));
        let own = own.map(|own| (own.sequence, self.author));
        others.chain(own).filter(|(sequence, _)| self.at(*sequence).is_some()).collect()
    }

    fn at(&self, sequence: u64) -> Option<&Own> {
        self.own.get(usize::try_from(sequence.checked_sub(self.first)?).ok()?)
    }

    /// Number of bodies from the first up to this one, which is among them.
    fn count(&self, sequence: u64) -> u32 {
        u32::try_from(sequence - self.first + 1).expect("no more than are kept")
    }

    fn end(&self) -> u64 {
        self.first + self.own.len() as u64
    }

    /// Forgets what is certified and decided: nobody needs its name again.
    fn tidy(&mut self) {
        while self.first < self.certified && self.own.front().is_some_and(|own| own.decided) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(own) = self.own.pop_front() {
            self.before = own.link;
            self.first += 1;
        }
    }
}
