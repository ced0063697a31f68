//! Integration tests: the program as people use it, on folders made for the purpose.
//!
//! Each test gets a [`workspace::Workspace`] (a temporary folder with a pipeline file), runs the real binary and looks
//! at exit code, messages and tables.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod adopt;
mod archives;
mod bad_archives;
mod bad_input;
mod bad_nights;
mod cli;
mod closed_loop;
mod delta;
mod due;
mod extract;
mod faults;
mod fleets;
mod guard;
mod hostile;
mod ingest;
mod inspect;
mod layers;
mod learned;
mod many_machines;
mod matching;
mod mishaps;
mod model_server;
mod models;
mod outage;
mod plain_words;
mod plan;
mod poll_commands;
mod query;
mod readers;
mod report;
mod schedule;
mod show;
mod slim;
mod spark;
mod sql;
mod stats;
mod status;
mod store;
mod triage;
mod trial;
mod trust;
mod warc;
mod watch;
mod windows;
mod word_worker;
mod workers;
mod workspace;
mod writers;
