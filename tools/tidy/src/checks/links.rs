//! Links of pages to files, headings and names of the tree lead somewhere.

use crate::finding::Finding;
use crate::tree::Tree;

/// Relative links whose target does not exist, or has not the heading or the name that is linked.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in &tree.pages {
        for (line, shown, target) in targets(text) {
            if let Some(advice) = broken(tree, path, shown, target) {
                found.push(Finding::new(path, line, advice));
            }
        }
    }
    found
}

/// Inline links outside fenced blocks: their lines, what they show, and their targets.
fn targets(text: &str) -> Vec<(usize, &str, &str)> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced {
            let parts: Vec<&str> = line.split("](").collect();
            found.extend(parts.windows(2).filter_map(|pair| {
                let shown = pair[0].rsplit('[').next()?;
                Some((at + 1, shown, pair[1].split(')').next()?))
            }));
        }
    }
    found
}

fn broken(tree: &Tree, path: &str, shown: &str, target: &str) -> Option<String> {
    if target.contains(':') {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { path.to_owned() } else { resolve(path, file) };
    if !tree.paths.contains(&file) {
        return Some(format!("links {file}, which does not exist"));
    }
    if let Some(name) = unnamed(tree, &file, shown) {
        return Some(format!("links `{name}`, which {file} does not name"));
    }
    let anchored = heading.is_empty() || headings(tree.page(&file)).any(|slug| slug == heading);
    (!anchored).then(|| format!("links a heading `#{heading}` that {file} does not have"))
}

/// Name that a link to a source file shows and the file does not have, as `Type::function`.
fn unnamed<'a>(tree: &Tree, file: &str, shown: &'a str) -> Option<&'a str> {
    let source = tree.sources.iter().find(|source| source.path == file)?;
    let path = shown.strip_prefix('`')?.strip_suffix('`')?;
    if path.contains(['.', '/']) {
        return None;
    }
    let own = |name: &str| file.split(['/', '.']).any(|part| part == name);
    let has =
        |name: &&str| own(name) || (0..source.tokens.len()).any(|at| source.word(at) == *name);
    path.split("::").find(|name| !has(name))
}

/// Path of a link's target, seen from the root.
fn resolve(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Anchors of a page's headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}
