//! Numbers modulo the order of BLS12-381's groups, by `blst`.
//!
//! `blst` has no safe interface to them, so that this file alone calls its C functions. Each takes
//! pointers to values of fixed size and writes its result to another; none keeps a pointer,
//! allocates or fails.

#![expect(unsafe_code, reason = "blst's scalars have no safe interface")]

use blst::{
    blst_bendian_from_scalar, blst_fr, blst_fr_add, blst_fr_cneg, blst_fr_from_scalar,
    blst_fr_from_uint64, blst_fr_inverse, blst_fr_mul, blst_lendian_from_scalar, blst_scalar,
    blst_scalar_from_be_bytes, blst_scalar_from_fr,
};
use zeroize::{DefaultIsZeroes, Zeroizing};

/// A number modulo the groups' order.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scalar(blst_fr);

/// The default is zero, in `blst`'s representation too: secret scalars can be wiped.
impl DefaultIsZeroes for Scalar {}

impl Scalar {
    pub(crate) const ZERO: Self = Self(blst_fr { l: [0; 4] });

    pub(crate) fn one() -> Self {
        Self::from(1)
    }

    /// The remainder of a number of 64 bytes, most significant first: uniform up to 2⁻²⁵⁶, if the
    /// bytes are.
    pub(crate) fn from_wide(bytes: &[u8; 64]) -> Self {
        let mut reduced = blst_scalar::default();
        let mut scalar = Self::ZERO;
        // SAFETY: 64 readable bytes, as the length says; a scalar to write and then to read; a
        // field element to write. What it returns tells zero from other remainders, and zero will
        // do here.
        unsafe {
            let _ = blst_scalar_from_be_bytes(&mut reduced, bytes.as_ptr(), bytes.len());
            blst_fr_from_scalar(&mut scalar.0, &reduced);
        }
        scalar
    }

    /// A number of 32 bytes, most significant first, as secret keys are written.
    pub(crate) fn from_be_bytes(bytes: &[u8; 32]) -> Self {
        let mut wide = Zeroizing::new([0; 64]);
        wide[32..].copy_from_slice(bytes);
        Self::from_wide(&wide)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let mut sum = Self::ZERO;
        // SAFETY: two field elements to read, one to write.
        unsafe { blst_fr_add(&mut sum.0, &self.0, &other.0) };
        sum
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let mut product = Self::ZERO;
        // SAFETY: two field elements to read, one to write.
        unsafe { blst_fr_mul(&mut product.0, &self.0, &other.0) };
        product
    }

    /// Its opposite if `negative`, itself otherwise.
    pub(crate) fn negated_if(self, negative: bool) -> Self {
        let mut negated = Self::ZERO;
        // SAFETY: a field element to read, one to write.
        unsafe { blst_fr_cneg(&mut negated.0, &self.0, negative) };
        negated
    }

    /// Multiplicative inverse; zero for zero.
    pub(crate) fn inverse(self) -> Self {
        let mut inverse = Self::ZERO;
        // SAFETY: a field element to read, one to write.
        unsafe { blst_fr_inverse(&mut inverse.0, &self.0) };
        inverse
    }

    /// 32 bytes, least significant first, as multiplications of points take them.
    pub(crate) fn to_le_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let scalar = self.to_blst();
        // SAFETY: a scalar to read, 32 bytes to write.
        unsafe { blst_lendian_from_scalar(bytes.as_mut_ptr(), &scalar) };
        bytes
    }

    /// 32 bytes, most significant first, as secret keys are written.
    pub(crate) fn to_be_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let scalar = self.to_blst();
        // SAFETY: a scalar to read, 32 bytes to write.
        unsafe { blst_bendian_from_scalar(bytes.as_mut_ptr(), &scalar) };
        bytes
    }

    /// Wiped when dropped, by `blst`'s own type.
    fn to_blst(self) -> blst_scalar {
        let mut scalar = blst_scalar::default();
        // SAFETY: a field element to read, a scalar to write.
        unsafe { blst_scalar_from_fr(&mut scalar, &self.0) };
        scalar
    }
}

impl From<u64> for Scalar {
    fn from(number: u64) -> Self {
        let mut scalar = Self::ZERO;
        // SAFETY: four words to read, the least significant first; a field element to write.
        unsafe { blst_fr_from_uint64(&mut scalar.0, [number, 0, 0, 0].as_ptr()) };
        scalar
    }
}

/// The product of small factors, none of them zero. They are multiplied as machine words as long as
/// they fit: with factors below 256, eight of them cost two multiplications of scalars.
pub(crate) fn product(factors: impl Iterator<Item = u64>) -> Scalar {
    let (mut product, mut word) = (Scalar::one(), 1_u64);
    for factor in factors {
        word = word.checked_mul(factor).unwrap_or_else(|| {
            product = product.times(Scalar::from(word));
            factor
        });
    }
    product.times(Scalar::from(word))
}

/// The inverses of numbers of which none is zero: one inversion for all, and three multiplications
/// each.
pub(crate) fn inverses(numbers: &[Scalar]) -> Vec<Scalar> {
    let mut inverses = Vec::with_capacity(numbers.len());
    let mut product = Scalar::one();
    for number in numbers {
        inverses.push(product);
        product = product.times(*number);
    }
    let mut rest = product.inverse();
    for (inverse, number) in inverses.iter_mut().zip(numbers).rev() {
        *inverse = inverse.times(rest);
        rest = rest.times(*number);
    }
    inverses
}

/// The value at `point` of the polynomial with these coefficients, the constant one first.
pub(crate) fn evaluate(coefficients: &[Scalar], point: Scalar) -> Scalar {
    let step = |value: Scalar, coefficient: &Scalar| value.times(point).plus(*coefficient);
    coefficients.iter().rev().fold(Scalar::ZERO, step)
}

#[cfg(test)]
mod tests;
