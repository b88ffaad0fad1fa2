//! The kustomizations of an overlay: one for all, one for each member, and the bases beside them.

use super::bases::BASES;
use super::names::split_image;
use super::{Kubernetes, away_max};
use quorate_node::{ClientPolicy, Layout, TestnetPlan};
use quorate_types::Weights;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const KIND: &str = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";

/// A change of the committee file reaches members when they are started again, one after the
/// other, and not by another name of the object.
const SAME_NAMES: &str = "generatorOptions: { disableNameSuffixHash: true }\n";

/// Path and content of each file.
pub(super) fn files(options: &Kubernetes, plan: &TestnetPlan) -> Vec<(PathBuf, String)> {
    let mut files: Vec<(PathBuf, String)> =
        BASES.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
    let mut add = |path: &Path, text| files.push((path.join("kustomization.yaml"), text));
    add(Path::new(""), all(options, plan));
    add(Path::new("committee"), committee(plan));
    for index in 0..plan.members {
        let region = options.regions.get(index % options.regions.len().max(1));
        add(&plan.layout.member(index), one("validator", index, plan, region));
    }
    for index in 0..plan.learners {
        add(&Layout::learner(index), one("learner", index, plan, None));
    }
    for secret in secrets(plan) {
        let (name, file) = secret.split_once('/').expect("a folder and a file");
        add(Path::new(name), secret_of(name, file));
    }
    files.push(("namespace.yaml".into(), namespace(&options.namespace)));
    files
}

/// Files of secrets that all share, each in a folder of its own.
fn secrets(plan: &TestnetPlan) -> Vec<&'static str> {
    let wanted = [
        (plan.passphrase.is_some(), Layout::PASSPHRASE),
        (has_token(plan), Layout::TOKEN),
        (plan.clients == ClientPolicy::Listed, "client/key.toml"),
    ];
    wanted.into_iter().filter_map(|(is_wanted, file)| is_wanted.then_some(file)).collect()
}

/// Whether callers of the gateways show a token.
pub(super) fn has_token(plan: &TestnetPlan) -> bool {
    plan.gateways && plan.service == "kv"
}

fn all(options: &Kubernetes, plan: &TestnetPlan) -> String {
    let mut text = format!(
        "# A committee of {n}, written by `quorate testnet --kubernetes`: kubectl apply -k .\n\
         # It restarts nobody: packaging/kubernetes/roll does, one member after the other.\n\
         {KIND}namespace: \"{namespace}\"\nresources:\n  - namespace.yaml\n  - committee\n",
        n = plan.members,
        namespace = options.namespace,
    );
    let members = (0..plan.members).map(|index| plan.layout.member(index));
    let learners = (0..plan.learners).map(Layout::learner);
    for folder in members.chain(learners) {
        writeln!(text, "  - {}", folder.display()).expect("memory");
    }
    for secret in secrets(plan) {
        let folder = Path::new(secret).parent().expect("a folder and a file");
        writeln!(text, "  - {}", folder.display()).expect("memory");
    }
    if plan.gateways {
        text.push_str("  - base/gateway\n");
    }
    if options.one_node {
        text.push_str("components:\n  - components/one-node\n");
    }
    text.push_str(&images(&options.image));
    text.push_str(&patches(options, plan));
    text
}

fn images(image: &str) -> String {
    let (name, tag, digest) = split_image(image);
    let mut text = format!("images:\n  - name: quorate\n    newName: \"{name}\"\n");
    if let Some(tag) = tag.filter(|_| digest.is_none()) {
        writeln!(text, "    newTag: \"{tag}\"").expect("memory");
    }
    if let Some(digest) = digest {
        writeln!(text, "    digest: \"{digest}\"").expect("memory");
    }
    text
}

fn patches(options: &Kubernetes, plan: &TestnetPlan) -> String {
    let weights = plan.weights.clone().unwrap_or_else(|| Weights::equal(plan.members));
    let weights = weights.clone().with_redundancy(plan.redundancy).unwrap_or(weights);
    let stay = plan.members - away_max(&weights);
    let claims = "/spec/volumeClaimTemplates";
    let mut text = format!(
        "patches:\n  # The members that a drain of nodes leaves: {away} of {n} may be away at once.\n  \
         - target: {{ kind: PodDisruptionBudget }}\n    patch: |-\n      \
         - {{ op: replace, path: /spec/minAvailable, value: {stay} }}\n  \
         - target: {{ kind: StatefulSet }}\n    patch: |-\n      \
         - {{ op: replace, path: {claims}/0/spec/resources/requests/storage, value: {size} }}\n",
        away = plan.members - stay,
        n = plan.members,
        size = options.storage,
    );
    for claim in [0, 1] {
        let Some(class) = &options.storage_class else { continue };
        writeln!(
            text,
            "      - {{ op: add, path: {claims}/{claim}/spec/storageClassName, value: \"{class}\" }}"
        )
        .expect("memory");
    }
    text
}

fn committee(plan: &TestnetPlan) -> String {
    let genesis = if plan.genesis.is_some() { ", genesis.json" } else { "" };
    format!(
        "{KIND}resources:\n  - ../base/committee\nconfigMapGenerator:\n  - name: committee\n    \
         files: [committee.toml{genesis}]\n{SAME_NAMES}"
    )
}

fn one(component: &str, index: usize, plan: &TestnetPlan, region: Option<&String>) -> String {
    let is_listed = plan.clients == ClientPolicy::Listed;
    let clients = if is_listed { ", config/clients.toml" } else { "" };
    let mut text = format!(
        "{KIND}nameSuffix: \"-{index}\"\nresources:\n  - ../base/{component}\nlabels:\n  \
         - pairs: {{ quorate/member: {component}-{index} }}\n    includeSelectors: true\n\
         configMapGenerator:\n  - name: {component}-config\n    \
         files: [config/config.toml{clients}]\n\
         secretGenerator:\n  - name: {component}-key\n    files: [secret/key.toml]\n{SAME_NAMES}"
    );
    if let Some(region) = region {
        text.push_str(&placement(region));
    }
    text
}

fn placement(region: &str) -> String {
    format!(
        "patches:\n  - target: {{ kind: StatefulSet }}\n    patch: |-\n      - op: add\n        \
         path: /spec/template/spec/affinity/nodeAffinity\n        value:\n          \
         requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms:\n              \
         - matchExpressions:\n                  \
         - {{ key: topology.kubernetes.io/region, operator: In, values: [\"{region}\"] }}\n"
    )
}

fn secret_of(name: &str, file: &str) -> String {
    format!("{KIND}secretGenerator:\n  - name: {name}\n    files: [{file}]\n{SAME_NAMES}")
}

fn namespace(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: \"{name}\"\n  labels:\n    \
         pod-security.kubernetes.io/enforce: restricted\n"
    )
}
