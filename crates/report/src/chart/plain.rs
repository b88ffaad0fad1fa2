//! The style sheet without variables, for viewers that know none.

/// The style sheet with every variable's value in its place, without what declares variables and
/// without the rules for print, which differ in variables alone. Colours are those of the first
/// block.
pub(super) fn plain(style: &str) -> String {
    let declared = style.split_once('}').map_or("", |(block, _)| block);
    let variables = declared.split(['{', ';', '\n']).filter_map(|part| {
        let (name, value) = part.trim().split_once(':')?;
        name.starts_with("--").then_some((name, value))
    });
    let resolved = variables.clone().fold(style.to_owned(), |style, (name, value)| {
        style.replace(&format!("var({name})"), value)
    });
    let without = variables
        .fold(resolved, |style, (name, value)| style.replacen(&format!("{name}:{value};"), "", 1));
    let screen = match without.split_once("@media print{") {
        Some((before, after)) => {
            let after = after.split_once("}}").map_or("", |(_, after)| after);
            format!("{before}{}", after.trim_start())
        }
        None => without,
    };
    screen.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::plain;
    use crate::chart::LIGHT_STYLE;

    #[test]
    fn every_variable_is_its_value() {
        let style = "a{--x:#123;--xy:#456;\nmargin:0}\n@media print{a{--x:#000;--xy:#111}}\n.b{fill:var(--x);stroke:var(--xy)}\n";
        assert_eq!(plain(style), "a{\nmargin:0}\n.b{fill:#123;stroke:#456}\n");
    }

    #[test]
    fn the_light_style_has_no_variables_and_its_classes() {
        let style = plain(LIGHT_STYLE);
        assert!(!style.contains("--") && !style.contains("var("), "{style}");
        assert!(style.contains(".chart .h9{fill:#0a2f66}"), "{style}");
        assert!(style.contains(".chart .c0{color:#0b66b0}"), "{style}");
        assert!(!style.contains("@media"), "{style}");
    }
}
