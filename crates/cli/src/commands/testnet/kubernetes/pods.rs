//! Pods for `podman play kube`, on this machine's network.

use super::Kubernetes;
use super::bases::POD;
use super::overlay::has_token;
use quorate_node::{Layout, TestnetPlan};
use std::path::{Path, PathBuf};

/// A file for each member and learner. What they mount is the folder that they were written to:
/// podman 4.3 gives files of Secrets to everybody, and a key that everybody may read is refused.
pub(super) fn files(
    options: &Kubernetes,
    folder: &Path,
    plan: &TestnetPlan,
) -> Vec<(PathBuf, String)> {
    let members = (0..plan.members).map(|index| (plan.layout.member(index), "validator"));
    let learners = (0..plan.learners).map(|index| (Layout::learner(index), "learner"));
    let mut shared = Vec::new();
    if plan.passphrase.is_some() {
        shared.push("passphrase");
    }
    if has_token(plan) {
        shared.push("gateway");
    }
    let (mounts, volumes): (String, String) =
        shared.into_iter().map(|name| (mount(name), volume(name))).unzip();
    let pods = members.chain(learners).map(|(name, component)| {
        let text = POD
            .replace("{{MOUNTS}}\n", &mounts)
            .replace("{{VOLUMES}}\n", &volumes)
            .replace("{{NAME}}", &name.display().to_string())
            .replace("{{COMPONENT}}", component)
            .replace("{{IMAGE}}", &options.image)
            .replace("{{DIRECTORY}}", &folder.display().to_string());
        (Path::new("pods").join(name).with_extension("yaml"), text)
    });
    pods.collect()
}

fn mount(name: &str) -> String {
    format!("        - {{ name: {name}, mountPath: /etc/quorate/{name}, readOnly: true }}\n")
}

fn volume(name: &str) -> String {
    format!(
        "    - name: {name}\n      \
         hostPath: {{ path: \"{{{{DIRECTORY}}}}/{name}\", type: Directory }}\n"
    )
}
