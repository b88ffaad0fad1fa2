//! The allocator of the binary, and how soon it gives memory back.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` in `mimalloc.h`; the bindings name no options.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Memory that was not used for so long goes back to the system.
const PURGE_DELAY_MS: std::ffi::c_long = 10_000;

/// Lets freed memory be used again before it goes back to the system.
///
/// Bodies and frames are hundreds of kilobytes and live for milliseconds. With the default of one
/// second most of them began with fresh pages, which the kernel clears: a sixth of all processor
/// time at 100,000 operations a second (54,701 page faults in 8 s, against 2,281).
///
/// To be called once, before anything else runs.
pub(crate) fn configure() {
    purge_after(PURGE_DELAY_MS);
}

/// Keeps freed memory to the end: a simulation uses what it used before, over and over, and minutes
/// may lie between.
///
/// To be called before any thread is started.
pub(crate) fn keep() {
    purge_after(-1);
}

#[expect(unsafe_code, reason = "the bindings have no safe way to set an option")]
fn purge_after(ms: std::ffi::c_long) {
    // SAFETY: a plain store into the allocator's table of options. It is not synchronised: no other
    // thread exists yet.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, ms) };
}
