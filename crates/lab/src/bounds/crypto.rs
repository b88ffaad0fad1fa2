//! Speed of one core at the work of the data plane, measured in under a second.

use crate::stopwatch;
use quorate_crypto::{
    Bitmap, IdentityKey, IdentitySecret, KeyCache, Policy, SchemeKind, Signature, VotingSecret,
    committee_scheme, hash, verify_batch,
};
use quorate_node::tls::{self, Dialer};
use quorate_report::results::bounds::CryptoSpeed;
use rustls::{ClientConnection, ConnectionCommon, ServerConnection, SideData};
use std::io::{Read, Write};
use std::ops::DerefMut;
use std::time::Duration;

/// Length of a span of repetitions; the number of spans follows. The best counts: whatever else
/// runs on the machine only adds.
const SPAN: Duration = Duration::from_millis(10);
const SPANS: usize = 8;
/// Requests in a body, and so signatures in a batch.
const BATCH: u8 = 64;
/// Voters in a certificate.
const VOTERS: usize = 4;
/// Bytes hashed at a time: a body.
const BODY_BYTES: usize = 500_000;
/// Bytes encrypted at a time: a record, and as much as a connection holds decrypted.
const WRITE_BYTES: usize = 16 * 1024;

const MESSAGE: &[u8] =
    b"a statement about as long as a real one: its kind, chain, epoch, view, phase, block id";

/// Measures this thread's core.
#[must_use]
pub fn measure() -> CryptoSpeed {
    let secret = IdentitySecret::from_seed([1; 32]);
    let signature = secret.sign(MESSAGE);
    let prepared = secret.public().prepare().expect("a key from a seed");
    let batch = batch();
    let (bls_verify_us, bls_combine_us) = bls();
    let body = vec![7; BODY_BYTES];
    CryptoSpeed {
        ed25519_sign_us: microseconds(|| secret.sign(MESSAGE)),
        ed25519_verify_us: microseconds(|| {
            prepared.verify(MESSAGE, &signature).expect("an honest signature");
        }),
        ed25519_batch_us: microseconds(|| {
            verify_batch(&batch).expect("honest signatures");
        }) / f64::from(BATCH),
        bls_verify_us,
        bls_combine_us,
        // Bytes a microsecond are megabytes a second.
        hash_mb_s: BODY_BYTES as f64 / microseconds(|| hash(&body)),
        tls_mb_s: tls_mb_s(),
    }
}

/// Mean time of `work` in the best of the spans, in microseconds.
fn microseconds<T>(work: impl FnMut() -> T) -> f64 {
    stopwatch::microseconds(SPANS, SPAN, work)
}

fn batch() -> Vec<(IdentityKey, &'static [u8], Signature)> {
    let item = |seed| {
        let secret = IdentitySecret::from_seed([seed; 32]);
        (secret.public(), MESSAGE, secret.sign(MESSAGE))
    };
    (0..BATCH).map(item).collect()
}

fn bls() -> (f64, f64) {
    let seed = |member: usize| [u8::try_from(member).expect("few") + 1; 32];
    let secrets: Vec<VotingSecret> =
        (0..VOTERS).map(|m| VotingSecret::from_seed(SchemeKind::Bls, &seed(m))).collect();
    let keys: Vec<_> = secrets.iter().map(|s| (s.public(), s.prove_possession())).collect();
    let scheme = committee_scheme(SchemeKind::Bls, &keys, KeyCache::On).expect("honest keys");
    let shares: Vec<_> = (1..VOTERS).map(|m| (m, secrets[m].sign(MESSAGE))).collect();
    let nobody = Bitmap::new(VOTERS);
    let combine = || scheme.combine(MESSAGE, &shares, &nobody, Policy::Aggregate).certificate;
    let certificate = combine().expect("honest shares");
    let verify = microseconds(|| {
        scheme.verify(MESSAGE, &certificate).expect("an honest certificate");
    });
    (verify, microseconds(combine))
}

/// Two ends of one connection, in memory, as validators have them.
fn tls_mb_s() -> f64 {
    let (ours, theirs) = (IdentitySecret::from_seed([2; 32]), IdentitySecret::from_seed([3; 32]));
    let listener = tls::listener(&theirs).expect("an identity key");
    let dialer = Dialer::new(&ours).and_then(|dialer| dialer.to(theirs.public()));
    let mut server = ServerConnection::new(listener).expect("a good configuration");
    let mut client = ClientConnection::new(dialer.expect("an identity key"), tls::no_name())
        .expect("a good configuration");
    while client.is_handshaking() || server.is_handshaking() {
        pass(&mut client, &mut server);
        pass(&mut server, &mut client);
    }
    let plain = vec![7; WRITE_BYTES];
    let mut heard = vec![0; WRITE_BYTES];
    let us = microseconds(|| {
        client.writer().write_all(&plain).expect("memory");
        let mut taken = 0;
        while taken < WRITE_BYTES {
            pass(&mut client, &mut server);
            taken += drained(&mut server, &mut heard);
        }
    });
    WRITE_BYTES as f64 / us
}

/// Hands over one write's worth of bytes.
fn pass<A, B>(
    from: &mut impl DerefMut<Target = ConnectionCommon<A>>,
    to: &mut impl DerefMut<Target = ConnectionCommon<B>>,
) where
    A: SideData,
    B: SideData,
{
    let mut wire = Vec::new();
    while from.wants_write() && wire.len() < WRITE_BYTES {
        from.write_tls(&mut wire).expect("memory");
    }
    let mut rest = wire.as_slice();
    while !rest.is_empty() {
        to.read_tls(&mut rest).expect("memory");
        to.process_new_packets().expect("an honest peer");
    }
}

/// Number of bytes decrypted.
fn drained(connection: &mut ServerConnection, into: &mut [u8]) -> usize {
    let mut taken = 0;
    while let Ok(count @ 1..) = connection.reader().read(into) {
        taken += count;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::measure;

    #[test]
    fn a_core_has_speeds() {
        let speed = measure();
        let all = [
            speed.ed25519_sign_us,
            speed.ed25519_verify_us,
            speed.ed25519_batch_us,
            speed.bls_verify_us,
            speed.bls_combine_us,
            speed.hash_mb_s,
            speed.tls_mb_s,
        ];
        assert!(all.iter().all(|value| value.is_finite() && *value > 0.0), "{speed:?}");
    }
}
