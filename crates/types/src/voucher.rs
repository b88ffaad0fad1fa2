//! A client's word for the keys of its sessions.
//!
//! A session's numbers end with its process, and so does its key. A client that members know by a
//! key that lasts signs a voucher for each session that it opens; the session shows it when it
//! connects. A voucher is of use to the owner of the session's key alone, who proves that key.

use crate::{Kind, NetworkId, Scope, sign};
use quorate_crypto::{IdentityKey, IdentitySecret, Signature, SignatureError};

/// Signed statement that a session is a client's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voucher {
    /// Key of the client that vouches.
    pub client: IdentityKey,
    signature: Signature,
}

impl Voucher {
    /// Length of the encoding.
    pub const BYTES: usize = 32 + 64;

    /// Signs for a session. The statement covers the network, and no epoch, as a request's.
    #[must_use]
    pub fn sign(client: &IdentitySecret, network: NetworkId, session: &IdentityKey) -> Self {
        let signature = client.sign(&statement(network, session));
        Self { client: client.public(), signature }
    }

    /// Checks that the client vouches for this session in this network.
    ///
    /// # Errors
    /// When its signature does not say so.
    pub fn check(&self, network: NetworkId, session: &IdentityKey) -> Result<(), SignatureError> {
        self.client.verify(&statement(network, session), &self.signature)
    }

    /// The client's key, then the signature.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..32].copy_from_slice(&self.client.0);
        bytes[32..].copy_from_slice(&self.signature.0);
        bytes
    }

    /// Reads what [`Voucher::encode`] wrote. Nothing is checked.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let (client, signature) = bytes.split_at(32);
        Self {
            client: IdentityKey(client.try_into().expect("32 bytes")),
            signature: Signature(signature.try_into().expect("64 bytes")),
        }
    }
}

fn statement(network: NetworkId, session: &IdentityKey) -> Vec<u8> {
    sign::statement(Kind::Voucher, Scope::network(network), session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voucher_is_for_one_session_on_one_chain() {
        let [client, session, other] = [1, 2, 3].map(|seed| IdentitySecret::from_seed([seed; 32]));
        let network = NetworkId([7; 32]);
        let voucher = Voucher::sign(&client, network, &session.public());
        assert_eq!(voucher.check(network, &session.public()), Ok(()));
        let refused = Err(SignatureError::Mismatch);
        assert_eq!(voucher.check(network, &other.public()), refused);
        assert_eq!(voucher.check(NetworkId([8; 32]), &session.public()), refused);
        let stolen = Voucher { client: other.public(), ..voucher };
        assert_eq!(stolen.check(network, &session.public()), refused);
    }

    #[test]
    fn a_voucher_has_golden_bytes() {
        let client = IdentitySecret::from_seed([1; 32]);
        let voucher = Voucher::sign(&client, NetworkId([7; 32]), &IdentityKey([9; 32]));
        let bytes = voucher.encode();
        assert_eq!(bytes[..32], client.public().0);
        let statement = [b"quorate/v1/VOUCHER/".as_slice(), &[7; 32], &[0; 32], &[9; 32]].concat();
        assert_eq!(bytes[32..], client.sign(&statement).0);
        assert_eq!(Voucher::decode(&bytes), voucher);
    }
}
