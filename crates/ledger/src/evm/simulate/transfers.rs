//! Transfers of ether as logs of a simulated call.

use crate::evm::StoredLog;
use alloy_primitives::{Address, Log, LogData, U256};
use revm::Inspector;
use revm::context::{ContextTr, JournalTr};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, InstructionResult,
};
use revm_inspectors::transfer::{TRANSFER_EVENT_TOPIC, TRANSFER_LOG_EMITTER};

/// The logs of a call, and its transfers of ether as logs among them, without those of frames that
/// fail. The machine has no logs of transfers, and so the block's bloom and receipts have none:
/// `revm-inspectors` puts them into the machine's own, where they outlive the frame.
#[derive(Debug, Default)]
pub(super) struct TransferLogs {
    logs: Vec<Log>,
    /// Number of them as each open frame began.
    begun: Vec<usize>,
}

impl TransferLogs {
    pub(super) fn into_logs(self) -> Vec<StoredLog> {
        self.logs.into_iter().map(Into::into).collect()
    }

    fn transfer(&mut self, from: Address, to: Address, value: U256) {
        if value.is_zero() {
            return;
        }
        let topics = vec![TRANSFER_EVENT_TOPIC, from.into_word(), to.into_word()];
        let data = LogData::new_unchecked(topics, value.to_be_bytes_vec().into());
        self.logs.push(Log { address: TRANSFER_LOG_EMITTER, data });
    }

    fn end(&mut self, result: InstructionResult) {
        let begun = self.begun.pop().unwrap_or_default();
        if !result.is_ok() {
            self.logs.truncate(begun);
        }
    }
}

impl<CTX: ContextTr> Inspector<CTX> for TransferLogs {
    fn log(&mut self, _: &mut CTX, log: Log) {
        self.logs.push(log);
    }

    fn call(&mut self, _: &mut CTX, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.begun.push(self.logs.len());
        // With CALLCODE an account pays itself.
        if inputs.scheme != CallScheme::CallCode
            && let Some(value) = inputs.transfer_value()
        {
            self.transfer(inputs.transfer_from(), inputs.transfer_to(), value);
        }
        None
    }

    fn call_end(&mut self, _: &mut CTX, _: &CallInputs, outcome: &mut CallOutcome) {
        self.end(outcome.result.result);
    }

    fn create(&mut self, context: &mut CTX, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.begun.push(self.logs.len());
        // An account that cannot be read ends the call by itself.
        if let Ok(account) = context.journal_mut().load_account(inputs.caller()) {
            let nonce = account.data.info.nonce;
            self.transfer(inputs.caller(), inputs.created_address(nonce), inputs.value());
        }
        None
    }

    fn create_end(&mut self, _: &mut CTX, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.end(outcome.result.result);
    }

    fn selfdestruct(&mut self, contract: Address, to: Address, value: U256) {
        self.transfer(contract, to, value);
    }
}
