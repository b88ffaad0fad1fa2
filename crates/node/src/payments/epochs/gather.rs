//! Reports of a border, fetched from whoever has them.
//!
//! One task for each report, so that an authority that withholds its own keeps none of the others
//! waiting. ★ What is fetched is what the committee ordered and its authority signed, chunk by
//! chunk, whoever it came from.

use super::report::ReportCopy;
use super::{PayEpochError, gathered_folder, report_folder_of};
use crate::NodeError;
use crate::payments::{AuthorityConfig, PayClient};
use parking_lot::Mutex;
use quorate_crypto::IdentitySecret;
use quorate_payments::change::Closing;
use quorate_payments::{Network, ReportPart, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Longest wait for a part before somebody else is asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause after everybody was asked in vain.
const PAUSE: Duration = Duration::from_millis(200);

/// Wait for more reports once a quorum's are here: the more, the fewer inputs stay contested.
const MORE: Duration = Duration::from_secs(1);

type Place = (u16, ReplicaId);

/// Reports of one border that are fetched.
#[derive(Debug)]
pub(super) struct Gathering {
    sources: Arc<Sources>,
    asked: BTreeMap<Place, Closing>,
    here: Arc<Mutex<BTreeMap<Place, PathBuf>>>,
    enough_since: Option<Instant>,
    runtime: Handle,
    tasks: JoinSet<()>,
}

/// Who may have a report: authorities of the epoch that ended, and those of the next that have
/// begun.
#[derive(Debug)]
struct Sources {
    ended: Arc<Network>,
    next: Arc<Network>,
    /// For each shard, connections to both epochs' authorities.
    clients: Vec<[PayClient; 2]>,
}

impl Gathering {
    pub(super) fn start(
        identity: &IdentitySecret,
        (ended, next): (&Arc<Network>, &Arc<Network>),
        runtime: &Handle,
    ) -> Result<Self, NodeError> {
        let _inside = runtime.enter();
        let client = |network: &Arc<Network>, shard| {
            PayClient::start_at(Arc::clone(network), identity, shard)
        };
        let clients =
            (0..ended.shards()).map(|shard| Ok([client(ended, shard)?, client(next, shard)?]));
        let clients = clients.collect::<Result<_, NodeError>>()?;
        let sources = Sources { ended: Arc::clone(ended), next: Arc::clone(next), clients };
        Ok(Self {
            sources: Arc::new(sources),
            asked: BTreeMap::new(),
            here: Arc::default(),
            enough_since: None,
            runtime: runtime.clone(),
            tasks: JoinSet::new(),
        })
    }

    /// Fetches a report that was ordered, unless it is fetched already, or this shard's own.
    pub(super) fn fetch(
        &mut self,
        config: &AuthorityConfig,
        me: Option<ReplicaId>,
        closing: &Closing,
    ) {
        let place = (closing.shard, closing.authority);
        if self.asked.insert(place, *closing).is_some() {
            return;
        }
        let here = Arc::clone(&self.here);
        if me == Some(closing.authority) && config.shard == closing.shard {
            here.lock().insert(place, report_folder_of(config, &self.sources.ended));
            return;
        }
        let begins = self.sources.next.epoch();
        let folder = gathered_folder(&config.data_dir, begins, (closing.authority, closing.shard));
        let (sources, closing) = (Arc::clone(&self.sources), *closing);
        let fetch = async move {
            sources.fetch(&closing, &folder).await;
            here.lock().insert(place, folder);
        };
        self.tasks.spawn_on(fetch, &self.runtime);
    }

    /// Folders of the reports, once a quorum's are here of every shard, and all that were ordered
    /// or no more have come for a while.
    pub(super) fn ready(&mut self) -> Option<Vec<PathBuf>> {
        let here = self.here.lock();
        let ended = &self.sources.ended;
        let weights = ended.committee().weights();
        let weigh = |shard: u16| -> u64 {
            let of_shard = here.keys().filter(|(of, _)| *of == shard);
            of_shard.map(|(_, authority)| weights.of(authority.index())).sum()
        };
        if !(0..ended.shards()).all(|shard| weigh(shard) >= weights.quorum()) {
            return None;
        }
        let since = *self.enough_since.get_or_insert_with(Instant::now);
        let all = ended.committee().size() * usize::from(ended.shards());
        let is_all = here.len() == all;
        (is_all || since.elapsed() >= MORE).then(|| here.values().cloned().collect())
    }

    /// Number of reports that are here.
    pub(super) fn count(&self) -> usize {
        self.here.lock().len()
    }
}

impl Sources {
    /// Fetches a report into a folder; tries for ever.
    async fn fetch(&self, closing: &Closing, folder: &Path) {
        loop {
            for (client, authority) in self.of(closing) {
                match self.copy(client, authority, closing, folder).await {
                    Ok(()) => return,
                    Err(error) => tracing::debug!(%authority, %error, "no report from here"),
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Whom to ask: the report's own authority, where it is in either epoch, then everybody else.
    fn of(&self, closing: &Closing) -> Vec<(&PayClient, ReplicaId)> {
        let [ended, next] = &self.clients[usize::from(closing.shard)];
        let key = self.ended.committee().identity(closing.authority);
        let later = key.and_then(|key| self.next.committee().find(key));
        let mut sources = vec![(ended, closing.authority)];
        sources.extend(later.map(|later| (next, later)));
        let others = self.next.committee().members().filter(|one| Some(*one) != later);
        sources.extend(others.map(|one| (next, one)));
        let others = self.ended.committee().members().filter(|one| *one != closing.authority);
        sources.extend(others.map(|one| (ended, one)));
        sources
    }

    async fn copy(
        &self,
        client: &PayClient,
        from: ReplicaId,
        closing: &Closing,
        folder: &Path,
    ) -> Result<(), PayEpochError> {
        let part = |part| async move {
            let Closing { authority, shard, .. } = *closing;
            let part = ReportPart { ended: self.ended.epoch(), authority, shard, part };
            let asked = timeout(PATIENCE, client.ask(from, WalletRequest::Report(part))).await;
            match asked {
                Ok(WalletReply::Report(Some(bytes))) => Ok(bytes),
                _ => Err(PayEpochError::NotGiven { authority: from.0 }),
            }
        };
        let mut copy = ReportCopy::begin(folder, &self.ended, closing, &part(0).await?)?;
        while let Some(number) = copy.missing() {
            copy.take(&part(number + 1).await?)?;
        }
        copy.finish()
    }
}
