use super::*;
use quorate_engine::SyncStatus;

const SECOND: Duration = Duration::from_secs(1);
const OTHERS: [ReplicaId; 3] = [ReplicaId(1), ReplicaId(2), ReplicaId(3)];

/// Validator 0 of four, or with other weights, in time that the test makes.
struct Watch {
    observer: Observer,
    now: Instant,
    status: Status,
    /// Others that are heard.
    heard: Vec<ReplicaId>,
    last_heard: Vec<Option<Instant>>,
}

impl Watch {
    fn new(id: u16, weights: &Weights, should_sign: bool) -> Self {
        let now = Instant::now();
        let observer = Observer::new(weights, ReplicaId(id), should_sign, SECOND, now);
        let status = Status { signs: should_sign, ..Status::default() };
        let (heard, last_heard) = (OTHERS.to_vec(), vec![None; 4]);
        Self { observer, now, status, heard, last_heard }
    }

    fn member() -> Self {
        Self::new(0, &Weights::equal(4), true)
    }

    fn look(&mut self) -> Health {
        for member in &self.heard {
            self.last_heard[member.index()] = Some(self.now);
        }
        let silence =
            |member: ReplicaId| Some(self.now.duration_since(self.last_heard[member.index()]?));
        let silences = OTHERS.map(|member| (member, silence(member))).into();
        let status = Arc::new(self.status.clone());
        self.observer.look(&Seen { now: self.now, status, silences })
    }

    /// Looks once a second for so long; the last look.
    fn watch(&mut self, seconds: u32) -> Health {
        (0..seconds).for_each(|_| {
            self.look();
            self.now += SECOND;
        });
        self.look()
    }
}

#[test]
fn a_validator_is_ready_once_it_hears_a_quorum() {
    let mut watch = Watch::member();
    watch.heard = vec![OTHERS[0]];
    let health = watch.look();
    assert_eq!(health.reasons(), ["starting: heard 2 of 4, 3 needed"]);
    watch.heard.push(OTHERS[2]);
    let health = watch.look();
    assert!(health.is_ready() && health.has_quorum(), "{health:?}");
}

#[test]
fn whoever_is_not_heard_for_seconds_is_silent() {
    let mut watch = Watch::member();
    watch.watch(10);
    watch.heard = vec![OTHERS[0], OTHERS[1]];
    assert_eq!(watch.watch(4).silent, []);
    let health = watch.watch(1);
    assert_eq!(health.silent, [OTHERS[2]]);
    assert!(health.is_ready(), "three of four are a quorum");
    watch.heard = OTHERS.to_vec();
    assert_eq!(watch.watch(1).silent, []);
}

#[test]
fn without_a_quorum_it_is_not_ready_and_says_who_is_silent() {
    let mut watch = Watch::member();
    watch.watch(10);
    watch.heard = vec![OTHERS[0]];
    let health = watch.watch(6);
    assert_eq!(health.reasons(), ["no quorum: heard 2 of 4, 3 needed; silent: r2, r3"]);
    watch.heard = OTHERS.to_vec();
    assert!(watch.watch(1).is_ready());
}

#[test]
fn a_quorum_is_of_weight() {
    let weights = Weights::new(vec![4, 1, 1, 1]).expect("sound");
    let mut watch = Watch::new(0, &weights, true);
    watch.heard = vec![OTHERS[0]];
    let health = watch.watch(10);
    let quorum = weights.quorum();
    let said = format!("heard 2 of 4, which weigh 5, {quorum} needed; silent: r2, r3");
    assert_eq!((health.to_string(), health.has_quorum()), (said, 5 >= quorum));
}

#[test]
fn work_without_a_decision_is_a_stall() {
    let mut watch = Watch::member();
    watch.watch(10);
    watch.status.working = true;
    assert!(watch.watch(3).is_ready(), "fewer than four timeouts");
    let health = watch.watch(2);
    assert!(health.is_stalled());
    assert_eq!(health.reasons(), ["stalled: nothing decided for 5 s, though work waits"]);
    watch.status.decided = Height(1);
    assert!(watch.watch(1).is_ready());
    watch.status.working = false;
    assert!(watch.watch(60).is_ready(), "an idle committee decides nothing");
}

#[test]
fn catching_up_is_named_once_it_lasts() {
    let mut watch = Watch::member();
    watch.watch(10);
    watch.status.syncing = true;
    let (from, to) = (Height(7), Height(90));
    watch.status.sync = SyncStatus { from, to, why: "blocks after h7".to_owned() };
    assert!(watch.watch(1).is_ready());
    let reasons = watch.watch(1).reasons();
    assert_eq!(reasons, ["catching up: from h7 to h90, waits for blocks after h7"]);
    watch.status.syncing = false;
    assert!(watch.look().is_ready());
}

#[test]
fn a_member_that_should_sign_and_may_not_is_not_ready() {
    let mut watch = Watch::member();
    watch.status.signs = false;
    assert_eq!(watch.look().reasons(), ["not signing: its log is gone"]);
    let mut follower = Watch::new(0, &Weights::equal(4), false);
    assert!(follower.look().is_ready(), "it was told to follow only");
}

#[test]
fn another_state_is_a_reason() {
    let mut watch = Watch::member();
    watch.status.diverged = Some(Height(8));
    let said = ["diverged: its state is not the committee's from h8 on"];
    assert_eq!(watch.look().reasons(), said);
}

/// Its own pause is not the others' silence, but who was silent before it still is.
#[test]
fn whoever_stood_still_does_not_blame_the_others() {
    let mut watch = Watch::member();
    watch.heard = vec![OTHERS[0], OTHERS[1]];
    watch.status.working = true;
    watch.watch(3);
    watch.status.decided = Height(1);
    watch.watch(7);
    watch.status.decided = Height(2);
    assert_eq!(watch.look().silent, [OTHERS[2]]);
    watch.heard.clear();
    watch.now += Duration::from_secs(60);
    let health = watch.look();
    assert_eq!((&health.silent[..], health.is_ready()), (&[OTHERS[2]][..], true));
    watch.status.working = false;
    assert_eq!(watch.watch(10).silent, OTHERS);
}

#[test]
fn a_learner_is_judged_by_its_state_alone() {
    let mut learner = Watch::new(4, &Weights::equal(4), false);
    learner.heard.clear();
    learner.status.working = false;
    let health = learner.watch(20);
    assert!(health.is_ready() && health.silent.is_empty(), "{health:?}");
}
