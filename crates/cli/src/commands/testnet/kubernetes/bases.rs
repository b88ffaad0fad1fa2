//! The manifests of packaging/kubernetes that an overlay stands on, as files beside it.

macro_rules! base {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../../../../packaging/kubernetes/", $path)))
    };
}

/// Path in the overlay and content of each file.
pub(super) const BASES: &[(&str, &str)] = &[
    base!("base/committee/kustomization.yaml"),
    base!("base/committee/service.yaml"),
    base!("base/committee/service-account.yaml"),
    base!("base/committee/disruption-budget.yaml"),
    base!("base/committee/network-policy.yaml"),
    base!("base/validator/kustomization.yaml"),
    base!("base/validator/stateful-set.yaml"),
    base!("base/learner/kustomization.yaml"),
    base!("base/gateway/kustomization.yaml"),
    base!("base/gateway/service.yaml"),
    base!("components/one-node/kustomization.yaml"),
    base!("components/load-balancer/kustomization.yaml"),
    base!("components/load-balancer/service.yaml"),
];

/// A pod for `podman play kube`, with names in double braces to be filled in.
pub(super) const POD: &str =
    include_str!("../../../../../../packaging/kubernetes/podman/member.yaml");
