//! The `quorate` command as its users see it: its processes, their files and what they answer.
//!
//! One program for all, since each would be linked with everything that the command needs. Two have
//! programs of their own: `doors`, whose crowds take a process's descriptors, and
//! `linearizability`, whose committees want the machine for themselves.

mod bench;
mod change_of_committee;
mod clients;
mod committee;
mod common;
mod dkg;
mod door_access;
mod epochs;
mod estimate;
mod ethereum;
mod evm_tests;
mod folders;
mod full_disk;
mod gateway;
mod gateway_access;
mod keys;
mod kubernetes;
mod kv_tokens;
mod laboratory;
mod load;
mod newcomers;
mod next_keys;
mod nine_epochs;
mod operator;
mod pages;
mod pay;
mod readme;
mod refusals;
mod releases;
mod rescue;
mod rollback;
mod suite;
mod versions;
mod watching;
