//! `quorate testnet --kubernetes`: what the overlay refers to is there, and its files run.

use crate::common::door::Door;
use crate::common::mounts::with_own_mounts;
use crate::common::{Net, edit, quorate, stderr, text, wait_for, works};
use quorate_node::NodeConfig;
use quorate_node::ports::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// All documents of a YAML file.
fn yaml(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    documents.map(|document| Value::deserialize(document).expect("YAML")).collect()
}

fn one(path: &Path) -> Value {
    let mut documents = yaml(path);
    assert_eq!(documents.len(), 1, "{path:?}");
    documents.remove(0)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Objects that a folder's kustomization comes to: those of its resources, and those that it makes.
struct Layer {
    objects: Vec<Value>,
    /// Kind and name of each that is made of files.
    made: BTreeSet<(String, String)>,
}

fn layer(folder: &Path) -> Layer {
    let kustomization = one(&folder.join("kustomization.yaml"));
    let suffix = kustomization["nameSuffix"].as_str().unwrap_or_default();
    let mut layer = Layer { objects: Vec::new(), made: BTreeSet::new() };
    for resource in list(&kustomization["resources"]) {
        let path = folder.join(string(resource));
        if path.is_file() {
            layer.objects.extend(yaml(&path));
            continue;
        }
        let below = self::layer(&path);
        layer.objects.extend(below.objects);
        layer.made.extend(below.made);
    }
    for component in list(&kustomization["components"]) {
        assert!(folder.join(string(component)).join("kustomization.yaml").exists());
    }
    for (kind, generator) in [("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")] {
        for made in list(&kustomization[generator]) {
            for file in list(&made["files"]) {
                assert!(folder.join(string(file)).is_file(), "{folder:?}: {file}");
            }
            let name = format!("{}{suffix}", string(&made["name"]));
            assert!(layer.made.insert((kind.to_owned(), name)), "twice: {made}");
        }
    }
    layer
}

/// What a pod mounts from objects: kind, name, and whether it may be absent.
fn mounted(pod: &Value) -> Vec<(&'static str, &str, bool)> {
    let volumes = list(&pod["volumes"]).iter();
    let named = volumes.filter_map(|volume| {
        let (map, secret) = (&volume["configMap"], &volume["secret"]);
        match (map["name"].as_str(), secret["secretName"].as_str()) {
            (Some(name), _) => Some(("ConfigMap", name, map["optional"] == true)),
            (_, Some(name)) => Some(("Secret", name, secret["optional"] == true)),
            _ => None,
        }
    });
    named.collect()
}

fn overlay(place: &Path, more: &[&str]) -> PathBuf {
    let folder = place.join("net");
    works(&[&["testnet", "--kubernetes", text(&folder)], more].concat());
    folder
}

#[test]
fn every_object_and_volume_that_is_referred_to_is_there() {
    let place = tempfile::tempdir().unwrap();
    let passphrase = place.path().join("words");
    fs::write(&passphrase, "open sesame\n").unwrap();
    fs::set_permissions(&passphrase, fs::Permissions::from_mode(0o600)).unwrap();
    let options = ["--learners", "1", "--service", "kv", "--clients", "listed", "--one-node"];
    let sealed = ["--passphrase-file", text(&passphrase)];
    let folder = overlay(place.path(), &[&options[..], &sealed].concat());
    let whole = layer(&folder);
    let made = |kind: &str, name: &str| whole.made.contains(&(kind.to_owned(), name.to_owned()));
    for name in ["passphrase", "gateway", "client", "validator-key-3", "learner-key-0"] {
        assert!(made("Secret", name), "{name}: {:?}", whole.made);
    }
    let sets = whole.objects.iter().filter(|object| object["kind"] == "StatefulSet");
    assert_eq!(sets.count(), 5);
    for (index, component) in (0..4).map(|index| (index, "validator")).chain([(0, "learner")]) {
        let own = layer(&folder.join(format!("{component}-{index}")));
        let set = &own.objects[0]["spec"];
        let pod = &set["template"]["spec"];
        for (kind, name, is_optional) in mounted(pod) {
            // What the base calls by its own name is this member's, under its suffix.
            let name = name.replace("validator-", &format!("{component}-"));
            let own_name = format!("{name}-{index}");
            let is_there = made(kind, &name) || own.made.contains(&(kind.to_owned(), own_name));
            assert!(is_there || is_optional, "{kind} {name} of {component}-{index}");
        }
        let volumes = list(&pod["volumes"]).iter().map(|volume| string(&volume["name"]));
        let claims = list(&set["volumeClaimTemplates"]).iter();
        let volumes: BTreeSet<&str> =
            volumes.chain(claims.map(|claim| string(&claim["metadata"]["name"]))).collect();
        let mounts = list(&pod["containers"][0]["volumeMounts"]).iter();
        let mounts: BTreeSet<&str> = mounts.map(|mount| string(&mount["name"])).collect();
        assert_eq!(mounts, volumes, "what is mounted, and what there is to mount");
    }
    let accounts = whole.objects.iter().filter(|object| object["kind"] == "ServiceAccount");
    let accounts: Vec<_> = accounts.map(|account| string(&account["metadata"]["name"])).collect();
    assert_eq!(accounts, ["quorate"]);
}

/// The configurations as pods read them, but for the folders that volumes are mounted at.
#[test]
fn the_configurations_are_accepted() {
    let place = tempfile::tempdir().unwrap();
    let folder = overlay(place.path(), &["--learners", "1", "--service", "evm", "-n", "7"]);
    let names = (0..7).map(|index| format!("validator-{index}")).chain(["learner-0".to_owned()]);
    let configs: Vec<PathBuf> =
        names.map(|name| folder.join(name).join("config/config.toml")).collect();
    let base = free_ports(3).unwrap();
    for (index, config) in configs.iter().enumerate() {
        mount_at(config, &place.path().join(format!("volumes-{index}")));
        // Another program may be at the ports that are a pod's own.
        for (offset, port) in [(0, 7_000), (1, 9_100), (2, 9_200)] {
            edit(config, &format!("0.0.0.0:{port}"), &format!("0.0.0.0:{}", base + offset));
        }
        let output = quorate(&["config", "check", "--json", text(config)]);
        let checked: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(checked["errors"], 0, "{checked}");
    }
    let committee = fs::read_to_string(folder.join("committee/committee.toml")).unwrap();
    assert!(committee.contains("address = \"validator-6-0.quorate.quorate.svc:7000\""));
}

#[test]
fn secrets_are_their_owners_and_nothing_is_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let folder = overlay(place.path(), &["--service", "kv"]);
    for file in ["validator-0/secret/key.toml", "validator-3/secret/key.toml", "gateway/token"] {
        let mode = fs::metadata(folder.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let before = fs::read(folder.join("validator-0/secret/key.toml")).unwrap();
    let again = quorate(&["testnet", "--kubernetes", text(&folder)]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("is not empty"), "{}", stderr(&again));
    assert_eq!(fs::read(folder.join("validator-0/secret/key.toml")).unwrap(), before);
}

#[test]
fn sizes_regions_and_budgets_are_written_for_this_committee() {
    let place = tempfile::tempdir().unwrap();
    let regions = ["--regions", "eu-west-1,us-east-1,ap-northeast-1", "-n", "10"];
    let more = ["--storage", "5Gi", "--image", "registry:5000/quorate:v1", "--namespace", "settle"];
    let folder = overlay(place.path(), &[&regions[..], &more].concat());
    let all = one(&folder.join("kustomization.yaml"));
    let patches = list(&all["patches"]);
    assert!(string(&patches[0]["patch"]).contains("/spec/minAvailable, value: 7 "));
    assert!(string(&patches[1]["patch"]).contains("value: 5Gi "));
    assert_eq!(all["images"][0]["newName"], "registry:5000/quorate");
    assert_eq!(all["images"][0]["newTag"], "v1");
    assert_eq!(all["namespace"], "settle");
    let fourth = fs::read_to_string(folder.join("validator-4/kustomization.yaml")).unwrap();
    assert!(fourth.contains("values: [\"us-east-1\"]"), "{fourth}");
    let config = fs::read_to_string(folder.join("validator-4/config/config.toml")).unwrap();
    let timeout = config.lines().find(|line| line.starts_with("timeout_ms = ")).expect("a timeout");
    assert!(timeout > "timeout_ms = 1000", "eight round trips to Tokyo: {timeout}");
    let narrow = place.path().join("narrow");
    let narrow = ["testnet", "--kubernetes", text(&narrow), "--regions", "eu-west-1,us-east-1"];
    let said = works(&narrow);
    assert!(said.contains("stops when eu-west-1 is lost: its validators weigh 2 of 4, and 1 may"));
    let unknown = quorate(&["testnet", "--kubernetes", "nowhere", "--regions", "moon-1"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("say --timeout-ms"), "{}", stderr(&unknown));
}

/// The pods of podman mount and run what those of Kubernetes do.
#[test]
fn pods_for_podman_run_the_same_container() {
    let place = tempfile::tempdir().unwrap();
    let folder = overlay(place.path(), &["--pods", "--learners", "1", "--service", "kv"]);
    let names = (0..4).map(|index| format!("validator-{index}")).chain(["learner-0".to_owned()]);
    let pods = names.map(|name| one(&folder.join("pods").join(name).with_extension("yaml")));
    let base = one(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/kubernetes/base/validator/stateful-set.yaml"
    )));
    let base = &base["spec"]["template"]["spec"]["containers"][0];
    for pod in pods {
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["args"], base["args"]);
        assert_eq!(container["securityContext"], base["securityContext"]);
        for mount in list(&container["volumeMounts"]) {
            assert!(list(&base["volumeMounts"]).contains(mount), "{mount}");
        }
        for volume in list(&pod["spec"]["volumes"]) {
            let Some(path) = volume["hostPath"]["path"].as_str() else { continue };
            assert!(Path::new(path).is_dir(), "{path}");
        }
    }
}

