//! The rules of the ceremony, one by one, on steps that real members make.

use super::*;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{
    Bitmap, Envelope, IdentitySecret, KeyCache, KeyError, KeyFile, Policy, SchemeKind, Sharing,
    VotingSecret, contribute,
};
use quorate_types::{AgreedSettings, Committee, CommitteeFile, Epoch, Member, NetworkId, Purpose};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A committee, the plan of its first generation, and its members.
struct World {
    generators: CommitteeFile,
    plan: Arc<Plan>,
    members: Vec<Participant>,
}

fn identity(member: usize) -> IdentitySecret {
    keys(member).identity
}

fn keys(member: usize) -> KeyFile {
    KeyFile::from_seed(SchemeKind::Ed25519, &[u8::try_from(member).expect("few") + 1; 32])
}

fn founding(members: usize) -> CommitteeFile {
    let member = |index| Member::new(&keys(index).public(), format!("127.0.0.1:{}", 7_000 + index));
    CommitteeFile {
        name: "founders".into(),
        network: None,
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (0..members).map(member).collect(),
    }
}

/// The same members in the file of the second epoch of this network.
fn next_epoch(members: usize, network: u8) -> CommitteeFile {
    let network = Some(NetworkId([network; 32]));
    CommitteeFile { network, epoch: Epoch(2), ..founding(members) }
}

impl World {
    fn new(members: usize) -> Self {
        Self::of(founding(members))
    }

    fn of(generators: CommitteeFile) -> Self {
        let members = generators.members.len();
        let plan = Plan::new(&ceremony_committee(&generators, "1")).expect("equal members");
        let plan = Arc::new(plan);
        let participant = |member| {
            let seed = Zeroizing::new([0x40 + u8::try_from(member).expect("few"); 32]);
            Participant::new(Arc::clone(&plan), identity(member), seed).expect("a member")
        };
        let members = (0..members).map(participant).collect();
        Self { generators, plan, members }
    }

    fn ceremony(&self) -> Ceremony {
        Ceremony::new(Arc::clone(&self.plan))
    }

    /// Does what `member` has to do now.
    fn play(&self, ceremony: &mut Ceremony, member: usize) {
        if let Some(step) = self.members[member].next_step(ceremony) {
            self.say(ceremony, member, &step).expect("an honest step is taken");
        }
    }

    /// All of these do what they have to do in the present phase.
    fn play_all(&self, ceremony: &mut Ceremony, members: &[usize]) {
        let phase = ceremony.phase();
        for member in members {
            if ceremony.phase() == phase {
                self.play(ceremony, *member);
            }
        }
    }

    fn say(&self, ceremony: &mut Ceremony, member: usize, step: &Step) -> Result<(), Refusal> {
        ceremony.apply(&self.members[member].sign(step))
    }

    fn close(&self, ceremony: &mut Ceremony, members: &[usize]) {
        let phase = ceremony.phase();
        for member in members {
            self.say(ceremony, *member, &Step::Close(phase)).expect("it did its part");
        }
    }

    /// All phases up to this one, with everybody there.
    fn until(&self, phase: Phase) -> Ceremony {
        let mut ceremony = self.ceremony();
        let all: Vec<usize> = (0..self.members.len()).collect();
        while ceremony.phase() < phase {
            self.play_all(&mut ceremony, &all);
        }
        ceremony
    }

    fn deal_of(&self, ceremony: &Ceremony, member: usize) -> Deal {
        match self.members[member].next_step(ceremony) {
            Some(Step::Deal(deal)) => *deal,
            other => panic!("{other:?} is no deal"),
        }
    }

    /// Everybody has dealt, this dealer badly: its envelope for `victim` holds shares of another
    /// seed.
    fn with_a_bad_share(&self, dealer: usize, victim: usize) -> Ceremony {
        let mut ceremony = self.until(Phase::Dealing);
        let mut deal = self.deal_of(&ceremony, dealer);
        let context = self.plan.dealer_context(dealer);
        let other = contribute(self.plan.members(), &self.plan.thresholds, &[0xee; 32], &context);
        let share = other.expect("the plan's sizes").shares[victim].to_bytes();
        let key = ceremony.key_of(index(victim)).expect("it joined");
        let context = self.plan.envelope_context(dealer, victim);
        let envelope = key.seal(&[0xee; 32], &context, &share).expect("a key");
        for (member, sealed) in &mut deal.envelopes {
            if *member == index(victim) {
                *sealed = envelope.clone();
            }
        }
        self.say(&mut ceremony, dealer, &Step::Deal(Box::new(deal))).expect("nothing shows");
        self.play_all(&mut ceremony, &self.all());
        ceremony
    }

