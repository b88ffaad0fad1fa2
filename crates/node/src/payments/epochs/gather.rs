//! Reports of a border, fetched from whoever has them.
//!
//! One task for each report, so that an authority that withholds its own keeps none of the others
//! waiting. ★ What is fetched is what the committee ordered and its authority signed, chunk by
//! chunk, whoever it came from.

use super::report::{BadChunk, ClosedReport, ReportCopy};
use super::{PayEpochError, gathered_folder, report_folder_of};
use crate::NodeError;
use crate::payments::{AuthorityConfig, PayClient};
use parking_lot::Mutex;
use quorate_crypto::IdentitySecret;
use quorate_payments::change::Closing;
use quorate_payments::{Network, ReportPart, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::{sleep, timeout};

/// Longest wait for a part, of a mebibyte, before somebody else is asked.
const PATIENCE: Duration = Duration::from_secs(20);

/// Pause after everybody was asked in vain.
const PAUSE: Duration = Duration::from_millis(200);

/// Wait for more reports once a quorum's are here: the more, the fewer inputs a liar keeps from
/// their owners by naming them. First while authorities are missing that stay; of those who leave,
/// one may have lost its disk.
const MORE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(1)];

type Place = (u16, ReplicaId);

/// Reports of one border that are fetched.
#[derive(Debug)]
pub(super) struct Gathering {
    sources: Arc<Sources>,
    /// Reports that are here, or asked for.
    known: BTreeSet<Place>,
    here: Arc<Mutex<Here>>,
    enough_since: Option<Instant>,
    runtime: Handle,
    tasks: JoinSet<()>,
}

/// What has become of reports.
#[derive(Debug, Default)]
struct Here {
    /// Folders of those that are here, whole.
    reports: BTreeMap<Place, PathBuf>,
    /// Those that their authority signed, and that are none: they count as never made.
    unsound: BTreeSet<Place>,
}

/// Networks of a border, and the newest that was ordered.
pub(super) struct Around<'a> {
    pub(super) ended: &'a Arc<Network>,
    pub(super) next: &'a Arc<Network>,
    pub(super) newest: &'a Arc<Network>,
}

/// Who may have a report: authorities of the epoch that ended, and those of the next and of the
/// newest, who began with it.
#[derive(Debug)]
struct Sources {
    ended: Arc<Network>,
    next: Arc<Network>,
    /// For each shard, connections to the authorities of each network.
    clients: Vec<Vec<(Arc<Network>, PayClient)>>,
}

impl Gathering {
    pub(super) fn start(
        identity: &IdentitySecret,
        Around { ended, next, newest }: &Around<'_>,
        runtime: &Handle,
    ) -> Result<Self, NodeError> {
        let _inside = runtime.enter();
        let is_later = newest.epoch() > next.epoch();
        let networks = [*ended, *next].into_iter().chain(is_later.then_some(*newest));
        let client = |network: &Arc<Network>, shard| {
            let client = PayClient::start_at(Arc::clone(network), identity, shard)?;
            Ok((Arc::clone(network), client))
        };
        let clients = |shard| networks.clone().map(|network| client(network, shard)).collect();
        let clients = (0..ended.shards()).map(clients).collect::<Result<_, NodeError>>()?;
        let sources = Sources { ended: Arc::clone(ended), next: Arc::clone(next), clients };
        Ok(Self {
            sources: Arc::new(sources),
            known: BTreeSet::new(),
            here: Arc::default(),
            enough_since: None,
            runtime: runtime.clone(),
            tasks: JoinSet::new(),
        })
    }

    /// Returns `true` if authorities of this network are asked, the newest that was ordered.
    pub(super) fn asks(&self, newest: &Arc<Network>) -> bool {
        let last = self.sources.clients.iter().filter_map(|clients| clients.last());
        last.map(|(network, _)| network.epoch()).all(|asked| asked == newest.epoch())
    }

    /// Fetches a report that was ordered, unless it is here already, this shard's own or a copy.
    pub(super) fn fetch(&mut self, config: &AuthorityConfig, closing: &Closing) {
        let place = (closing.shard, closing.authority);
        if !self.known.insert(place) {
            return;
        }
        let ended = &self.sources.ended;
        let (begins, of) = (self.sources.next.epoch(), (closing.authority, closing.shard));
        let folder = gathered_folder(&config.data_dir, begins, of);
        for folder in [report_folder_of(config, ended), folder.clone()] {
            if ClosedReport::open(&folder, ended).is_ok_and(|report| report.closing() == closing) {
                self.here.lock().reports.insert(place, folder);
                return;
            }
        }
        let (sources, closing, here) =
            (Arc::clone(&self.sources), *closing, Arc::clone(&self.here));
        let fetch = async move {
            let is_sound = sources.fetch(&closing, &folder).await;
            let mut here = here.lock();
            if is_sound {
                here.reports.insert(place, folder);
            } else {
                here.unsound.insert(place);
            }
        };
        self.tasks.spawn_on(fetch, &self.runtime);
    }

