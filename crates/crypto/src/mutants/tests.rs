//! Every mutant is caught by an ordinary test: each pair below passes as things are and panics with
//! the rule left out.

use super::*;

#[test]
fn padding_in_bitmaps() {
    assert_noticed(
        Mutant::AcceptBitmapPadding,
        crate::bitmap::tests::bits_beyond_the_last_member_are_refused,
    );
}

#[test]
fn certificates_of_nobody() {
    assert_noticed(
        Mutant::AcceptNoSigners,
        crate::scheme::tests::a_certificate_of_nobody_is_refused,
    );
}

#[test]
fn batches_without_cofactor() {
    assert_noticed(
        Mutant::BatchWithoutCofactor,
        crate::identity::tests::torsion_shifted_signatures_are_judged_alike,
    );
}

#[test]
fn unchecked_shares() {
    assert_noticed(Mutant::TrustShares, crate::scheme::tests::bad_shares_are_left_out_and_blamed);
    assert_noticed(
        Mutant::TrustShares,
        crate::threshold::tests::bad_shares_are_left_out_and_blamed,
    );
}

#[test]
fn threshold_certificates_of_too_few() {
    assert_noticed(
        Mutant::ThresholdCountsNobody,
        crate::threshold::tests::a_certificate_that_names_too_few_is_refused_before_any_pairing,
    );
}

#[test]
fn one_secret_for_all_sharings() {
    let mutant = Mutant::SharingsShareASecret;
    assert_noticed(
        mutant,
        crate::threshold::tests::a_share_of_one_sharing_is_worth_nothing_in_another,
    );
    assert_noticed(mutant, crate::threshold::tests::sharings_of_one_secret_are_refused);
}

#[test]
fn shares_of_no_polynomial() {
    assert_noticed(
        Mutant::TrustDealer,
        crate::threshold::consistency::tests::a_share_off_the_polynomial_is_refused,
    );
}

#[test]
fn identity_keys() {
    let mutant = Mutant::AcceptIdentity;
    assert_noticed(mutant, crate::bls::tests::the_identity_is_refused_as_a_key);
    assert_noticed(mutant, crate::ed25519::tests::small_order_keys_are_refused);
    assert_noticed(mutant, crate::threshold::consistency::tests::every_point_is_checked);
}

#[test]
fn unheld_identities() {
    let mutant = Mutant::AcceptUnheldIdentity;
    assert_noticed(mutant, crate::identity::tests::only_its_holder_proves_an_identity);
}

#[test]
fn identity_signatures() {
    let mutant = Mutant::AcceptIdentity;
    assert_noticed(mutant, crate::bls::tests::keys_that_cancel_prove_nothing);
    assert_noticed(mutant, crate::bls::tests::identity_shares_and_aggregates_are_refused);
}

#[test]
fn costly_key_files() {
    assert_noticed(
        Mutant::SkipSealCost,
        crate::keyfile::sealed::tests::a_costly_file_is_refused_before_anything_is_allocated,
    );
}

#[test]
#[should_panic(expected = "no assertion failed under AcceptIdentity")]
fn a_test_that_misses_a_mutant_is_found_out() {
    assert_noticed(Mutant::AcceptIdentity, || {});
}