    fn all(&self) -> Vec<usize> {
        (0..self.members.len()).collect()
    }

    /// Loads the committee that came of it, and has every threshold of these members sign for it.
    fn check_keys(&self, ceremony: &Ceremony, holders: &[usize]) {
        let generated = result(ceremony);
        let file = generated.committee(&self.generators);
        let committee = Committee::load(&file, KeyCache::On).expect("the loader's checks");
        let secrets: Vec<(usize, VotingSecret)> = holders
            .iter()
            .map(|member| (*member, self.members[*member].keys(ceremony).expect("its keys")))
            .collect();
        for (member, secret) in &secrets {
            assert_eq!(secret.public().to_string(), file.members[*member].voting);
        }
        for purpose in [Purpose::Fast, Purpose::Vote, Purpose::Execute] {
            let (scheme, needed) = committee.scheme(purpose);
            let needed = usize::try_from(needed).expect("few");
            for signers in secrets.windows(needed) {
                let shares: Vec<_> = signers
                    .iter()
                    .map(|(member, secret)| (*member, committee.sign(purpose, secret, b"it")))
                    .collect();
                let nobody = Bitmap::new(committee.size());
                let made = scheme.combine(b"it", &shares, &nobody, Policy::Aggregate);
                let certificate = made.certificate.expect("as many as the threshold");
                scheme.verify(b"it", &certificate).expect("the group's signature");
            }
        }
    }
}

fn index(member: usize) -> u16 {
    u16::try_from(member).expect("few")
}

fn result(ceremony: &Ceremony) -> Arc<Generated> {
    match ceremony.result() {
        Some(Ok(generated)) => Arc::clone(generated),
        other => panic!("{other:?} are no keys"),
    }
}

#[test]
fn members_who_all_do_their_part_have_keys_that_sign() {
    for members in [1, 2, 4, 7] {
        let world = World::new(members);
        let ceremony = world.until(Phase::Over);
        assert_eq!(result(&ceremony).qualified.len(), members);
        world.check_keys(&ceremony, &world.all());
        let digest = result(&ceremony).digest;
        let mut ceremony = ceremony;
        for member in world.all() {
            assert!(!ceremony.did_its_part(index(member)));
            world.say(&mut ceremony, member, &Step::Done(digest)).expect("its keys");
        }
        assert_eq!(ceremony.done().len(), members);
    }
}

#[test]
fn the_secrets_are_nobodys_alone_and_differ_by_generation() {
    let world = World::new(4);
    let ceremony = world.until(Phase::Over);
    let groups = &result(&ceremony).groups;
    for member in &world.members {
        let keys = member.keys(&ceremony).expect("its keys").public();
        for sharing in Sharing::ALL {
            assert!(!keys.0.windows(96).any(|key| key == groups.get(sharing).0));
        }
    }
    let again = Plan::new(&ceremony_committee(&world.generators, "2")).expect("equal members");
    assert_ne!(again.scope.network, world.plan.scope.network);
    assert_ne!(again.scope.network, world.generators.network_id());
}

// ---- what is refused ----------------------------------------------------------------------------

/// A generation for the next epoch of a network is of that network, epoch and file: the same
/// members make steps for no two of them alike.
#[test]
fn a_generation_for_the_next_epoch_is_of_its_file_alone() {
    let file = next_epoch(4, 1);
    let changed = |change: fn(&mut CommitteeFile)| {
        let mut other = file.clone();
        change(&mut other);
        other
    };
    let files = [
        founding(4),
        next_epoch(4, 2),
        changed(|file| file.epoch = Epoch(3)),
        changed(|file| file.members.swap(0, 1)),
        changed(|file| file.members[2].address = "elsewhere:1".into()),
        changed(|file| file.settings.leader_tenure += 1),
        file,
    ];
    let plans = files.each_ref().map(|file| World::of(file.clone()).plan);
    for (index, plan) in plans.iter().enumerate() {
        assert!(plans[..index].iter().all(|other| other.scope != plan.scope), "file {index}");
        assert!(files.iter().all(|file| file.network_id() != plan.scope.network), "file {index}");
    }
    let [other, own] = [1, 6].map(|file: usize| World::of(files[file].clone()));
    let mut ceremony = own.ceremony();
    let step = own.members[0].next_step(&ceremony).expect("to join");
    assert_eq!(ceremony.apply(&other.members[0].sign(&step)), Err(Refusal::Unsigned));
    assert_eq!(ceremony.apply(&own.members[0].sign(&step)), Ok(()));
}

