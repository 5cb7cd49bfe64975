//! The allocator of programs with large tables: the system's allocator, whose large blocks are in huge pages.
//!
//! Simulators and proofs read tables of many megabytes out of order. With pages of 4 KiB most of these reads miss the table
//! of translations too, and each page costs a fault when it is first written. Linux backs memory with pages of 2 MiB where a
//! program advises it to (`madvise`, if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`). Elsewhere the
//! advice has no effect, and blocks are the system's.

use std::alloc::{GlobalAlloc, Layout, System};

/// A program uses it by `#[global_allocator] static ALLOCATOR: HugePages = HugePages;`.
pub struct HugePages;

/// Bytes of a huge page.
const PAGE: usize = 2 << 20;
/// The least block that is advised, in bytes. A block may occupy up to one page more than its program writes.
const LEAST: usize = 2 * PAGE;

/// Advises the kernel to back the whole huge pages inside a block.
#[inline]
fn advise(block: *mut u8, bytes: usize) {
    if bytes >= LEAST && !block.is_null() {
        advise_large(block, bytes);
    }
}

#[cfg(target_os = "linux")]
#[cold]
fn advise_large(block: *mut u8, bytes: usize) {
    use rustix::mm::{Advice, madvise};

    let skipped = block.addr().next_multiple_of(PAGE) - block.addr();
    let pages = (bytes - skipped) / PAGE;
    let first = block.wrapping_add(skipped).cast();
    // SAFETY: the range lies inside a block of this allocator. The advice changes neither contents nor access; where it is
    // refused, pages stay small.
    let _ = unsafe { madvise(first, pages * PAGE, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise_large(_: *mut u8, _: usize) {}

// SAFETY: every call is passed on to the system's allocator unchanged, and the advice neither allocates nor unwinds.
unsafe impl GlobalAlloc for HugePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise for `alloc` is the one that `System` asks for.
        let block = unsafe { System.alloc(layout) };
        advise(block, layout.size());
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        let block = unsafe { System.alloc_zeroed(layout) };
        advise(block, layout.size());
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block comes from `System`, as all blocks of this allocator do.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block comes from `System`, and the caller's promise is the one that it asks for.
        let block = unsafe { System.realloc(block, layout, size) };
        advise(block, size);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: HugePages = HugePages;

    /// Blocks of every size around the limits keep their contents while they grow and shrink.
    #[test]
    fn blocks_keep_their_contents() {
        for bytes in [1, PAGE - 1, PAGE, LEAST - 1, LEAST, LEAST + 1, 2 * LEAST + 4097] {
            let zeros = vec![0_u8; bytes];
            assert!(zeros.iter().all(|&byte| byte == 0), "{bytes}");
            let mut block: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            block.reserve_exact(bytes + PAGE);
            block.extend((bytes..2 * bytes).map(|at| (at % 251) as u8));
            block.truncate(bytes + bytes / 2);
            block.shrink_to_fit();
            let kept = block.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at % 251);
            assert!(kept && block.len() == bytes + bytes / 2, "{bytes}");
        }
    }

    /// Where the kernel has huge pages, the flags of a large block say that it was advised.
    #[cfg(target_os = "linux")]
    #[test]
    fn large_blocks_are_advised() {
        if !std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap_or(false) {
            return;
        }
        let block = vec![1_u8; 8 * PAGE];
        let middle = block.as_ptr().addr() + 4 * PAGE;
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("a process reads its own maps");
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        let range = |line: &str| {
            let (begin, end) = line.split(' ').next()?.split_once('-')?;
            Some(address(begin)?..address(end)?)
        };
        let is_of_block = |line: &&str| range(line).is_some_and(|range| range.contains(&middle));
        let mut lines = maps.lines().skip_while(|line| !is_of_block(line));
        let flags = lines.find_map(|line| line.strip_prefix("VmFlags:")).expect("a mapping has flags");
        assert!(flags.split_whitespace().any(|flag| flag == "hg"), "{flags}");
    }
}
