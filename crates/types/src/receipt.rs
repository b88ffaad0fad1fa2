//! Evidence for a client to show others: its request took effect, with these results.

use crate::executed::CertifiedReply;
use crate::{Committee, Outcome, Rejected, Request};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;

/// A signed request with its acknowledgement: all that is needed to check both, but the committee.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Receipt {
    /// Bytes of the request, as [`Request::raw`] gives them.
    pub request: Bytes,
    /// Results of the request, with the proof.
    pub reply: CertifiedReply,
}

impl Receipt {
    /// Checks everything, offline: that the client signed this request for this network, that it
    /// took effect where the receipt says, with these results, and that enough members of the
    /// committee say so for one of them to be honest. Returns the request.
    ///
    /// # Errors
    /// What does not fit.
    pub fn verify(&self, committee: &Committee) -> Result<Request, Rejected> {
        let malformed = |reason: String| Rejected::Malformed(reason);
        let (request, rest) =
            Request::split_from(&self.request).map_err(|error| malformed(error.to_string()))?;
        if !rest.is_empty() {
            return Err(malformed("there are bytes after the request".to_owned()));
        }
        let statement = request.statement(committee.network());
        request
            .client
            .0
            .verify(&statement, &request.signature())
            .map_err(|_| Rejected::BadSignature("the client's signature"))?;
        if !self.reply.answers(&request) {
            return Err(Rejected::RuleBroken("a receipt's reply is to its request"));
        }
        self.reply.check_path()?;
        self.reply.executed.check(committee)?;
        Ok(request)
    }

    /// One result per operation, as the receipt has them.
    #[must_use]
    pub fn results(&self) -> &[Outcome] {
        &self.reply.results
    }
}
