//! The one place that submits: whoever calls waits until all is done, so that nothing that was
//! lent to the kernel goes away before.

#![allow(unsafe_code, reason = "no safe crate of `io_uring` comes without a runtime of its own")]

use io_uring::{IoUring, opcode, squeue, types};
use std::fs::File;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Submissions under way at most.
const ENTRIES: u32 = 64;

pub(super) struct Ring(IoUring);

impl Ring {
    /// A ring that leaves its work to the calls that wait for it, which is the cheapest.
    ///
    /// # Errors
    /// When the system has no `io_uring`, or does not let this process use it.
    pub(super) fn new() -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
        builder.build(ENTRIES).map(Self)
    }

    /// Writes the parts one after the other at an offset, and with `syncs` has them durable: two
    /// submissions, of which the second waits for the first.
    pub(super) fn append(&mut self, file: &File, parts: &[IoSlice<'_>], offset: u64, syncs: bool) {
        let fd = types::Fd(file.as_raw_fd());
        let count = u32::try_from(parts.len()).expect("few");
        // An `IoSlice` is an `iovec`, as the standard library promises.
        let write = opcode::Writev::new(fd, parts.as_ptr().cast(), count).offset(offset).build();
        let sync = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build();
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if syncs {
            let write = write.flags(squeue::Flags::IO_LINK);
            self.complete(&[write.user_data(length as u64), sync.user_data(0)]);
        } else {
            self.complete(&[write.user_data(length as u64)]);
        }
    }

    /// Sends a frame on each socket, whole, in one submission.
    pub(super) fn send(&mut self, sockets: &[TcpStream], frame: &[u8]) {
        let length = u32::try_from(frame.len()).expect("a frame is short");
        let sends: Vec<_> = sockets
            .iter()
            .map(|socket| {
                opcode::Send::new(types::Fd(socket.as_raw_fd()), frame.as_ptr(), length)
                    .flags(rustix::net::RecvFlags::WAITALL.bits().cast_signed())
                    .build()
                    .user_data(u64::from(length))
            })
            .collect();
        self.complete(&sends);
    }

    /// Submits, and waits for all. Each entry's user data is the result that is expected of it.
    fn complete(&mut self, entries: &[squeue::Entry]) {
        for entry in entries {
            // SAFETY: What an entry points to is borrowed by this function's callers, which return
            // after the kernel is done with all entries.
            unsafe { self.0.submission().push(entry).expect("room for all") };
        }
        self.0.submit_and_wait(entries.len()).expect("submits");
        let mut done = 0;
        for completion in self.0.completion() {
            assert_eq!(i64::from(completion.result()), completion.user_data().cast_signed());
            done += 1;
        }
        assert_eq!(done, entries.len());
    }
}