/// Pods change their addresses. What is written for pods runs as processes in a file system of
/// their own, where the members' names first lead nowhere.
#[test]
fn members_find_each_other_when_names_get_other_addresses() {
    with_own_mounts("kubernetes::members_find_each_other_when_names_get_other_addresses", || {
        let place = tempfile::tempdir().unwrap();
        let hosts = place.path().join("hosts");
        let lead = |to: &str| {
            let names = (0..4).map(|index| format!("{to} validator-{index}.test\n"));
            fs::write(&hosts, names.collect::<String>()).unwrap();
        };
        // An address of documents, which is nobody's.
        lead("192.0.2.1");
        let bound = Command::new("mount").arg("--bind").arg(&hosts).arg("/etc/hosts").status();
        assert!(bound.unwrap().success());
        let net = Net::start_with(4, "ed25519", &["--kubernetes", "--pods"], |configs| {
            name_members(configs, place.path());
        });
        wait_for("all to be alone", || {
            let looks = net.wait_looks();
            looks.iter().all(|look| look.peers_connected == 0).then_some(())
        });
        lead("127.0.0.1");
        net.wait_connected();
        let notes = place.path().join("volumes-0/notes");
        assert!(notes.join("key.used").exists() && notes.join("key.guard").exists());
        let secret = net.folder().join("validator-0/secret");
        assert_eq!(fs::read_dir(secret).unwrap().count(), 1, "nothing beside the key");
    });
}

