//! Where memory comes from.
//!
//! Rows are made of many small strings, on many threads: mimalloc is made for that. It keeps what is given back for a
//! while, in case it is wanted again. For a body of half a gigabyte this would mean that the next one, read right
//! after it, is held twice, and one that grows is held at two sizes. So large blocks come from the system: it takes
//! them back at once, and lets them grow without a copy.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_long};

use mimalloc::MiMalloc;

/// Blocks of so many bytes come from the system. From this size on, the C library gives every block pages of its own.
const LARGE: usize = 32 << 20;

/// Milliseconds for which mimalloc keeps what is given back. Left to itself it keeps it for a second, which is as long as a
/// stage takes over some shards: a night then spends a twentieth of its time on pages that the system takes and gives.
const KEPT_MS: c_long = 10_000;
/// The number of mimalloc's option `purge_delay`.
const PURGE_DELAY: c_int = 15;

#[allow(unsafe_code, reason = "mimalloc is asked by a call to C")]
unsafe extern "C" {
    /// Of mimalloc, which is linked as the allocator: gives an option the value that it has unless the environment says
    /// otherwise.
    fn mi_option_set_default(option: c_int, value: c_long);
    /// Gives an option a value.
    fn mi_option_set(option: c_int, value: c_long);
}

/// The allocator of the program.
#[derive(Debug)]
pub struct Allocator;

impl Allocator {
    /// Says how long memory is kept. To be called before all else.
    pub fn start() {
        // SAFETY: the option exists, and any number is a value of it.
        #[allow(unsafe_code, reason = "as above")]
        unsafe {
            mi_option_set_default(PURGE_DELAY, KEPT_MS);
        }
    }

    /// To be called after all else. The system takes back all memory with the program: giving it back piece by piece before
    /// takes a hundredth of a night.
    pub fn end() {
        // SAFETY: as above; a negative number means that nothing is given back.
        #[allow(unsafe_code, reason = "as above")]
        unsafe {
            mi_option_set(PURGE_DELAY, -1);
        }
    }
}

fn is_large(size: usize) -> bool {
    size >= LARGE
}

// SAFETY: a block's size says which allocator it came from, when it is made, grown and given back; both keep the
// contract of the trait.
#[allow(unsafe_code, reason = "an allocator is unsafe by its nature; this one only chooses between two")]
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises is what these ask for; likewise below.
        unsafe { if is_large(layout.size()) { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { if is_large(layout.size()) { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the layout is that of the block.
        unsafe { if is_large(layout.size()) { System.dealloc(block, layout) } else { MiMalloc.dealloc(block, layout) } }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (is_large(layout.size()), is_large(size)) {
            // SAFETY: as above.
            (false, false) => unsafe { MiMalloc.realloc(block, layout, size) },
            // SAFETY: as above.
            (true, true) => unsafe { System.realloc(block, layout, size) },
            _ => {
                // SAFETY: the caller promises that `size` is not zero and no overflow with this alignment.
                unsafe {
                    let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    #[test]
    fn blocks_keep_their_bytes_across_sizes() {
        let mut bytes: Vec<u8> = (0..=250).cycle().take(LARGE - 3).collect();
        for more in [1, 2, 5, LARGE, 3 * LARGE] {
            let size = bytes.len() + more;
            bytes.reserve_exact(more);
            let next = bytes.len();
            bytes.extend((0..=250).cycle().skip(next % 251).take(more));
            assert!(
                bytes.len() == size && bytes.iter().zip((0..=250).cycle()).all(|(&byte, of): (&u8, u8)| byte == of)
            );
        }
        for size in [2 * LARGE, LARGE, LARGE - 1, 100] {
            bytes.truncate(size);
            bytes.shrink_to_fit();
            assert!(
                bytes.len() == size && bytes.iter().zip((0..=250).cycle()).all(|(&byte, of): (&u8, u8)| byte == of)
            );
        }
        assert!(vec![0; LARGE].iter().all(|&byte: &u8| byte == 0));
    }
}
