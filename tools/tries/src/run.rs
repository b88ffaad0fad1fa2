//! A run: one tree, filled, then heights of transfers.

use crate::ethereum::{Ethereum, Hashed, Slots, entry, rebuilt};
use crate::nodes::{Figures, Nodes};
use crate::own::{Own, Values, operations};
use crate::process::{load, resident_bytes, user_seconds, written_bytes};
use crate::workload::{Changes, Ledger};
use alloy_primitives::{Address, B256};
use alloy_trie::TrieAccount;
use clap::{Args, ValueEnum};
use quorate_storage::{DiskStore, MemoryStore, Owner};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Holders whose accounts and slots are put at a time before the measurement.
const PART: usize = 10_000;

/// Options of a run.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Tree that is measured
    #[arg(long)]
    tree: Kind,
    /// Accounts, each with a slot of the token's
    #[arg(long, default_value_t = 100_000)]
    accounts: u64,
    /// Transfers of a height; several for one after the other
    #[arg(long, value_delimiter = ',', default_values_t = [50, 500])]
    of_height: Vec<u64>,
    /// Transfers that are measured, after a tenth more
    #[arg(long, default_value_t = 40_000)]
    transfers: u64,
    /// Measurements of each
    #[arg(long, default_value_t = 3)]
    repeats: u64,
    /// Heights between two checkpoints, where there is a disk
    #[arg(long, default_value_t = 64)]
    checkpoint: u64,
    /// Folder in which files are made and removed
    #[arg(long, default_value = ".")]
    folder: PathBuf,
}

/// A tree, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// No tree: values in memory
    Values,
    /// The state tree, over values in memory
    Own,
    /// The state tree, over values on the disk as validators have them
    OwnDisk,
    /// Ethereum's tries, all nodes in memory
    EthereumMemory,
    /// Ethereum's tries, nodes in `fjall`, and those that were read in memory too
    EthereumCached,
    /// Ethereum's tries, nodes in `fjall`, read anew at each height
    EthereumDisk,
    /// Ethereum's tries, nodes by their hashes in memory, read anew at each height
    EthereumHashed,
}

/// A line: the figures of one measurement.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) tree: Kind,
    pub(crate) accounts: u64,
    pub(crate) of_height: u64,
    pub(crate) checkpoint: u64,
    /// User time of the processor for a transfer's part in the roots, microseconds.
    pub(crate) user_us: f64,
    /// Bytes that were given to the disk for a transfer.
    pub(crate) written_bytes: f64,
    /// Nodes that a transfer changed, and their bytes with their paths.
    pub(crate) nodes: f64,
    pub(crate) node_bytes: f64,
    /// Seconds of the processor in which another library made the root of all entries anew.
    pub(crate) rebuilt_s: Option<f64>,
    /// Memory of the process for an account and its slot. Of the state tree it is the values' too.
    pub(crate) memory_bytes: f64,
    /// The machine's load.
    pub(crate) load: f64,
}

/// What follows the heights.
enum Tree {
    Values(Values),
    Own(Own),
    Ethereum(Box<Ethereum>, Nodes),
    Hashed(Box<Hashed>),
}

impl Run {
    pub(crate) fn measure(&self) {
        // Made where the figures are wanted, and removed whatever happens.
        let folder = tempfile::tempdir_in(&self.folder).expect("a folder");
        let mut ledger = Ledger::new(self.accounts);
        let resident = resident_bytes();
        let mut tree = self.tree.make(folder.path());
        for part in ledger.parts(PART) {
            tree.follow(&Height::new(self.tree, part), true);
        }
        let filled = resident_bytes().saturating_sub(resident) / self.accounts;
        for &of_height in &self.of_height {
            for _ in 0..self.repeats {
                let line = self.measure_one(&mut ledger, &mut tree, of_height);
                let line = Line { memory_bytes: filled as f64, ..line };
                println!("{}", serde_json::to_string(&line).expect("figures"));
            }
        }
    }

