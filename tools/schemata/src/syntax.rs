//! Extents of what a mutant's span names only in part: an operator's operands, an arm's pattern, a
//! field's value.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::mutant::Genre;

/// An expression or arm, by bytes of the source.
pub enum Node {
    Binary {
        whole: Range<usize>,
        operator: Range<usize>,
    },
    /// A chain with `let`, whose parts cannot stand in parentheses.
    LetChain,
    Unary {
        whole: Range<usize>,
        operand: Range<usize>,
    },
    Arm {
        /// What the arm's pattern is matched with: an arm that is missed is missed there.
        scrutinee: Range<usize>,
        pattern_end: usize,
        guard: Option<Range<usize>>,
    },
    Guard(Range<usize>),
    Field {
        name: String,
        value: Range<usize>,
        /// The structure's path, and what its other fields are taken from.
        path: Range<usize>,
        rest: Range<usize>,
    },
}

/// Nodes by kind of mutant and the byte at which cargo-mutants' span begins.
#[derive(Default)]
pub struct Nodes(BTreeMap<(Genre, usize), Node>);

impl Nodes {
    /// Reads a source file.
    ///
    /// # Errors
    ///
    /// Fails on what is no Rust.
    pub fn read(source: &str) -> Result<Self> {
        let mut nodes = Self::default();
        nodes.visit_file(&syn::parse_file(source)?);
        Ok(nodes)
    }

    pub fn at(&self, genre: Genre, byte: usize) -> Option<&Node> {
        self.0.get(&(genre, byte))
    }
}

fn bytes(spanned: &impl Spanned) -> Range<usize> {
    let span: Span = spanned.span();
    span.byte_range()
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl Visit<'_> for Nodes {
    fn visit_expr_binary(&mut self, binary: &syn::ExprBinary) {
        let operator = bytes(&binary.op);
        let node = if has_let(&binary.left) || has_let(&binary.right) {
            Node::LetChain
        } else {
            Node::Binary { whole: bytes(binary), operator: operator.clone() }
        };
        self.0.insert((Genre::BinaryOperator, operator.start), node);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &syn::ExprUnary) {
        let whole = bytes(unary);
        let at = (Genre::UnaryOperator, whole.start);
        self.0.insert(at, Node::Unary { whole, operand: bytes(&unary.expr) });
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, expression: &syn::ExprMatch) {
        for arm in &expression.arms {
            let guard = arm.guard.as_ref().map(|(_, guard)| bytes(guard));
            if let Some(guard) = &guard {
                self.0.insert((Genre::MatchArmGuard, guard.start), Node::Guard(guard.clone()));
            }
            let scrutinee = bytes(&expression.expr);
            let pattern_end = bytes(&arm.pat).end;
            let at = (Genre::MatchArm, bytes(arm).start);
            self.0.insert(at, Node::Arm { scrutinee, pattern_end, guard });
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_expr_struct(&mut self, structure: &syn::ExprStruct) {
        if let Some(rest) = &structure.rest {
            for field in &structure.fields {
                let syn::Member::Named(name) = &field.member else { continue };
                // A shorthand field has its name as its value.
                let node = Node::Field {
                    name: name.to_string(),
                    value: bytes(&field.expr),
                    path: bytes(&structure.path),
                    rest: bytes(rest),
                };
                self.0.insert((Genre::StructField, bytes(field).start), node);
            }
        }
        visit::visit_expr_struct(self, structure);
    }
}
