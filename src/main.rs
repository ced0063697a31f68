//! The binary: everything is in the library.

use std::process::ExitCode;

/// Rows are made of many small strings, on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ratoon::main()
}
