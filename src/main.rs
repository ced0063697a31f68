//! The binary: everything is in the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: ratoon::Allocator = ratoon::Allocator;

fn main() -> ExitCode {
    ratoon::Allocator::start();
    let code = ratoon::main();
    ratoon::Allocator::end();
    code
}
