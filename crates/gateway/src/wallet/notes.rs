//! Notes that a wallet leaves with its authorities: what a transaction or a receipt does not say by
//! itself.
//!
//! As a rule they are sealed under a key that follows from the wallet's secret. A wallet can leave
//! them plain, for its operator to read at an authority; then the same key vouches for them. Either
//! way a note belongs to one record of one network, and anywhere else is none.

use super::payment::{Order, Payment, Purpose};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{IdentitySecret, SealingKey};
use quorate_payments::{Memo, Note, Output, RecordKind, RecordName, Source, Transaction, TxId};
use quorate_types::NetworkId;
use serde::Deserialize;
use std::io;
use std::path::Path;

const PLAIN: u8 = 0;
const SEALED: u8 = 1;

/// Name of the file of a wallet's settings, in its folder.
const SETTINGS: &str = "wallet.toml";

/// Form of the notes that a wallet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NoteForm {
    /// Only the wallet reads them.
    #[default]
    Sealed,
    /// Authorities read them too, and cannot alter them.
    Plain,
}

/// Settings of a wallet: the file `wallet.toml` beside its book, which need not be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Form of what is recorded with authorities, `sealed` or `plain`.
    #[serde(default)]
    records: NoteForm,
}

/// Form of the notes that the settings beside a book ask for.
pub(super) fn form_beside(book: &Path) -> Result<NoteForm, String> {
    let path = book.with_file_name(SETTINGS);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(NoteForm::default()),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let settings: Settings =
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(settings.records)
}

/// Note of a transaction that the wallet sent.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct SentNote {
    pub(super) order: Order,
    pub(super) key: Option<String>,
    pub(super) by: Option<String>,
    pub(super) at_ms: u64,
}

/// Note of coins that the wallet took in.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct ReceivedNote {
    pub(super) memo: Option<Memo>,
    pub(super) at_ms: u64,
}

/// Writer and reader of one wallet's notes.
#[derive(Debug)]
pub(super) struct Notes {
    key: SealingKey,
    network: NetworkId,
    form: NoteForm,
}

impl Notes {
    pub(super) fn new(secret: &IdentitySecret, network: NetworkId, form: NoteForm) -> Self {
        let key = SealingKey::derive(&secret.seed(), b"records of a wallet");
        Self { key, network, form }
    }

    /// Note of a payment.
    pub(super) fn sent(&self, payment: &Payment) -> Note {
        let note = SentNote {
            order: payment.order.clone(),
            key: payment.key.clone(),
            by: payment.by.clone(),
            at_ms: payment.begun_ms,
        };
        self.write(RecordName { kind: RecordKind::Sent, tx: payment.id }, &note)
    }

    /// Note of coins that came in by this transaction.
    pub(super) fn received(&self, tx: TxId, note: &ReceivedNote) -> Note {
        self.write(RecordName { kind: RecordKind::Received, tx }, note)
    }

    fn write(&self, name: RecordName, note: &impl BorshSerialize) -> Note {
        let content = borsh::to_vec(note).expect("encoding into memory cannot fail");
        let context = self.context(name);
        match self.form {
            NoteForm::Sealed => [&[SEALED], &self.key.seal(&context, &content)[..]].concat(),
            NoteForm::Plain => {
                // Sealing nothing in the context of the content vouches for it.
                let seal = self.key.seal(&[&context[..], &content].concat(), &[]);
                [&[PLAIN], &seal[..], &content].concat()
            }
        }
    }

    /// Reads a note of this wallet's; `None` where it is none, or of another record.
    pub(super) fn read<T: BorshDeserialize>(&self, name: RecordName, note: &[u8]) -> Option<T> {
        let context = self.context(name);
        let (form, rest) = note.split_first()?;
        let content = match *form {
            SEALED => self.key.open(&context, rest)?,
            PLAIN => {
                let (seal, content) = rest.split_at_checked(SealingKey::OVERHEAD_BYTES)?;
                self.key.open(&[&context[..], content].concat(), seal)?;
                content.to_vec()
            }
            _ => return None,
        };
        borsh::from_slice(&content).ok()
    }

    /// Key for backups of the book, from the same secret.
    pub(super) fn backup_key(secret: &IdentitySecret) -> SealingKey {
        SealingKey::derive(&secret.seed(), b"backup of a wallet")
    }

