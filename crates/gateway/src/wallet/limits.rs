//! Limits of what somebody may pay from a wallet: at once, and within a day.
//!
//! What was paid is counted from the wallet's own records, by the name of whoever ordered it: so it
//! holds over restarts, and whoever is removed and comes back under the same name goes on where
//! they were.

use super::{Order, Payment, PaymentState, Purpose, Wallet};
use quorate_node::unix_ms;

/// A day, in milliseconds: any 24 hours, and none of a calendar.
pub const DAY_MS: u64 = 86_400_000;

/// Somebody who orders payments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orderer {
    /// Name, kept with each payment.
    pub name: String,
    /// Limits of what they may pay; `None` for all that there is.
    pub limits: Option<Limits>,
}

/// Limits of what somebody may pay, in the smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most for one payment.
    pub payment_max: u64,
    /// Most within any 24 hours. Payments that were refused do not count; those of which the
    /// outcome is not known do, and those that lost.
    pub day_max: u64,
}

/// Refusal of a payment beyond somebody's limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// One payment is too much.
    #[error("'{name}' may pay at most {payment_max} at once")]
    Payment {
        /// Name of whoever ordered it.
        name: String,
        /// Most for one payment, in the smallest unit.
        payment_max: u64,
    },
    /// A day's payments are too much.
    #[error("'{name}' may pay at most {day_max} within 24 hours, and has paid {paid}")]
    Day {
        /// Name of whoever ordered it.
        name: String,
        /// Most within 24 hours, in the smallest unit.
        day_max: u64,
        /// Value of the last 24 hours' payments, in the smallest unit.
        paid: u128,
    },
    /// Something else than to pay somebody.
    #[error("'{name}' may pay, and nothing else")]
    Purpose {
        /// Name of whoever ordered it.
        name: String,
    },
}

impl Wallet {
    /// Refuses an order beyond the limits of whoever gives it.
    pub(super) fn check_limits(&self, by: &Orderer, order: &Order) -> Result<(), LimitError> {
        let Some(Limits { payment_max, day_max }) = by.limits else { return Ok(()) };
        let name = || by.name.clone();
        let Purpose::Pay { value, .. } = order.purpose else {
            return Err(LimitError::Purpose { name: name() });
        };
        if value > payment_max {
            return Err(LimitError::Payment { name: name(), payment_max });
        }
        let paid = self.paid_within_a_day(&by.name, unix_ms());
        if paid + u128::from(value) > u128::from(day_max) {
            return Err(LimitError::Day { name: name(), day_max, paid });
        }
        Ok(())
    }

    /// Value of what somebody paid in the day before; after it too, where a clock was set back.
    fn paid_within_a_day(&self, name: &str, now_ms: u64) -> u128 {
        let counts = |payment: &&Payment| {
            payment.by.as_deref() == Some(name)
                && payment.begun_ms.saturating_add(DAY_MS) > now_ms
                && !matches!(payment.state, PaymentState::Refused { .. })
        };
        self.state.payments().filter(counts).map(|payment| u128::from(payment.value())).sum()
    }
}
