use super::*;
use quorate_crypto::{Share, hash};

fn encoded(verdict: Verdict) -> String {
    let answer = Answer { tx: TxId(hash(b"a transaction")), verdict };
    let bytes = borsh::to_vec(&answer).expect("into memory");
    assert_eq!(borsh::from_slice::<Answer>(&bytes).expect("what was written"), answer);
    hex::encode(&bytes[32..])
}

#[test]
fn answers_are_encoded_so() {
    let input = OutputId { tx: TxId(hash(b"a parent")), index: 3 };
    assert_eq!(encoded(Verdict::Vote(Vote::Share(Share(vec![1, 2])))), "0000020000000102");
    assert_eq!(
        encoded(Verdict::Locked { input, first: None }),
        "01bbc24a9120fed91a2d46fe812145c2648c02964f752c7848ab4b6fa4439c3120030000"
    );
    assert_eq!(encoded(Verdict::Invalid(Invalid::ZeroValue)), "0204");
    assert_eq!(encoded(Verdict::Busy), "03");
}

#[test]
fn what_follows_an_answer_is_refused() {
    let answer = Answer { tx: TxId(hash(b"a transaction")), verdict: Verdict::Busy };
    let mut bytes = borsh::to_vec(&answer).expect("into memory");
    bytes.push(0);
    assert!(borsh::from_slice::<Answer>(&bytes).is_err());
    bytes[32] = 9;
    let error = borsh::from_slice::<Answer>(&bytes[..33]).expect_err("no such verdict");
    assert_eq!(error.to_string(), "Unexpected variant tag: 9");
}
