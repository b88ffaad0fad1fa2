use super::*;
use quorate_crypto::stand_in::StandIns;
use quorate_crypto::{
    Bitmap, KeyCache, Policy, SchemeKind, VotingSecret, committee_scheme, counts,
};

const MESSAGE: &[u8] = b"a statement";

fn list() -> Prices {
    Prices::shipped("this-machine").unwrap()
}

#[test]
fn every_list_that_comes_along_is_one_and_says_where_it_is_from() {
    for name in Prices::names() {
        let prices = Prices::shipped(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(prices.note.len() > 80, "{name} says how it was made");
        assert_eq!(Prices::parse(&prices.to_toml()).as_ref(), Ok(&prices), "{name}");
    }
}

#[test]
fn a_field_that_does_not_exist_or_is_missing_is_refused_by_name() {
    let text = list().to_toml();
    let with = text.replace("[hash]", "[hash]\ncall_ms = 1.0");
    let without = text.replace("call_us", "# call_us");
    for (text, name) in [(with, "call_ms"), (without, "call_us")] {
        let Err(PricesError::Malformed(reason)) = Prices::parse(&text) else { panic!("refused") };
        assert!(reason.contains(name), "{reason}");
    }
}

#[test]
fn a_price_below_zero_or_of_no_number_is_refused() {
    for (wrong, value) in [("-1.0", -1.0), ("inf", f64::INFINITY)] {
        let mut prices = list();
        prices.bls.sign_us = 77.125;
        let text = prices.to_toml().replace("77.125", wrong);
        let field = "bls.sign_us".to_owned();
        assert_eq!(Prices::parse(&text), Err(PricesError::Price { field, value }));
    }
}

#[test]
fn a_list_that_nobody_has_is_refused_with_the_names_of_the_others() {
    for error in [Prices::shipped("t4.medium"), Prices::find("t4.medium")].map(Result::unwrap_err) {
        assert!(error.to_string().contains("t3.medium"), "{error}");
    }
}

#[test]
fn a_list_is_found_by_its_name_or_its_files() {
    assert_eq!(Prices::find("this-machine"), Ok(list()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("here.toml");
    let name = file.to_str().unwrap();
    let missing = Prices::find(name).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("cannot read the price list {name}")), "{missing}");
    std::fs::write(&file, list().slowed(2.0).to_toml()).unwrap();
    assert_eq!(Prices::find(name).unwrap().hash.call_us, 2.0 * list().hash.call_us);
}

/// Cost of combining and of checking a certificate of `signers` among `members`, in microseconds.
fn certificate(kind: SchemeKind, members: usize, signers: usize, policy: Policy) -> (f64, f64) {
    let _stand_ins = StandIns::begin();
    let seed = |member: usize| [u8::try_from(member).unwrap() + 1; 32];
    let secrets: Vec<_> = (0..members).map(|m| VotingSecret::from_seed(kind, &seed(m))).collect();
    let keys: Vec<_> = secrets.iter().map(|s| (s.public(), s.prove_possession())).collect();
    let scheme = committee_scheme(kind, &keys, KeyCache::On).unwrap();
    let shares: Vec<_> = (0..signers).map(|m| (m, secrets[m].sign(MESSAGE))).collect();
    let (prices, nobody) = (list(), Bitmap::new(members));
    counts::take();
    let combined = scheme.combine(MESSAGE, &shares, &nobody, policy);
    let combining = prices.of(&counts::take()) / 1e3;
    scheme.verify(MESSAGE, &combined.certificate.unwrap()).unwrap();
    (combining, prices.of(&counts::take()) / 1e3)
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1.0 + expected * 1e-3, "{found} and not {expected}");
}

#[test]
fn a_certificate_costs_what_its_operations_do() {
    let Prices { ed25519, bls, .. } = list();
    let (combine, verify) = certificate(SchemeKind::Ed25519, 10, 7, Policy::Aggregate);
    let batch = ed25519.batch_us + 7.0 * ed25519.batch_item_us;
    assert_near(combine, batch);
    assert_near(verify, batch);
    let (combine, _) = certificate(SchemeKind::Ed25519, 10, 7, Policy::Each);
    assert_near(combine, 7.0 * ed25519.verify_us);

    let check = bls.pairing_us + bls.subgroup_us;
    let (combine, verify) = certificate(SchemeKind::Bls, 10, 7, Policy::Aggregate);
    let sums = 6.0 * bls.key_addition_us + 2.0 * 6.0 * bls.share_addition_us;
    assert_near(combine, 7.0 * bls.point_read_us + sums + check);
    // Three absentees are subtracted from the cached sum.
    assert_near(verify, bls.point_read_us + 3.0 * bls.key_addition_us + check);
    let (combine, _) = certificate(SchemeKind::Bls, 10, 7, Policy::Each);
    assert_near(combine, 7.0 * (bls.point_read_us + check) + 6.0 * bls.share_addition_us);
}

#[test]
fn a_recovered_signer_costs_its_price() {
    counts::take();
    counts::add_recovery();
    counts::add_recovery();
    assert_near(list().of(&counts::take()) / 1e3, 2.0 * list().secp256k1.recover_us);
}

#[test]
fn a_list_may_be_made_from_another() {
    let text = |scale: &str, change: &str| {
        format!(
            "machine = \"m\"\ncommit = \"c\"\ndate = \"d\"\nnote = \"n\"\n\
             base = \"this-machine\"\nscale = {scale}\n{change}"
        )
    };
    let (base, made) = (list(), Prices::parse(&text("2.0", "[change.bls]\nsign_us = 5.0")));
    let made = made.unwrap();
    assert_eq!((made.machine.as_str(), made.bls.sign_us), ("m", 5.0));
    assert_eq!(made.bls.pairing_us, 2.0 * base.bls.pairing_us);
    assert_eq!(made.log.sync_us, base.log.sync_us, "a disk is no core");
    let Err(PricesError::Malformed(reason)) =
        Prices::parse(&text("1.0", "[change.bls]\nsing_us = 5.0"))
    else {
        panic!("refused")
    };
    assert!(reason.contains("sing_us"), "{reason}");
    assert_eq!(
        Prices::parse(&text("-1.0", "")),
        Err(PricesError::Price { field: "scale".to_owned(), value: -1.0 })
    );
}
