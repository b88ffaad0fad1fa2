//! What a part of a replica that certifies by shares asks for: the same of each of them.

use crate::Message;
use quorate_consensus::Misbehaviour;
use quorate_types::Recipients;
use quorate_types::machine::CombineJob;
use std::collections::VecDeque;

/// Messages to send, shares to combine, and invalid shares that combining found.
#[derive(Debug, Default)]
pub(crate) struct CertifierOutput {
    pub(crate) outbox: VecDeque<(Recipients, Message)>,
    pub(crate) jobs: VecDeque<CombineJob>,
    pub(crate) misbehaviour: VecDeque<Misbehaviour>,
}
