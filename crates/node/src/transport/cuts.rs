//! Links that are cut on purpose: for laboratories.
//!
//! A file names them, one a line as `A-B`; it is read ten times a second. Each of the two members
//! then closes what it has dialled to the other, and dials it no more, until the line is gone.

use quorate_types::ReplicaId;
use std::collections::BTreeSet;
use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

const READ_EVERY: Duration = Duration::from_millis(100);

/// Members to which this one's links are cut; without a file, none ever is.
#[derive(Clone, Debug, Default)]
pub struct Cuts(Option<watch::Receiver<BTreeSet<ReplicaId>>>);

impl Cuts {
    /// Links of member `me` that a file names. Within a tokio runtime, on which it reads from then
    /// on.
    #[must_use]
    pub fn named_in(file: &Path, me: ReplicaId) -> Self {
        let (cut, cuts) = watch::channel(BTreeSet::new());
        tokio::spawn(read_on(file.to_owned(), me, cut));
        Self(Some(cuts))
    }

    /// Returns `true` while the link to this member is cut.
    #[must_use]
    pub fn concern(&self, peer: ReplicaId) -> bool {
        self.0.as_ref().is_some_and(|cuts| cuts.borrow().contains(&peer))
    }

    /// Waits until the link to this member is cut.
    pub async fn until_cut(&self, peer: ReplicaId) {
        let Some(mut cuts) = self.0.clone() else { return pending().await };
        if cuts.wait_for(|cut| cut.contains(&peer)).await.is_err() {
            pending::<()>().await;
        }
    }
}

async fn read_on(file: PathBuf, me: ReplicaId, cut: watch::Sender<BTreeSet<ReplicaId>>) {
    while !cut.is_closed() {
        // No file: nothing is cut yet.
        let named = parse(&fs::read_to_string(&file).unwrap_or_default(), me);
        cut.send_if_modified(|cut| std::mem::replace(cut, named.clone()) != named);
        sleep(READ_EVERY).await;
    }
}

fn parse(text: &str, me: ReplicaId) -> BTreeSet<ReplicaId> {
    let ends = text.lines().filter_map(|line| {
        let (one, other) = line.trim().split_once('-')?;
        Some((ReplicaId(one.parse().ok()?), ReplicaId(other.parse().ok()?)))
    });
    let peer = ends.filter_map(
        |(one, other)| {
            if one == me { Some(other) } else { (other == me).then_some(one) }
        },
    );
    peer.collect()
}

#[cfg(test)]
mod tests {
    use super::{Cuts, parse};
    use quorate_types::ReplicaId;
    use std::fs;
    use tempfile::tempdir;
    use tokio::time::{Duration, sleep};

    #[test]
    fn a_line_names_both_ends() {
        let cut = |me| parse("0-2\n1-3\n\nnonsense\n3-0\n", ReplicaId(me));
        assert_eq!(cut(0), [2, 3].map(ReplicaId).into());
        assert_eq!(cut(3), [0, 1].map(ReplicaId).into());
        assert!(cut(4).is_empty());
    }

    #[tokio::test]
    async fn a_link_is_cut_while_the_file_names_it() {
        let folder = tempdir().unwrap();
        let file = folder.path().join("cuts");
        let cuts = Cuts::named_in(&file, ReplicaId(0));
        assert!(!cuts.concern(ReplicaId(2)));
        fs::write(&file, "0-2\n").unwrap();
        cuts.until_cut(ReplicaId(2)).await;
        assert!(cuts.concern(ReplicaId(2)) && !cuts.concern(ReplicaId(1)));
        fs::write(&file, "").unwrap();
        while cuts.concern(ReplicaId(2)) {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(!Cuts::default().concern(ReplicaId(2)));
    }
}