    /// Folders of the reports, once a quorum's are here of every shard, and whoever may still
    /// report has had its time.
    pub(super) fn ready(&mut self) -> Option<Vec<PathBuf>> {
        let here = self.here.lock();
        let ended = &self.sources.ended;
        let weights = ended.committee().weights();
        let weigh = |shard: u16| -> u64 {
            let of_shard = here.reports.keys().filter(|(of, _)| *of == shard);
            of_shard.map(|(_, authority)| weights.of(authority.index())).sum()
        };
        if !(0..ended.shards()).all(|shard| weigh(shard) >= weights.quorum()) {
            return None;
        }
        let waited = self.enough_since.get_or_insert_with(Instant::now).elapsed();
        let wait = self.sources.missing(&here).map(|stays| MORE[usize::from(!stays)]).max();
        let is_over = wait.is_none_or(|wait| waited >= wait);
        is_over.then(|| here.reports.values().cloned().collect())
    }

    /// Number of reports that are here.
    pub(super) fn count(&self) -> usize {
        self.here.lock().reports.len()
    }
}

impl Sources {
    /// For each report that may still come, whether its authority stays in the next epoch.
    fn missing(&self, here: &Here) -> impl Iterator<Item = bool> {
        let shards = 0..self.ended.shards();
        let members = || self.ended.committee().members();
        let places = shards.flat_map(move |shard| members().map(move |one| (shard, one)));
        let is_out =
            |place: &Place| !here.reports.contains_key(place) && !here.unsound.contains(place);
        let stays = |(_, authority): Place| {
            let key = self.ended.committee().identity(authority);
            key.is_some_and(|key| self.next.committee().find(key).is_some())
        };
        places.filter(is_out).map(stays)
    }

    /// Fetches a report into a folder; tries for ever. Returns `false` for one that is none, though
    /// its authority signed it.
    async fn fetch(&self, closing: &Closing, folder: &Path) -> bool {
        loop {
            for (client, authority) in self.of(closing) {
                match self.copy(client, authority, closing, folder).await {
                    Ok(Ok(())) => return true,
                    Ok(Err(BadChunk::Unsound)) => {
                        let (authority, shard) = (closing.authority, closing.shard);
                        tracing::warn!(%authority, shard, "signed a report that is none: it does not count");
                        return false;
                    }
                    Ok(Err(BadChunk::Unsigned)) => {
                        tracing::warn!(%authority, "gives something else than was signed");
                    }
                    Err(error) => tracing::debug!(%authority, %error, "no report from here"),
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Whom to ask: the report's own authority, wherever it still is one, then everybody else, the
    /// newest first.
    fn of(&self, closing: &Closing) -> Vec<(&PayClient, ReplicaId)> {
        let clients = &self.clients[usize::from(closing.shard)];
        let key = self.ended.committee().identity(closing.authority);
        let own = |network: &Network| key.and_then(|key| network.committee().find(key));
        let its = clients.iter().filter_map(|(network, client)| Some((client, own(network)?)));
        let others = clients.iter().rev().flat_map(|(network, client)| {
            let own = own(network);
            let members = network.committee().members().filter(move |one| Some(*one) != own);
            members.map(move |one| (client, one))
        });
        its.chain(others).collect()
    }

    async fn copy(
        &self,
        client: &PayClient,
        from: ReplicaId,
        closing: &Closing,
        folder: &Path,
    ) -> Result<Result<(), BadChunk>, PayEpochError> {
        let part = |part| async move {
            let Closing { authority, shard, .. } = *closing;
            let part = ReportPart { ended: self.ended.epoch(), authority, shard, part };
            let asked = timeout(PATIENCE, client.ask(from, WalletRequest::Report(part))).await;
            match asked {
                Ok(WalletReply::Report(Some(bytes))) => Ok(bytes),
                _ => Err(PayEpochError::NotGiven { authority: from.0 }),
            }
        };
        let signed = part(0).await?;
        let begin = || ReportCopy::begin(folder, &self.ended, closing, &signed);
        let mut copy = block_in_place(begin)?;
        while let Some(number) = copy.missing() {
            let bytes = part(number + 1).await?;
            if let Err(bad) = block_in_place(|| copy.take(&bytes))? {
                return Ok(Err(bad));
            }
        }
        block_in_place(|| copy.finish()).map(Ok)
    }
}