#[test]
fn a_step_is_its_signers_and_of_its_generation() {
    check_signatures();
}

fn check_signatures() {
    let world = World::new(4);
    let mut ceremony = world.ceremony();
    let step = world.members[0].next_step(&ceremony).expect("to join");
    let own = world.members[0].sign(&step);
    let stolen = SignedStep { member: 1, ..own.clone() };
    assert_eq!(ceremony.apply(&stolen), Err(Refusal::Unsigned));
    let stranger = SignedStep { member: 9, ..own.clone() };
    assert_eq!(ceremony.apply(&stranger), Err(Refusal::Unsigned));
    let plan = Plan::new(&ceremony_committee(&world.generators, "2")).expect("equal members");
    let elsewhere = SignedStep::sign(&plan, &identity(0), 0, &step);
    assert_eq!(ceremony.apply(&elsewhere), Err(Refusal::Unsigned));
    assert_eq!(ceremony.apply(&own), Ok(()));
    assert_eq!(ceremony.apply(&own), Err(Refusal::Repeated));
}

#[test]
fn a_step_out_of_its_phase_changes_nothing() {
    let world = World::new(4);
    let mut ceremony = world.ceremony();
    let early = world.say(&mut ceremony, 0, &Step::Check(Vec::new()));
    assert_eq!(early, Err(Refusal::Phase(Phase::Joining)));
    let join = world.members[0].next_step(&ceremony).expect("to join");
    let mut ceremony = world.until(Phase::Dealing);
    assert_eq!(world.say(&mut ceremony, 0, &join), Err(Refusal::Phase(Phase::Dealing)));
    let close = Step::Close(Phase::Joining);
    assert_eq!(world.say(&mut ceremony, 0, &close), Err(Refusal::Phase(Phase::Dealing)));
    assert_eq!(ceremony.head(), world.until(Phase::Dealing).head());
}

fn refused_deal(spoil: impl Fn(&mut Deal)) -> Refusal {
    let world = World::new(4);
    let mut ceremony = world.until(Phase::Dealing);
    let good = world.deal_of(&ceremony, 0);
    let mut deal = good.clone();
    spoil(&mut deal);
    let refused = world.say(&mut ceremony, 0, &Step::Deal(Box::new(deal)));
    assert!(ceremony.dealers().is_empty());
    let good = world.say(&mut ceremony, 0, &Step::Deal(Box::new(good)));
    assert_eq!(good, Ok(()), "a good one is still taken");
    refused.expect_err("refused")
}

