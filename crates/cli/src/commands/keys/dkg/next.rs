//! Generators of the next epoch's keys, among them members that serve in this one meanwhile.

use super::generators::{Generators, Purpose, plan};
use crate::commands::committee::in_force::InForce;
use crate::failure::Failure;
use quorate_crypto::PublicKeys;
use quorate_engine::ProtocolKind;
use quorate_ledger::keygen::ceremony_committee;
use quorate_node::{Epochs, NodeConfig};
use quorate_types::CommitteeFile;
use std::path::Path;

/// Status of a generation is nobody's business: any free port of this machine.
const ANY_PORT: &str = "127.0.0.1:0";

impl Generators {
    /// The members of the next epoch as a change of committee names them, which nobody needs to
    /// have signed; one of them has these keys. They meet at the ports of their addresses and so
    /// many more.
    pub(super) fn next_epoch(
        config: &NodeConfig,
        keys: &PublicKeys,
        (draft, port_offset): (&Path, i32),
        label: &str,
    ) -> Result<Self, Failure> {
        let in_force = InForce::of_host(&Epochs::open(config).map_err(Failure::usage)?);
        let file = in_force.read_change(draft)?.0.change.file;
        let own = own_place(&file, keys, (draft, &config.key))?;
        let protocol: ProtocolKind = file.settings.protocol.parse().map_err(Failure::usage)?;
        let mut ceremony = ceremony_committee(&file, label);
        let plan = plan(&ceremony, protocol).map_err(|reason| {
            Failure::usage(format!("the epoch in {} cannot have them: {reason}", draft.display()))
        })?;
        let meeting = Meeting { config, serving: [&in_force.file, &file], port_offset };
        for member in &mut ceremony.members {
            member.address = meeting.address(&member.address)?;
        }
        let host = meeting.host(&ceremony.members[own].address)?;
        let (source, label) = (draft.to_owned(), label.to_owned());
        Ok(Self { file, source, label, ceremony, plan, host, purpose: Purpose::NextEpoch })
    }
}

/// Index of the member whose keys these are, if the draft names its voting key too.
fn own_place(
    file: &CommitteeFile,
    keys: &PublicKeys,
    (draft, key): (&Path, &Path),
) -> Result<usize, Failure> {
    let (draft, key) = (draft.display(), key.display());
    let identity = keys.identity.to_string();
    let own = file.members.iter().position(|member| member.identity == identity);
    let own = own.ok_or_else(|| {
        Failure::usage(format!("the identity key in {key} is no member's of {draft}"))
    })?;
    let is_voting = file.members[own].voting == keys.voting.to_string()
        && file.scheme == keys.scheme.to_string();
    is_voting.then_some(own).ok_or_else(|| {
        Failure::usage(format!(
            "the voting key in {key} is not the one that {draft} names for member {own}: name the key \
             file that has it by --key"
        ))
    })
}

/// Where members meet that serve elsewhere on the same machines.
struct Meeting<'a> {
    config: &'a NodeConfig,
    /// Committees whose addresses are taken.
    serving: [&'a CommitteeFile; 2],
    port_offset: i32,
}

impl Meeting<'_> {
    /// The address that stands for one of a committee file while keys are generated.
    fn address(&self, serving: &str) -> Result<String, Failure> {
        let moved = self.moved(serving)?;
        let mut taken = self.serving.iter().flat_map(|file| &file.members);
        if taken.any(|member| member.address == moved) {
            return Err(self.refused(&format!(
                "{serving} becomes {moved}, where a member of the committee serves"
            )));
        }
        Ok(moved)
    }

    /// This member's configuration while keys are generated, at this address.
    fn host(&self, address: &str) -> Result<NodeConfig, Failure> {
        let listen = self.config.listen.as_deref().map(|listen| self.moved(listen)).transpose()?;
        let meets = listen.as_deref().unwrap_or(address);
        for (field, taken) in
            [("http", Some(&self.config.http)), ("gateway", self.config.gateway.as_ref())]
        {
            if taken.is_some_and(|taken| port(taken) == port(meets)) {
                return Err(self.refused(&format!(
                    "this member meets the others at {meets}, whose port is that of `{field}` of its \
                     validator"
                )));
            }
        }
        let http = ANY_PORT.to_owned();
        Ok(NodeConfig { listen, http, http_tls: false, ..self.config.clone() })
    }

    fn moved(&self, address: &str) -> Result<String, Failure> {
        let moved = port(address).and_then(|port| {
            let moved = i32::from(port).checked_add(self.port_offset)?;
            u16::try_from(moved).ok().filter(|moved| *moved > 0)
        });
        let (host, _) = address.rsplit_once(':').unwrap_or_default();
        let moved = moved.map(|port| format!("{host}:{port}"));
        moved.ok_or_else(|| self.refused(&format!("{address} becomes no address")))
    }

    fn refused(&self, reason: &str) -> Failure {
        Failure::usage(format!(
            "with --port-offset {}, {reason}: agree on another one, the same for all members",
            self.port_offset
        ))
    }
}

fn port(address: &str) -> Option<u16> {
    address.rsplit_once(':')?.1.parse().ok()
}
