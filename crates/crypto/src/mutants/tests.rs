//! Every mutant is caught by an ordinary test: each pair below passes as things are and panics with the
//! rule left out.

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
}

#[test]
fn identity_keys() {
    let mutant = Mutant::AcceptIdentity;
    assert_noticed(mutant, crate::bls::tests::the_identity_is_refused_as_a_key);
    assert_noticed(mutant, crate::ed25519::tests::small_order_keys_are_refused);
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
