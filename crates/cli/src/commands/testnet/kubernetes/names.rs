//! Options of an overlay, refused where a cluster would refuse them.

/// Most characters of a name that is a DNS label.
const LABEL_CHARACTERS_MAX: usize = 63;

/// A DNS label: names of namespaces and of what is in them.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    accept(text, is_inner, LABEL_CHARACTERS_MAX, "lowercase letters, digits and hyphens")
}

/// A DNS name: of a storage class.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    accept(text, is_inner, 253, "lowercase letters, digits, hyphens and dots")
}

/// Value of a label.
pub(super) fn label(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    accept(text, is_inner, LABEL_CHARACTERS_MAX, "letters, digits, hyphens, dots and underscores")
}

/// Name of an image, with a tag or digest or none.
pub(super) fn image(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    accept(text, is_inner, 512, "letters, digits and -_./:@")
}

fn accept(
    text: &str,
    is_inner: impl Fn(char) -> bool,
    characters_max: usize,
    which: &str,
) -> Result<String, String> {
    let is_outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let (first, last) = (text.chars().next(), text.chars().next_back());
    let is_taken = is_outer(first) && is_outer(last) && text.chars().all(is_inner);
    if is_taken && text.len() <= characters_max {
        return Ok(text.to_owned());
    }
    Err(format!(
        "it is 1 to {characters_max} {which}, and begins and ends with a letter or a digit"
    ))
}

/// A size in bytes, as clusters write them: `20Gi`.
pub(super) fn storage(text: &str) -> Result<String, String> {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let is_unit = ["Mi", "Gi", "Ti", "Pi", "M", "G", "T", "P"].contains(&unit);
    if is_unit && number.parse::<u64>().is_ok_and(|number| number > 0) {
        return Ok(text.to_owned());
    }
    Err("write a whole number and Mi, Gi, Ti, M, G or T, as in 20Gi".to_owned())
}

/// An image's name without its tag and digest, and these two.
pub(super) fn split_image(image: &str) -> (&str, Option<&str>, Option<&str>) {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    // A colon before the last slash is the port of a registry.
    let tag = rest.rfind(':').filter(|colon| !rest[*colon..].contains('/'));
    match tag {
        Some(colon) => (&rest[..colon], Some(&rest[colon + 1..]), digest),
        None => (rest, None, digest),
    }
}
