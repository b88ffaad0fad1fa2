//! Transfers of tokens, as the standards have contracts log them (EIP-20, EIP-721, EIP-1155).

use super::history::StoredLog;
use alloy_primitives::{Address, B256, Bytes, U256, b256};

/// `Transfer(address,address,uint256)`, of EIP-20 and, with one more topic, of EIP-721.
const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// `TransferSingle(address,address,address,uint256,uint256)`.
const SINGLE: B256 = b256!("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62");

/// `TransferBatch(address,address,address,uint256[],uint256[])`.
const BATCH: B256 = b256!("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb");

/// `balanceOf(address)`, of EIP-20 and EIP-721, and `balanceOf(address,uint256)`, of EIP-1155.
const BALANCE: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
const BALANCE_OF_KIND: [u8; 4] = [0x00, 0xfd, 0xd5, 0x8e];

/// Most kinds of one transfer that are told: those beyond are passed over.
const IDS_MAX: usize = 256;

/// A transfer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) from: Address,
    pub(super) to: Address,
    /// Ids of the kinds that were transferred (EIP-1155); one `None` for a token of one kind.
    pub(super) ids: Vec<Option<U256>>,
}

/// The transfer that a log tells of; `None` where it is another event, or not in the standard's
/// form.
pub(super) fn transfer(log: &StoredLog) -> Option<Transfer> {
    let (from, to, ids) = match (&log.topics[..], log.data.len()) {
        ([TRANSFER, from, to], 32) | ([TRANSFER, from, to, _], 0) => (from, to, vec![None]),
        ([SINGLE, _, from, to], 64) => (from, to, vec![Some(word(&log.data, 0)?)]),
        ([BATCH, _, from, to], _) => (from, to, batch_ids(&log.data)?),
        _ => return None,
    };
    Some(Transfer { from: Address::from_word(*from), to: Address::from_word(*to), ids })
}

/// A word of ABI-encoded data, by its place in bytes.
fn word(data: &[u8], at: usize) -> Option<U256> {
    Some(U256::from_be_slice(data.get(at..at.checked_add(32)?)?))
}

/// The first of two arrays.
fn batch_ids(data: &[u8]) -> Option<Vec<Option<U256>>> {
    let at: usize = word(data, 0)?.try_into().ok()?;
    let count: usize = word(data, at)?.try_into().ok()?;
    // None of them may be there.
    if count > data.len() / 32 {
        return None;
    }
    let noted = 1..=count.min(IDS_MAX);
    noted.map(|index| word(data, at + 32 * index).map(Some)).collect()
}

/// Data of the call that asks a token for a balance.
pub(super) fn balance_call(of: Address, id: Option<U256>) -> Bytes {
    let owner = of.into_word();
    match id {
        None => [&BALANCE[..], &owner[..]].concat().into(),
        Some(id) => [&BALANCE_OF_KIND[..], &owner[..], &id.to_be_bytes::<32>()].concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    fn log(topics: &[B256], data: &[U256]) -> StoredLog {
        let data: Vec<u8> = data.iter().flat_map(U256::to_be_bytes::<32>).collect();
        StoredLog { address: Address::repeat_byte(9), topics: topics.to_vec(), data: data.into() }
    }

    #[test]
    fn events_and_calls_are_those_of_the_standards() {
        let events = [
            (TRANSFER, "Transfer(address,address,uint256)"),
            (SINGLE, "TransferSingle(address,address,address,uint256,uint256)"),
            (BATCH, "TransferBatch(address,address,address,uint256[],uint256[])"),
        ];
        for (topic, event) in events {
            assert_eq!(topic, keccak256(event));
        }
        assert_eq!(BALANCE, keccak256("balanceOf(address)")[..4]);
        assert_eq!(BALANCE_OF_KIND, keccak256("balanceOf(address,uint256)")[..4]);
    }

    #[test]
    fn of_one_transfer_so_many_kinds_are_told() {
        let word = Address::repeat_byte(1).into_word();
        let count = IDS_MAX as u64 + 9;
        let numbers: Vec<U256> =
            [64, 0, count].into_iter().chain(0..count).map(U256::from).collect();
        let told = transfer(&log(&[BATCH, word, word, word], &numbers)).expect("a transfer");
        assert_eq!(told.ids.len(), IDS_MAX);
    }

    #[test]
    fn a_transfer_is_read_in_the_form_of_each_standard_and_in_no_other() {
        let (from, to) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let [operator, one, two] = [Address::repeat_byte(3), from, to].map(|of| of.into_word());
        let n = |numbers: &[u64]| numbers.iter().copied().map(U256::from).collect::<Vec<_>>();
        let ids = |numbers: &[u64]| n(numbers).into_iter().map(Some).collect::<Vec<_>>();
        let taken = [
            (log(&[TRANSFER, one, two], &n(&[5])), vec![None]),
            (log(&[TRANSFER, one, two, operator], &[]), vec![None]),
            (log(&[SINGLE, operator, one, two], &n(&[7, 5])), ids(&[7])),
            (log(&[BATCH, operator, one, two], &n(&[64, 160, 2, 7, 8, 2, 1, 1])), ids(&[7, 8])),
            (log(&[BATCH, operator, one, two], &n(&[64, 96, 0, 0])), vec![]),
        ];
        for (log, ids) in taken {
            assert_eq!(transfer(&log), Some(Transfer { from, to, ids }));
        }
        let far = U256::MAX;
        let refused = [
            log(&[TRANSFER, one, two], &n(&[5, 5])),
            log(&[TRANSFER, one, two], &[]),
            log(&[TRANSFER, one, two, operator], &n(&[5])),
            log(&[TRANSFER, one], &n(&[5])),
            log(&[SINGLE, operator, one, two], &n(&[7])),
            log(&[BATCH, operator, one, two], &n(&[64, 160, 9, 7, 8])),
            log(&[BATCH, operator, one, two], &[far, far, far]),
            log(&[BATCH, operator, one, two], &[]),
            log(&[], &[]),
        ];
        for log in refused {
            assert_eq!(transfer(&log), None, "{log:?}");
        }
    }
}