fn slow_cause(refusal: Refusal) -> KeyError {
    match refusal {
        Refusal::Deal(KeyError::Sharing { sharing: Sharing::Slow, cause }) => *cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_commitments_are_refused() {
    let slow = Sharing::Slow as usize;
    let degree = refused_deal(|deal| drop(deal.commitments[slow].pop()));
    assert_eq!(slow_cause(degree), KeyError::Coefficients { expected: 3, found: 2 });
    let point = refused_deal(|deal| deal.commitments[slow][1].0[5] ^= 1);
    assert!(matches!(slow_cause(point), KeyError::Encoding | KeyError::Subgroup));
    let identity = refused_deal(|deal| {
        deal.commitments[slow][2].0.fill(0);
        deal.commitments[slow][2].0[0] = 0xc0;
    });
    assert_eq!(slow_cause(identity), KeyError::Identity);
    let empty = refused_deal(|deal| deal.commitments[slow][0].0.clear());
    assert!(matches!(slow_cause(empty), KeyError::Length { .. }));
}

#[test]
fn a_deal_is_sealed_for_each_who_joined_and_nobody_else() {
    assert_eq!(refused_deal(|deal| drop(deal.envelopes.pop())), Refusal::Envelopes);
    assert_eq!(refused_deal(|deal| deal.envelopes.swap(0, 1)), Refusal::Envelopes);
    assert_eq!(refused_deal(|deal| deal.envelopes[0].0 = 9), Refusal::Envelopes);
}

#[test]
fn a_deal_copied_from_another_dealer_is_refused() {
    check_possession();
}

fn check_possession() {
    let world = World::new(4);
    let mut ceremony = world.until(Phase::Dealing);
    let other = world.deal_of(&ceremony, 1);
    let own = world.deal_of(&ceremony, 0);
    let copied = Deal { envelopes: own.envelopes, ..other };
    match world.say(&mut ceremony, 0, &Step::Deal(Box::new(copied))) {
        Err(Refusal::Deal(KeyError::Sharing { cause, .. })) => {
            assert_eq!(*cause, KeyError::Possession);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn complaints_are_about_others_who_dealt_in_order() {
    let world = World::new(4);
    let mut ceremony = world.until(Phase::Checking);
    for accused in [vec![0], vec![2, 1], vec![1, 1], vec![7]] {
        let said = world.say(&mut ceremony, 0, &Step::Check(accused));
        assert_eq!(said, Err(Refusal::Complaints));
    }
    let keys_of_others = Step::Done(quorate_crypto::Digest::ZERO);
    let mut over = world.until(Phase::Over);
    assert_eq!(world.say(&mut over, 0, &keys_of_others), Err(Refusal::OtherKeys));
}

// ---- complaints ---------------------------------------------------------------------------------

#[test]
fn a_bad_share_is_complained_about_and_an_answer_mends_it() {
    check_bad_share();
}

fn check_bad_share() {
    let world = World::new(4);
    let mut ceremony = world.with_a_bad_share(1, 2);
    world.play_all(&mut ceremony, &world.all());
    assert_eq!(ceremony.phase(), Phase::Answering);
    assert_eq!(ceremony.accused().iter().map(|(d, m)| (*d, m.len())).collect::<Vec<_>>(), [(1, 1)]);
    assert!(ceremony.accused()[&1].contains(&2));
    // The dealer gives in: it opens what it had committed to, and that is member 2's share.
    world.play(&mut ceremony, 1);
    assert_eq!(result(&ceremony).qualified, [0, 1, 2, 3]);
    world.check_keys(&ceremony, &world.all());
}

#[test]
fn an_envelope_that_does_not_open_is_complained_about() {
    let world = World::new(4);
    let mut ceremony = world.until(Phase::Dealing);
    let mut deal = world.deal_of(&ceremony, 3);
    deal.envelopes[0].1 = Envelope { encapsulated: [7; 32], ciphertext: vec![1; 20] };
    world.say(&mut ceremony, 3, &Step::Deal(Box::new(deal))).expect("nothing shows");
    world.play_all(&mut ceremony, &world.all());
    assert_eq!(world.members[0].next_step(&ceremony), Some(Step::Check(vec![3])));
    assert_eq!(world.members[1].next_step(&ceremony), Some(Step::Check(Vec::new())));
}

#[test]
fn a_complaint_without_an_answer_puts_the_dealer_out() {
    check_silence();
}

fn check_silence() {
    let world = World::new(4);
    let mut ceremony = world.with_a_bad_share(1, 2);
    world.play_all(&mut ceremony, &world.all());
    let early = world.say(&mut ceremony, 1, &Step::Close(Phase::Answering));
    assert_eq!(early, Err(Refusal::OwnPart), "the accused does not close");
    world.close(&mut ceremony, &[0, 2, 3]);
    assert_eq!(ceremony.out().get(&1), Some(&Reason::Silence));
    assert_eq!(result(&ceremony).qualified, [0, 2, 3]);
    world.check_keys(&ceremony, &world.all());
}

#[test]
fn a_bad_answer_puts_the_dealer_out() {
    check_bad_answers();
}

fn check_bad_answers() {
    let world = World::new(4);
    let opening = |member, seed: u8| {
        let context = world.plan.dealer_context(1);
        let sizes = (world.plan.members(), &world.plan.thresholds);
        let dealt = contribute(sizes.0, sizes.1, &[seed; 32], &context).expect("the plan's sizes");
        Opening { member, shares: dealt.shares[usize::from(member)].to_bytes().to_vec() }
    };
    let own = 0x41;
    let answers = [
        vec![opening(2, 0xee)],
        vec![opening(3, own)],
        vec![opening(2, own), opening(3, own)],
        vec![],
        vec![Opening { member: 2, shares: vec![1; 95] }],
    ];
    for answer in answers {
        let mut ceremony = world.with_a_bad_share(1, 2);
        world.play_all(&mut ceremony, &world.all());
        world.say(&mut ceremony, 1, &Step::Answer(answer)).expect("it counts");
        assert_eq!(ceremony.out().get(&1), Some(&Reason::BadAnswer));
        assert_eq!(result(&ceremony).qualified, [0, 2, 3]);
    }
}

#[test]
fn a_false_complaint_that_is_answered_keeps_the_dealer() {
    let world = World::new(4);
    let mut ceremony = world.until(Phase::Checking);
    world.say(&mut ceremony, 3, &Step::Check(vec![0])).expect("anybody may complain");
    world.play_all(&mut ceremony, &[0, 1, 2]);
    assert!(ceremony.owes_answer(0) && !ceremony.owes_answer(1));
    let answer = world.say(&mut ceremony, 1, &Step::Answer(Vec::new()));
    assert_eq!(answer, Err(Refusal::NotAccused));
    world.play(&mut ceremony, 0);
    assert_eq!(result(&ceremony).qualified, [0, 1, 2, 3]);
    world.check_keys(&ceremony, &world.all());
}

#[test]
fn more_complaints_than_there_may_be_liars_put_the_dealer_out() {
    let world = World::new(4);
    let mut ceremony = world.until(Phase::Checking);
    world.say(&mut ceremony, 2, &Step::Check(vec![0])).expect("a complaint");
    world.say(&mut ceremony, 3, &Step::Check(vec![0])).expect("a complaint");
    world.play_all(&mut ceremony, &[0, 1]);
    assert_eq!(ceremony.out().get(&0), Some(&Reason::Complaints));
    assert_eq!(result(&ceremony).qualified, [1, 2, 3], "and nobody is waited for");
}

// ---- timeouts ----------------------------------------------------------------------------------

#[test]
fn f_members_and_one_more_close_no_phase() {
    check_closing();
}

fn check_closing() {
    let world = World::new(4);
    for phase in [Phase::Joining, Phase::Dealing, Phase::Checking] {
        let mut ceremony = world.until(phase);
        world.play_all(&mut ceremony, &[0, 1, 2]);
        world.close(&mut ceremony, &[0, 1]);
        assert_eq!(ceremony.phase(), phase, "f + 1 have timed out");
        let again = world.say(&mut ceremony, 0, &Step::Close(phase));
        assert_eq!(again, Err(Refusal::Repeated));
        let idle = world.say(&mut ceremony, 3, &Step::Close(phase));
        assert_eq!(idle, Err(Refusal::OwnPart), "whoever closes did its part");
        world.close(&mut ceremony, &[2]);
        assert!(ceremony.phase() > phase, "a quorum has");
    }
}

#[test]
fn a_member_that_never_joins_is_done_without() {
    let world = World::new(4);
    let mut ceremony = world.ceremony();
    world.play_all(&mut ceremony, &[0, 1, 2]);
    world.close(&mut ceremony, &[0, 1, 2]);
    while ceremony.phase() != Phase::Over {
        world.play_all(&mut ceremony, &[0, 1, 2]);
    }
    assert_eq!(result(&ceremony).qualified, [0, 1, 2]);
    assert!(!world.members[3].is_known_to(&ceremony));
    assert_eq!(world.members[3].next_step(&ceremony), None);
    // Its public share is there all the same, on the polynomial that the loader asks for.
    world.check_keys_of_three(&ceremony);
}

impl World {
    /// With one member gone a fast certificate is out of reach; the others are made.
    fn check_keys_of_three(&self, ceremony: &Ceremony) {
        let file = result(ceremony).committee(&self.generators);
        let committee = Committee::load(&file, KeyCache::On).expect("the loader's checks");
        let secrets = (0..3).map(|member| self.members[member].keys(ceremony).expect("its keys"));
        let shares: Vec<_> = secrets
            .map(|secret| committee.sign(Purpose::Vote, &secret, b"it"))
            .enumerate()
            .collect();
        let (scheme, _) = committee.scheme(Purpose::Vote);
        let made = scheme.combine(b"it", &shares, &Bitmap::new(4), Policy::Aggregate);
        scheme.verify(b"it", &made.certificate.expect("a quorum")).expect("the group's signature");
    }
}

/// Whoever dies, and after whichever of its steps: the others have keys, and so has whoever comes
/// back.
#[test]
fn a_member_may_die_after_any_of_its_steps() {
    let world = World::new(4);
    for dead in 0..4 {
        let living: Vec<usize> = (0..4).filter(|member| *member != dead).collect();
        for last in [Phase::Joining, Phase::Dealing, Phase::Checking] {
            let mut ceremony = world.ceremony();
            while ceremony.phase() != Phase::Over {
                let phase = ceremony.phase();
                let present = if phase <= last { world.all() } else { living.clone() };
                world.play_all(&mut ceremony, &present);
                if ceremony.phase() == phase {
                    world.close(&mut ceremony, &living);
                }
            }
            let dealt = if last == Phase::Joining { living.clone() } else { world.all() };
            let qualified = result(&ceremony).qualified.clone();
            assert_eq!(qualified, dealt.into_iter().map(index).collect::<Vec<_>>());
            world.check_keys(&ceremony, &world.all());
        }
    }
}

/// A dealer dies while it owes an answer: it is out, and what it dealt is in nobody's keys.
#[test]
fn too_few_dealers_make_no_keys() {
    check_few_dealers();
}

fn check_few_dealers() {
    let world = World::new(4);
    let mut ceremony = world.until(Phase::Checking);
    // Member 3 complains about all others, who do not answer; it is then the only dealer left.
    world.say(&mut ceremony, 3, &Step::Check(vec![0, 1, 2])).expect("a complaint");
    world.play_all(&mut ceremony, &[0, 1, 2]);
    assert_eq!(ceremony.phase(), Phase::Answering);
    for dealer in 0..3 {
        world.say(&mut ceremony, dealer, &Step::Answer(Vec::new())).expect("it counts");
    }
    let failure = Failure { qualified: 1, needed: 2 };
    assert_eq!(ceremony.result(), Some(&Err(failure)));
}

#[test]
fn a_member_that_was_away_while_complaints_were_heard_knows_that_it_has_no_keys() {
    let world = World::new(4);
    let mut ceremony = world.with_a_bad_share(1, 2);
    world.play_all(&mut ceremony, &[0, 1, 3]);
    world.close(&mut ceremony, &[0, 1, 3]);
    assert_eq!(result(&ceremony).qualified, [0, 1, 2, 3], "nobody complained");
    assert_eq!(world.members[2].keys(&ceremony).err(), Some(MissingShares(vec![1])));
    world.check_keys(&ceremony, &[0, 1]);
}

/// Then, and no earlier, its seed is of no use: it left out a phase that the others ended, they
/// have no keys either, or a share is missing that nobody will open any more.
#[test]
fn a_member_knows_that_it_gets_no_keys() {
    let world = World::new(4);
    let hopeless = |ceremony: &Ceremony| -> Vec<bool> {
        world.members.iter().map(|member| member.gets_no_keys(ceremony)).collect()
    };
    let mut ceremony = world.ceremony();
    world.play_all(&mut ceremony, &[0, 1, 2]);
    assert_eq!(hopeless(&ceremony), [false; 4], "it may still join");
    world.close(&mut ceremony, &[0, 1, 2]);
    assert_eq!(hopeless(&ceremony), [false, false, false, true]);
    while ceremony.phase() != Phase::Over {
        world.play_all(&mut ceremony, &[0, 1, 2]);
    }
    assert_eq!(hopeless(&ceremony), [false, false, false, true]);

    let mut failed = world.until(Phase::Checking);
    world.say(&mut failed, 3, &Step::Check(vec![0, 1, 2])).expect("a complaint");
    world.play_all(&mut failed, &[0, 1, 2]);
    assert_eq!(hopeless(&failed), [false; 4], "they may still answer");
    for dealer in 0..3 {
        world.say(&mut failed, dealer, &Step::Answer(Vec::new())).expect("it counts");
    }
    assert_eq!(hopeless(&failed), [true; 4]);

    let mut away = world.with_a_bad_share(1, 2);
    world.play_all(&mut away, &[0, 1, 3]);
    assert_eq!(hopeless(&away), [false; 4], "it may still complain");
    world.close(&mut away, &[0, 1, 3]);
    assert_eq!(hopeless(&away), [false, false, true, false]);
}

// ---- mutants ------------------------------------------------------------------------------------

#[test]
fn leaving_rules_out_is_noticed() {
    assert_noticed(Mutant::DkgAnySigner, check_signatures);
    assert_noticed(Mutant::DkgNoPossession, check_possession);
    assert_noticed(Mutant::DkgNoShareCheck, check_bad_share);
    assert_noticed(Mutant::DkgKeepSilent, check_silence);
    assert_noticed(Mutant::DkgAnyAnswer, check_bad_answers);
    assert_noticed(Mutant::DkgCloseByFew, check_closing);
    assert_noticed(Mutant::DkgFewDealers, check_few_dealers);
}

// ---- the order, the log, the transcript ---------------------------------------------------------

mod order;