    fn measure_one(&self, ledger: &mut Ledger, tree: &mut Tree, of_height: u64) -> Line {
        let mut heights = |transfers: u64| -> Vec<Height> {
            let heights = 0..transfers.div_ceil(of_height);
            heights.map(|_| Height::new(self.tree, ledger.height(of_height))).collect()
        };
        let (warm, measured) = (heights(self.transfers / 10), heights(self.transfers));
        self.follow(tree, &warm);
        let (user, written, figures) = (user_seconds(), written_bytes(), tree.figures());
        let root = self.follow(tree, &measured);
        let each = |figure: f64| figure / (measured.len() as u64 * of_height) as f64;
        Line {
            tree: self.tree,
            accounts: self.accounts,
            of_height,
            checkpoint: self.checkpoint,
            user_us: each((user_seconds() - user) * 1e6),
            written_bytes: each((written_bytes() - written) as f64),
            nodes: each((tree.figures().nodes - figures.nodes) as f64),
            node_bytes: each((tree.figures().bytes - figures.bytes) as f64),
            rebuilt_s: root.map(|root| rebuilding(ledger, root)),
            memory_bytes: 0.0,
            load: load(),
        }
    }

    /// Follows heights one after the other, and returns the last root of Ethereum's.
    fn follow(&self, tree: &mut Tree, heights: &[Height]) -> Option<B256> {
        let mut root = None;
        for (number, height) in (1..).zip(heights) {
            let is_checkpoint = number % self.checkpoint == 0 || number == heights.len() as u64;
            root = tree.follow(height, is_checkpoint);
        }
        root
    }
}

/// A height as its tree takes it.
enum Height {
    Operations(Vec<bytes::Bytes>),
    Changes(Changes),
}

impl Height {
    fn new(tree: Kind, changes: Changes) -> Self {
        match tree {
            Kind::Own | Kind::OwnDisk => Self::Operations(operations(&changes)),
            _ => Self::Changes(changes),
        }
    }
}

impl Kind {
    fn make(self, folder: &Path) -> Tree {
        let nodes = || Nodes::on_disk(folder);
        match self {
            Self::Values => Tree::Values(Values(Box::new(MemoryStore::new()))),
            Self::Own => Tree::Own(Own::new(Box::new(MemoryStore::new()))),
            Self::OwnDisk => {
                let store = DiskStore::open(&folder.join("state"), &Owner::nobody());
                Tree::Own(Own::new(Box::new(store.expect("opens"))))
            }
            Self::EthereumMemory => Tree::ethereum(Nodes::default(), true),
            Self::EthereumCached => Tree::ethereum(nodes(), true),
            Self::EthereumDisk => Tree::ethereum(nodes(), false),
            Self::EthereumHashed => Tree::Hashed(Box::new(Hashed::new())),
        }
    }
}

impl Tree {
    fn ethereum(nodes: Nodes, is_held: bool) -> Self {
        Self::Ethereum(Box::new(Ethereum::new(nodes.clone(), is_held)), nodes)
    }

    fn follow(&mut self, height: &Height, is_checkpoint: bool) -> Option<B256> {
        match (self, height) {
            (Self::Values(values), Height::Changes(changes)) => {
                values.follow(changes, is_checkpoint);
                None
            }
            (Self::Own(own), Height::Operations(operations)) => {
                own.follow(operations, is_checkpoint);
                None
            }
            (Self::Ethereum(ethereum, nodes), Height::Changes(changes)) => {
                let root = ethereum.follow(changes);
                if is_checkpoint {
                    nodes.checkpoint();
                }
                Some(root)
            }
            (Self::Hashed(hashed), Height::Changes(changes)) => Some(hashed.follow(changes)),
            _ => unreachable!("heights are made for their tree"),
        }
    }

    fn figures(&self) -> Figures {
        match self {
            Self::Ethereum(_, nodes) => nodes.figures(),
            Self::Values(_) | Self::Own(_) | Self::Hashed(_) => Figures::default(),
        }
    }
}

/// Makes the root anew, which must be this one, and returns the seconds that it took.
fn rebuilding(ledger: &Ledger, root: B256) -> f64 {
    let (mut accounts, mut slots): (BTreeMap<Address, TrieAccount>, Slots) = Default::default();
    for part in ledger.parts(PART) {
        accounts.extend(part.accounts.iter().map(|(address, account)| (*address, entry(account))));
        slots.extend(part.slots);
    }
    let began = user_seconds();
    assert_eq!(rebuilt(&accounts, &slots), root, "both libraries come to one root");
    user_seconds() - began
}
