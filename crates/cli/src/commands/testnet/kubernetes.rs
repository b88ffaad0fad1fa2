//! `quorate testnet --kubernetes`: an overlay for kustomize, and pods for podman.

mod bases;
mod names;
mod overlay;
mod pods;

use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase, secret};
use clap::Args;
use quorate_lab::bench::fitting_timeout_ms;
use quorate_node::{HostNames, Layout, Testnet, TestnetPlan};
use quorate_types::Weights;
use quorate_wan::Emulation;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// An overlay for a cluster, in the place of files for this machine.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(super) struct Kubernetes {
    /// Write an overlay that `kubectl apply -k DIRECTORY` runs: a StatefulSet, a Secret and a
    /// configuration for each validator and learner. With --service kv or evm all have gateways
    #[arg(long, conflicts_with = "force")]
    kubernetes: bool,
    /// Write a pod for `podman play kube` for each instead, on this machine's network
    #[arg(long, requires = "kubernetes", conflicts_with_all = ["regions", "one_node"])]
    pods: bool,
    /// Namespace of all objects, one for each committee
    #[arg(long, default_value = "quorate", value_name = "NAME", requires = "kubernetes",
          value_parser = names::namespace)]
    namespace: String,
    /// Image that the pods run, with its tag or digest
    #[arg(long, default_value = "quorate:latest", value_name = "IMAGE", requires = "kubernetes",
          value_parser = names::image)]
    image: String,
    /// Size of each data volume
    #[arg(long, default_value = "20Gi", value_name = "SIZE", requires = "kubernetes",
          value_parser = names::storage)]
    storage: String,
    /// Storage class of the volumes; by default the cluster's own
    #[arg(long, value_name = "CLASS", requires = "kubernetes", value_parser = names::name)]
    storage_class: Option<String>,
    /// Regions that validators are placed in, in turn, as the nodes' label
    /// topology.kubernetes.io/region has them. View timeouts fit the delays between AWS' regions;
    /// between others they take --timeout-ms
    #[arg(long, value_name = "REGION,...", value_delimiter = ',', requires = "kubernetes",
          value_parser = names::label)]
    regions: Vec<String>,
    /// Time until a view times out: eight round trips between the farthest validators
    #[arg(long, value_name = "MS", requires = "kubernetes")]
    timeout_ms: Option<u64>,
    /// Let validators share a node, and ask for little: to try it on one machine
    #[arg(long, requires = "kubernetes")]
    one_node: bool,
    /// Seal the members' and learners' keys under the passphrase in the first line of FILE, which
    /// becomes a Secret too
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    passphrase_file: Option<PathBuf>,
}

impl Kubernetes {
    pub(super) fn is_wanted(&self) -> bool {
        self.kubernetes
    }

    /// The plan of the same committee in a cluster.
    pub(super) fn place(
        &self,
        directory: &Path,
        plan: TestnetPlan,
    ) -> Result<TestnetPlan, Failure> {
        if !self.kubernetes {
            return Ok(plan);
        }
        let sealed = self.passphrase_file.as_deref();
        let new = |file| passphrase::new(directory, Some(file), false);
        let mut plan = TestnetPlan {
            layout: Layout::Volumes,
            passphrase: sealed.map(new).transpose()?,
            gateways: matches!(plan.service.as_str(), "kv" | "evm"),
            ..plan
        };
        plan.settings.timeout_ms = self.timeout_ms(plan.settings.timeout_ms)?;
        if !self.pods {
            refuse_port(plan.base_port)?;
            plan.name.clone_from(&self.namespace);
            plan.names = Some(HostNames {
                members: self.hosts("validator", plan.members),
                learners: self.hosts("learner", plan.learners),
            });
        }
        Ok(plan)
    }

    /// Writes what stands beside the committee's own files: the folder belongs to it already.
    pub(super) fn write(&self, testnet: &Testnet, plan: &TestnetPlan) -> CommandResult {
        let folder = &testnet.directory;
        if let Some(file) = &self.passphrase_file {
            copy_secret(file, &folder.join(Layout::PASSPHRASE))?;
        }
        if overlay::has_token(plan) {
            write_secret(&folder.join(Layout::TOKEN), &format!("{}\n", secret::new_token()))?;
        }
        let files = match self.pods {
            true => pods::files(self, folder, plan),
            false => overlay::files(self, plan),
        };
        files.into_iter().try_for_each(|(path, text)| write(&folder.join(path), &text))
    }