    fn context(&self, name: RecordName) -> Vec<u8> {
        borsh::to_vec(&(self.network, name)).expect("encoding into memory cannot fail")
    }
}

/// Note of a transaction whose own one is lost: the transaction says who was paid how much, and
/// neither the memo nor when it was.
pub(super) fn note_of(transaction: &Transaction, at_ms: u64) -> SentNote {
    let payer = transaction.payer;
    let is_issue = matches!(transaction.source, Source::Issue { .. });
    let paid = transaction.outputs.iter().find(|output| output.owner != payer || is_issue);
    let purpose = match paid {
        None if matches!(transaction.source, Source::Refund(_)) => Purpose::Refund,
        Some(Output { owner: payee, value }) if is_issue => {
            Purpose::Issue { payee: *payee, value: *value }
        }
        Some(Output { owner: Output::BURNT, value }) => Purpose::Redeem { value: *value },
        Some(Output { owner: payee, value }) => Purpose::Pay { payee: *payee, value: *value },
        None => Purpose::Consolidate,
    };
    SentNote { order: Order { purpose, memo: None }, key: None, by: None, at_ms }
}

#[cfg(test)]
mod tests {
    use super::{NoteForm, Notes, ReceivedNote, form_beside, note_of};
    use crate::wallet::Purpose;
    use crate::wallet::tests::network::{key, network, secret};
    use quorate_crypto::hash;
    use quorate_payments::{Output, RecordKind, RecordName, Transaction, TxId};

    #[test]
    fn a_note_is_read_by_its_wallet_in_its_place_alone() {
        let tx = TxId(hash(b"a transaction"));
        let name = RecordName { kind: RecordKind::Received, tx };
        let (here, there) = (network("here", &[]), network("there", &[]));
        for form in [NoteForm::Sealed, NoteForm::Plain] {
            let notes = Notes::new(&secret(1), here.id(), form);
            let note = ReceivedNote { memo: None, at_ms: 7 };
            let written = notes.received(tx, &note);
            assert_eq!(notes.read(name, &written), Some(note));
            let read = |notes: &Notes, name, written: &[u8]| {
                notes.read::<ReceivedNote>(name, written).is_some()
            };
            let is_there = |part: &[u8]| written.windows(part.len()).any(|bytes| bytes == part);
            assert_eq!(is_there(&7_u64.to_le_bytes()), form == NoteForm::Plain, "{form:?}");
            assert!(!read(&Notes::new(&secret(2), here.id(), form), name, &written));
            assert!(!read(&Notes::new(&secret(1), there.id(), form), name, &written));
            let sent = RecordName { kind: RecordKind::Sent, tx };
            assert!(!read(&notes, sent, &written));
            for at in 0..written.len() {
                let mut altered = written.clone();
                altered[at] ^= 1;
                assert!(!read(&notes, name, &altered), "{form:?}, byte {at}");
            }
        }
    }

    #[test]
    fn a_transaction_says_what_it_was_for() {
        let network = network("here", &[]);
        let of = |outputs: &[(quorate_crypto::IdentityKey, u64)]| {
            let outputs =
                outputs.iter().map(|(owner, value)| Output { owner: *owner, value: *value });
            let spent = Transaction::spend(&network, &secret(1), &[], outputs.collect());
            note_of(&spent, 0).order.purpose
        };
        assert_eq!(of(&[(key(2), 3), (key(1), 4)]), Purpose::Pay { payee: key(2), value: 3 });
        assert_eq!(of(&[(Output::BURNT, 3)]), Purpose::Redeem { value: 3 });
        assert_eq!(of(&[(key(1), 9)]), Purpose::Consolidate);
        let issue =
            Transaction::issue(&network, &secret(1), 5, vec![Output { owner: key(1), value: 2 }]);
        assert_eq!(note_of(&issue, 0).order.purpose, Purpose::Issue { payee: key(1), value: 2 });
    }

    #[test]
    fn the_form_is_sealed_unless_the_settings_say_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let book = folder.path().join("wallet");
        assert_eq!(form_beside(&book), Ok(NoteForm::Sealed));
        std::fs::write(folder.path().join("wallet.toml"), "records = \"plain\"").expect("written");
        assert_eq!(form_beside(&book), Ok(NoteForm::Plain));
        std::fs::write(folder.path().join("wallet.toml"), "records = \"none\"").expect("written");
        assert!(form_beside(&book).expect_err("no such form").contains("wallet.toml"));
    }
}
