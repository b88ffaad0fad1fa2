//! Ends of epochs that clients call over, each with a member that is killed.

use super::common::operators::Operators;
use super::common::{Net, json, processes, quorate, stdout, text, wait_for};
use quorate_deterministic::Rng;
use quorate_lab::processes::Processes;
use quorate_node::NodeConfig;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;

/// Moment at which a member is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// Before members have the change. It comes back when the others are in the next epoch.
    Before,
    /// As soon as members have it. It comes back at once.
    Submitted,
    /// When one of the others is in the next epoch. It comes back at once.
    Entered,
}

/// The member whose place the learner takes. It is never killed.
const REPLACED: usize = 2;

/// The newcomer's process, which is a member afterwards.
pub(crate) struct Newcomer(#[allow(dead_code, reason = "ended when it is dropped")] Processes);

/// Ends three epochs under way: another protocol, the learner in a member's place, and other
/// voting keys of another scheme with a third protocol. Returns the learner's process.
pub(crate) fn cross(net: &mut Net, seed: u64) -> Newcomer {
    let mut operators = Operators::of(net.folder(), &net.configs);
    let mut rng = Rng::new(seed, "borders", 0);
    let learner = net.learners[0].config.clone();
    let newcomer = Newcomer(processes(std::slice::from_ref(&learner)));
    let http = NodeConfig::load(&learner).expect("a configuration").http;

    let calm = |rng: &mut Rng| sleep(rng.span(&(500_000..=1_500_000)));
    let to_hotstuff = |_: &Net, operators: &mut Operators| {
        operators.change(&["--protocol", "hotstuff"], &[]);
    };
    cross_one(net, &mut operators, Moment::Submitted, &mut rng, to_hotstuff);
    calm(&mut rng);
    cross_one(net, &mut operators, Moment::Entered, &mut rng, |net, operators| {
        replace(net, operators, &learner);
    });
    net.http[REPLACED] = http;
    net.configs[REPLACED] = learner;
    calm(&mut rng);
    cross_one(net, &mut operators, Moment::Before, &mut rng, rotate_all);
    calm(&mut rng);
    newcomer
}

fn cross_one(
    net: &mut Net,
    operators: &mut Operators,
    moment: Moment,
    rng: &mut Rng,
    change: impl FnOnce(&Net, &mut Operators),
) {
    let choices = [0, 1, 3];
    let victim = choices[rng.index(choices.len())];
    if moment == Moment::Before {
        net.processes.kill(victim).expect("killed");
    }
    change(net, operators);
    let epoch = operators.epoch();
    if moment == Moment::Entered {
        wait_for("one of the others to enter", || {
            entered(net, epoch).iter().any(|member| *member != victim).then_some(())
        });
    }
    if moment == Moment::Before {
        wait_for("the others to enter", || (entered(net, epoch).len() == 3).then_some(()));
    } else {
        net.processes.kill(victim).expect("killed");
    }
    net.processes.start_one(victim).expect("started again");
    println!("epoch {epoch}: member {victim} was killed, {moment:?}");
    let everybody = |net: &Net| (entered(net, epoch).len() == net.http.len()).then_some(());
    wait_for("all to enter", || everybody(net));
}

/// Members that serve this epoch.
fn entered(net: &Net, epoch: u64) -> Vec<usize> {
    let looks = net.looks().into_iter().enumerate();
    let there = looks.filter(|(_, look)| look.as_ref().is_some_and(|it| it.config.epoch == epoch));
    there.map(|(member, _)| member).collect()
}

/// A key's entry in a committee file, in a file.
fn entry(net: &Net, key: &Path) -> PathBuf {
    let folder = key.parent().expect("a folder").file_name().expect("a name");
    let entry = net.folder().join(folder).with_extension("entry.toml");
    fs::write(&entry, stdout(&quorate(&["keys", "show", text(key)]))).expect("written");
    entry
}

fn replace(net: &Net, operators: &mut Operators, learner: &Path) {
    let key = learner.with_file_name("key.toml");
    let replaced = format!("{REPLACED}={}", text(&entry(net, &key)));
    let listen = NodeConfig::load(learner).expect("a configuration").listen.expect("an address");
    let address = format!("{REPLACED}={listen}");
    let options = ["--replace", &replaced, "--address", &address];
    operators.change(&options, &[(REPLACED, &key)]);
}

fn rotate_all(net: &Net, operators: &mut Operators) {
    let rotate = |(member, config): (usize, &PathBuf)| {
        let key = config.with_file_name("key.toml");
        let next = key.with_extension("next.toml");
        let scheme = ["--scheme", "bls", "--json"];
        json(&[&["keys", "generate", text(&next), "--identity", text(&key)], &scheme[..]].concat());
        (format!("--replace={member}={}", text(&entry(net, &next))), next)
    };
    let (options, keys): (Vec<_>, Vec<_>) = net.configs.iter().enumerate().map(rotate).unzip();
    let mut arguments = vec!["--scheme", "bls", "--protocol", "sbft"];
    arguments.extend(options.iter().map(String::as_str));
    let newcomers: Vec<_> = keys.iter().map(PathBuf::as_path).enumerate().collect();
    operators.change(&arguments, &newcomers);
}