/// What ends with 4 would be started again by a cluster.
#[test]
fn a_validator_that_must_not_be_started_again_is_held() {
    let place = tempfile::tempdir().unwrap();
    let folder = overlay(place.path(), &["--pods", "--base-port", &base_port()]);
    let config = folder.join("validator-0/config/config.toml");
    mount_at(&config, place.path());
    // Where the note of the key belongs is something that cannot be read as one.
    fs::create_dir(place.path().join("notes/key.used")).unwrap();
    let run = ["run", "--config", text(&config)];
    let ended = quorate(&run);
    assert_eq!(ended.status.code(), Some(4), "{}", stderr(&ended));

    let address = NodeConfig::load(&config).unwrap().http;
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    let mut held = command.args(run).arg("--hold").stderr(Stdio::null()).spawn().unwrap();
    wait_for("it to be held", || TcpStream::connect(&address).ok());
    let door = Door { address, token: None };
    let alive = door.ask("GET", "/healthz", "");
    assert_eq!((alive.status, alive.text().as_str()), (200, "held\n"));
    let said = door.ask("GET", "/readyz", "").json(503);
    assert_eq!(said["ready"], false);
    assert!(string(&said["reasons"][0]).contains("key.used"), "{said}");

    let pid = Pid::from_child(&held);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(held.wait().unwrap().code(), Some(4));
}

fn base_port() -> String {
    free_ports(8).unwrap().to_string()
}

/// Has a configuration name these folders in the place of those that volumes are mounted at.
fn mount_at(config: &Path, volumes: &Path) {
    for volume in ["data", "notes"] {
        let folder = volumes.join(volume);
        fs::create_dir_all(&folder).unwrap();
        edit(config, &format!("/var/lib/quorate/{volume}"), text(&folder));
    }
}

/// Gives members names in the committee file and addresses of all interfaces, as pods have them.
fn name_members(configs: &[PathBuf], place: &Path) {
    let folder = configs[0].ancestors().nth(3).expect("the testnet's folder");
    let committee = folder.join("committee/committee.toml");
    let mut written = fs::read_to_string(&committee).unwrap();
    for (index, config) in configs.iter().enumerate() {
        let volumes = place.join(format!("volumes-{index}"));
        mount_at(config, &volumes);
        let at = written.find("\"127.0.0.1:").expect("an address");
        let end = at + 1 + written[at + 1..].find('"').expect("its end");
        let port = written[at + 1..end].rsplit_once(':').expect("a port").1.to_owned();
        written.replace_range(at + 1..end, &format!("validator-{index}.test:{port}"));
        edit(config, "\nhttp =", &format!("\nlisten = \"0.0.0.0:{port}\"\n\nhttp ="));
    }
    fs::write(committee, written).unwrap();
}

#[test]
fn what_a_cluster_would_refuse_is_refused() {
    for (option, value, reason) in [
        ("--namespace", "Settle_ment", "lowercase letters, digits and hyphens"),
        ("--storage", "20 GB", "as in 20Gi"),
        ("--image", "quorate latest", "letters, digits and"),
        ("--base-port", "8000", "leave --base-port out"),
    ] {
        let output = quorate(&["testnet", "--kubernetes", "nowhere", option, value]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
    assert!(!Path::new("nowhere").exists());
}
