//! System calls that Rust's standard library lacks.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// Real-time priority of the fabric.
const PRIORITY: i32 = 50;

/// Moves this process into a new network namespace.
pub fn new_network() -> Result<()> {
    // SAFETY: the call takes no address.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Creates a network device for IP packets in this process's network namespace.
pub fn device(name: &str) -> Result<File> {
    let flags = libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the request is a structure of the type that this call reads and writes, and lives until it returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    Ok(file)
}

/// Requests exact timers and a real-time priority; without the right to this priority, the process keeps its own.
pub fn hurry() {
    // SAFETY: this option takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let priority = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the parameter is read during the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
}

/// Lets the system remove child processes that end.
pub fn ignore_children() {
    // SAFETY: no handler is installed, and no code of this program waits for a child.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Waits for input or errors on descriptors, for at most `nanoseconds`. Returns true for each descriptor with input or
/// an error; false for negative descriptors.
pub fn wait(descriptors: &[RawFd], nanoseconds: i64) -> Result<Vec<bool>> {
    let entry = |&fd: &RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = descriptors.iter().map(entry).collect();
    let limit = libc::timespec { tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000 };
    let count = entries.len() as libc::nfds_t;
    // SAFETY: the entries and the limit live until the call returns, `count` is the number of entries, and no signal
    // mask is given.
    let found = unsafe { libc::ppoll(entries.as_mut_ptr(), count, &raw const limit, std::ptr::null()) };
    match check(found) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        _ => Ok(entries.iter().map(|entry| entry.revents != 0).collect()),
    }
}

fn check(result: i32) -> Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
