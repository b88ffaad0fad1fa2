use super::*;
use proptest::prelude::*;
use serde_json::Value;

/// Numbers worked out by `tests/vectors/scalars.py`, which shares nothing with this crate.
fn vectors() -> Value {
    serde_json::from_str(include_str!("../../tests/vectors/scalars.json")).unwrap()
}

fn show(scalar: Scalar) -> String {
    hex::encode(scalar.to_be_bytes())
}

fn wide(text: &Value) -> Scalar {
    let bytes = hex::decode(text.as_str().unwrap()).unwrap();
    Scalar::from_wide(&bytes.try_into().unwrap())
}

#[test]
fn arithmetic_is_modulo_the_order() {
    let vectors = vectors();
    let cases = vectors["arithmetic"].as_array().unwrap();
    assert!(cases.len() > 8);
    for case in cases {
        let (left, right) = (wide(&case["left"]), wide(&case["right"]));
        assert_eq!(show(left), case["left_reduced"], "{case}");
        assert_eq!(show(left.plus(right)), case["sum"], "{case}");
        assert_eq!(show(left.times(right)), case["product"], "{case}");
        assert_eq!(show(left.negated_if(true)), case["negated"], "{case}");
        assert_eq!(show(left.negated_if(false)), case["left_reduced"], "{case}");
        assert_eq!(show(left.inverse()), case["inverse"], "{case}");
    }
}

#[test]
fn both_encodings_are_of_one_number() {
    let scalar = Scalar::from(0x0102);
    let (mut little, big) = (scalar.to_le_bytes(), scalar.to_be_bytes());
    assert_eq!(little[..2], [2, 1]);
    little.reverse();
    assert_eq!(little, big);
    assert!(Scalar::ZERO == Scalar::from(0), "zero is wiped memory");
}

/// Products of machine words that do not fit one another come out as those of scalars.
#[test]
fn long_products_are_those_of_their_factors() {
    for factors in [vec![], vec![7], vec![u64::MAX, u64::MAX, 3], (1..100).collect()] {
        let expected =
            factors.iter().fold(Scalar::one(), |all, factor| all.times(Scalar::from(*factor)));
        assert_eq!(show(product(factors.iter().copied())), show(expected), "{factors:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn inverses_of_many_are_the_inverses_of_each(
        seeds in prop::collection::vec(1..u64::MAX, 0..20),
    ) {
        let numbers: Vec<Scalar> =
            seeds.iter().map(|seed| Scalar::from(*seed).times(Scalar::from(u64::MAX))).collect();
        for (number, inverse) in numbers.iter().zip(inverses(&numbers)) {
            prop_assert_eq!(show(number.times(inverse)), show(Scalar::one()));
        }
    }
}