    fn hosts(&self, component: &str, count: usize) -> Vec<String> {
        let host = |index| format!("{component}-{index}-0.quorate.{}.svc", self.namespace);
        (0..count).map(host).collect()
    }

    fn timeout_ms(&self, default: u64) -> Result<u64, Failure> {
        if let Some(timeout_ms) = self.timeout_ms {
            return Ok(timeout_ms);
        }
        if self.regions.is_empty() {
            return Ok(default);
        }
        let network = Emulation { regions: self.regions.clone(), ..Emulation::default() };
        let network = network.topology(self.regions.len()).map_err(|error| {
            Failure::Usage(format!(
                "{error}: how far these regions are apart is not known; say --timeout-ms, eight \
                 round trips between the farthest"
            ))
        })?;
        Ok(fitting_timeout_ms(&network).max(default))
    }

    /// Warning about the first region whose loss stops the committee.
    fn warning(&self, weights: &Weights) -> Option<String> {
        let each = weights.each();
        let of = |place: usize| each.iter().skip(place).step_by(self.regions.len()).sum::<u64>();
        let regions = self.regions.iter().enumerate();
        let mut heavy = regions.map(|(place, region)| (of(place), region));
        let (weight, region) = heavy.find(|(weight, _)| *weight > weights.faulty_max())?;
        Some(format!(
            "the committee stops when {region} is lost: its validators weigh {weight} of {}, and {} \
             may fail",
            weights.total(),
            weights.faulty_max()
        ))
    }

    pub(super) fn describe(&self, testnet: &Testnet, weights: &Weights) -> String {
        let place = testnet.directory.display();
        if self.pods {
            return format!(
                "The pods run as the user 65534, whose the files have to be:\n\n  \
                 chown -R 65534:65534 {place}\n  \
                 for pod in {place}/pods/*; do podman play kube --network host $pod; done\n\n\
                 and look at them:\n\n  {} status {place}",
                output::program()
            );
        }
        let namespace = &self.namespace;
        let mut text = format!(
            "Run it, and look at a validator:\n\n  \
             kubectl apply -k {place}\n  \
             kubectl -n {namespace} get pods --watch\n  \
             kubectl -n {namespace} exec validator-0-0 -- /quorate status --http 127.0.0.1:9100\n\n\
             {place} holds all members' keys: keep it where secrets are kept, or leave each Secret \
             to its operator (docs/DEPLOYING.md)."
        );
        if let Some(warning) = self.warning(weights) {
            text.push_str(&format!("\n\nMind: {warning}."));
        }
        if !testnet.gateways.is_empty() {
            text.push_str(
                "\n\nGateways speak plain HTTP inside the namespace (NetworkPolicy), as the Service \
                 `gateway`, port 9200.",
            );
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "kubernetes": self.kubernetes,
            "pods": self.pods,
            "namespace": self.namespace,
            "image": self.image,
        })
    }
}

/// The manifests name the ports; nobody else is at a pod's address.
fn refuse_port(base_port: u16) -> CommandResult {
    let usual = TestnetPlan::default().base_port;
    if base_port == usual {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "each pod has an address of its own and listens on {usual}: leave --base-port out, which is \
         for processes and --pods"
    )))
}

/// Most members that may be away at once, whichever they are: the heaviest weigh no more than may
/// be faulty.
fn away_max(weights: &Weights) -> usize {
    let mut each = weights.each().to_vec();
    each.sort_unstable_by(|one, other| other.cmp(one));
    let mut left = weights.faulty_max();
    let fits = |weight: &&u64| {
        let rest = left.checked_sub(**weight);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    each.iter().take_while(fits).count()
}

fn write(path: &Path, text: &str) -> CommandResult {
    make_folder_of(path)?;
    let failed = |error| Failure::usage(format!("cannot write {}: {error}", path.display()));
    fs::write(path, text).map_err(failed)
}

fn copy_secret(from: &Path, to: &Path) -> CommandResult {
    let failed = |error| Failure::usage(format!("cannot read {}: {error}", from.display()));
    let text = Zeroizing::new(fs::read_to_string(from).map_err(failed)?);
    write_secret(to, &text)
}

fn write_secret(path: &Path, text: &str) -> CommandResult {
    make_folder_of(path)?;
    secret::write_new(path, text)
}

fn make_folder_of(path: &Path) -> CommandResult {
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed =
        |error| Failure::usage(format!("cannot make the folder {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)
}

#[cfg(test)]
mod tests;
