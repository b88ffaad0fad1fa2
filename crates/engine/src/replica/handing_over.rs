//! The end of the epoch: what it ended with is signed, certified, durable, and handed to the host.

use super::Replica;
use crate::Message;
use crate::bodies::Need;
use crate::message::FetchBlocks;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{Halt, Record, RecordKind, Task};
use quorate_types::{
    BodyRef, Effect, HandOver, HandedOver, Header, Height, Peer, Recipients, SignedHandOver, Time,
};

impl Replica {
    /// Notes what a height came to here, if it is the epoch's last.
    pub(super) fn note_last(&mut self, header: &Header) {
        if self.changes.stop().is_some_and(|stop| stop.height == header.height) {
            self.last = Some((*header, header.root()));
        }
    }

    /// An earlier run had the certificate.
    pub(super) fn recover_hand_over(&mut self, record: Option<&Bytes>) {
        let Some(record) = record else { return };
        let signed = borsh::from_slice::<SignedHandOver>(record).ok();
        match signed.filter(|signed| signed.check(self.config.verifier.committee()).is_ok()) {
            Some(signed) => self.hand_overs.recover(signed),
            None => {
                let reason = "the hand-over is none of this epoch's members".to_owned();
                self.effects.push_back(Effect::Halt(Halt::CorruptRecovery(reason)));
            }
        }
    }

    /// Signs and collects what the epoch ended with, keeps the certificate, and tells the host.
    pub(super) fn certify_hand_over(&mut self, now: Time) {
        self.end_epoch(now);
        self.hand_overs.due(now);
        let asked = std::mem::take(&mut self.hand_overs.output);
        self.carry_out(asked);
        if let Some(halt) = self.hand_overs.halt() {
            self.effects.push_back(Effect::Halt(halt));
            return;
        }
        if let Some(height) = self.hand_overs.diverged() {
            self.execution.diverge(height);
        }
        if let Some(signed) = self.hand_overs.take_unrecorded()
            && !mutants::active(Mutant::HandOverUnrecorded)
        {
            let bytes = borsh::to_vec(&signed).expect("encoding into memory cannot fail").into();
            self.effects.push_back(Effect::Persist(Record { kind: RecordKind::HandOver, bytes }));
        }
        // ★ Behind the record: the host carries no task out before that is durable.
        if let Some(signed) = self.hand_overs.take_handed(now) {
            let file = self.changes.next_file().expect("the own hand-over names it").clone();
            let (header, _) = self.last.expect("the own hand-over is of it");
            let handed = Box::new(HandedOver { signed, header, file });
            self.effects.push_back(Effect::Task(Task::HandOver(handed)));
        }
    }

    /// The last height is executed here: what the next epoch begins with is known once the change
    /// is here.
    fn end_epoch(&mut self, now: Time) {
        let Some((stop, (_, root))) = self.changes.stop().zip(self.last) else { return };
        if self.hand_overs.has_ended_with(root) {
            return;
        }
        match self.changes.next_file() {
            Some(file) => {
                let (height, stop) = (stop.height, stop.block);
                let content = HandOver { height, stop, root, file: file.digest() };
                self.hand_overs.ended(now, content, file);
                if self.config.is_learner() {
                    self.say_that_it_is_there(height);
                }
            }
            None => {
                let name = BodyRef::of_change(stop.change);
                let holder = self.bodies.spread(&name);
                self.bodies.want(now, name, holder, Need::Decided(stop.height));
            }
        }
    }

    /// Asks all members for what follows the last height, and not one after the other: they stay
    /// for newcomers that they have not heard so.
    fn say_that_it_is_there(&mut self, height: Height) {
        let tip = self.protocol.state().tip();
        let request = FetchBlocks { height, after: Some(tip), target: tip };
        self.send(Recipients::All, Message::FetchBlocks(request));
    }

    /// Shows a peer the certificate, if it is here.
    pub(super) fn show_hand_over(&mut self, to: Peer) {
        if let Some(signed) = self.hand_overs.certified().cloned() {
            self.send(to.into(), Message::HandOver(signed));
        }
    }
}
