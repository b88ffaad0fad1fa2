use super::{Kind, Part, scan};

/// Words, texts and signs of a source.
fn tokens(text: &str) -> Vec<String> {
    let scanned = scan(text);
    let shown = scanned.tokens.iter().map(|token| match token.kind {
        Kind::Text => format!("\"{}\"", &text[token.start..token.end]),
        _ => text[token.start..token.end].to_owned(),
    });
    shown.collect()
}

#[test]
fn strings_of_every_kind_are_one_token() {
    assert_eq!(tokens(r#"a("b \" c")"#), ["a", "(", r#""b \" c""#, ")"]);
    assert_eq!(tokens(r###"r#"x " y"# br"z" b"w""###), [r#""x " y""#, "\"z\"", "\"w\""]);
    assert_eq!(tokens("r#type"), ["type"]);
}

#[test]
fn characters_are_told_from_lifetimes() {
    assert_eq!(tokens("'a' '\\'' b'\"' 'é' x"), ["x"]);
    assert_eq!(tokens("&'a str"), ["&", "a", "str"]);
    assert_eq!(tokens("'{' 'b: {"), ["b", ":", "{"]);
}

#[test]
fn comments_are_no_code() {
    assert_eq!(tokens("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
    let parts = scan("a//b").parts;
    assert_eq!(parts, [Part::Code, Part::Comment, Part::Comment, Part::Comment]);
}

#[test]
fn lines_are_counted_through_strings_and_comments() {
    let text = "a\n\"b\nc\"\n/*\n*/ d";
    let lines: Vec<usize> = scan(text).tokens.iter().map(|token| token.line).collect();
    assert_eq!(lines, [1, 2, 5]);
}
