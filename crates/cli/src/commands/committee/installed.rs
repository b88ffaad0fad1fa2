//! Versions of what is executed that are installed where somebody signs.

use crate::failure::{CommandResult, Failure};
use quorate_lab::ServiceKind;
use quorate_types::{AgreedSettings, LacksVersion, Versions};

/// The version of these settings, if this program lacks it. Of a service that it does not know it
/// says nothing: another program executes that.
pub(super) fn lacks(settings: &AgreedSettings) -> Option<LacksVersion> {
    let service: ServiceKind = settings.service.parse().ok()?;
    lacks_among(service.versions(), settings)
}

fn lacks_among(versions: Versions, settings: &AgreedSettings) -> Option<LacksVersion> {
    versions.check(&settings.service, settings.execution_version).err()
}

/// Refuses to accept a place under settings whose version is not installed: at the validator that
/// was asked, and otherwise where this program is.
pub(super) fn check(settings: &AgreedSettings, at_validator: Option<Versions>) -> CommandResult {
    let lacked = match at_validator {
        Some(versions) => lacks_among(versions, settings)
            .map(|lacks| format!("the validator that was asked: {lacks}")),
        None => lacks(settings).map(|lacks| lacks.to_string()),
    };
    let Some(lacked) = lacked else { return Ok(()) };
    Err(Failure::LacksVersion(format!(
        "{lacked}: install a newer version first, for who accepts a place says that everything which \
         the change asks for is there"
    )))
}
