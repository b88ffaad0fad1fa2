//! The modules of a package: which file each is in, what it defines and what it imports.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// An imported path, and the name that it has here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name; `*` for all names of a module.
    pub(super) alias: String,
    /// Handed on to others, and so no use of its own.
    pub(super) public: bool,
}

/// A module, in a file of its own or within one.
#[derive(Default)]
pub(super) struct Module {
    /// Index of the package's file.
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// Names of items defined here.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// Indices of tokens outside imports and tests, in the order of the file.
    pub(super) code: Vec<usize>,
}

/// One crate: the modules that its root leads to. The root has index 0.
pub(super) struct Package<'a> {
    pub(super) sources: &'a [&'a Source],
    pub(super) modules: Vec<Module>,
    /// Modules of exported macros, which are named from the root.
    pub(super) macros: BTreeMap<String, usize>,
}

const DEFINING: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

impl<'a> Package<'a> {
    /// Reads the modules from a crate's root file on.
    pub(super) fn new(sources: &'a [&'a Source], root: &Source) -> Self {
        let mut package = Self { sources, modules: Vec::new(), macros: BTreeMap::new() };
        let file = sources.iter().position(|source| source.path == root.path).expect("it is one");
        let folder = root.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        package.modules.push(Module { file, ..Module::default() });
        package.read(0, 0, root.tokens.len(), folder);
        package
    }

    /// Reads the tokens from `at` to `end` into a module whose children are files of `folder`.
    fn read(&mut self, module: usize, mut at: usize, end: usize, folder: &str) {
        let source = self.sources[self.modules[module].file];
        let mut depth = 0usize;
        while at < end {
            if source.is_test(at) {
                at += 1;
                continue;
            }
            match source.word(at) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "use" if source.is_word(at + 1) || source.is_sign(at + 1, b':') => {
                    let public = at > 0 && ["pub", ")"].contains(&source.word(at - 1));
                    at = self.import(module, at + 1, public);
                    continue;
                }
                "mod" if depth == 0 && source.is_word(at + 1) => {
                    at = self.child(module, at, folder);
                    continue;
                }
                "macro_rules" => self.define_macro(module, source.word(at + 2)),
                word if depth == 0 && DEFINING.contains(&word) => {
                    self.modules[module].items.insert(source.word(at + 1).to_owned());
                }
                _ => {}
            }
            self.modules[module].code.push(at);
            at += 1;
        }
    }

    fn define_macro(&mut self, module: usize, name: &str) {
        self.modules[module].items.insert(name.to_owned());
        self.macros.insert(name.to_owned(), module);
    }

    /// Reads the child whose `mod` is at a place, and returns what is behind it.
    fn child(&mut self, parent: usize, at: usize, folder: &str) -> usize {
        let file = self.modules[parent].file;
        let source = self.sources[file];
        let name = source.word(at + 1).to_owned();
        let inner = format!("{folder}/{name}");
        let within = source.is_sign(at + 2, b'{');
        let files = [format!("{inner}.rs"), format!("{inner}/mod.rs")];
        let own = self.sources.iter().position(|source| files.contains(&source.path));
        let end = if within { source.behind(at + 2) } else { at + 3 };
        let Some(file) = own.filter(|_| !within).or(within.then_some(file)) else { return end };
        let index = self.modules.len();
        self.modules.push(Module { file, parent: Some(parent), ..Module::default() });
        self.modules[parent].children.insert(name, index);
        if within {
            self.read(index, at + 3, end - 1, &inner);
        } else {
            let length = self.sources[file].tokens.len();
            self.read(index, 0, length, &inner);
        }
        end
    }

    /// Reads the tree of an import from behind `use`, and returns what is behind its `;`.
    fn import(&mut self, module: usize, at: usize, public: bool) -> usize {
        let source = self.sources[self.modules[module].file];
        let end = (at..source.tokens.len()).find(|&at| source.is_sign(at, b';'));
        let end = end.unwrap_or(source.tokens.len());
        let mut imports = Vec::new();
        branch(source, at, end, &[], &mut imports);
        let imports = imports.into_iter().map(|(path, alias)| Import { path, alias, public });
        self.modules[module].imports.extend(imports);
        end + 1
    }
}

/// Flattens one branch of an import's tree, `a::b::{c, d as e}`, into paths with their names.
fn branch(
    source: &Source,
    mut at: usize,
    end: usize,
    prefix: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) {
    let mut path = prefix.to_vec();
    let mut alias = None;
    while at < end {
        match source.word(at) {
            ":" => {}
            "{" => return branches(source, at + 1, source.behind(at) - 1, &path, found),
            "*" => alias = Some("*".to_owned()),
            "as" => {
                alias = Some(source.word(at + 1).to_owned());
                at += 1;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    if let Some(last) = path.last() {
        let alias = alias.unwrap_or_else(|| last.clone());
        found.push((path, alias));
    }
}

/// Branches between braces, with commas between them.
fn branches(
    source: &Source,
    at: usize,
    end: usize,
    prefix: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) {
    let mut start = at;
    let mut at = at;
    while at < end {
        if source.is_sign(at, b'{') {
            at = source.behind(at);
            continue;
        }
        if source.is_sign(at, b',') {
            branch(source, start, at, prefix, found);
            start = at + 1;
        }
        at += 1;
    }
    branch(source, start, end, prefix, found);
}
