//! Limits on memory and work, compared with an estimate before the work starts.
//!
//! If the size of the work is not known in advance, the work counts steps by [`spend`], inside [`counted`].
//!
//! Items that [`crate::parallel`] computes concurrently share the limit of memory. An item that does not fit into
//! memory together with the others is computed after them.

use std::{
    cell::Cell,
    panic::resume_unwind,
    sync::{
        OnceLock, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// An estimate that exceeds a limit. The message names the work, the estimate and the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverLimit {
    what: &'static str,
    needs: u128,
    limit: u64,
    memory: bool,
}

/// Formats `count` bytes (if `memory`) or `count` steps for a sentence, such as `1.5 GB`.
pub fn amount(memory: bool, count: f64) -> String {
    const UNITS: [(f64, &str); 5] = [(1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e8, "GB"), (1e5, "MB")];
    if !memory {
        return format!("{count:.1e} steps");
    }
    match UNITS.iter().find(|(least, _)| count >= *least) {
        // Amounts from 0.1 GB are written in GB, and amounts from 0.1 MB in MB.
        Some((1e8, unit)) => format!("{:.1} {unit}", count / 1e9),
        Some((1e5, unit)) => format!("{:.1} {unit}", count / 1e6),
        Some((least, unit)) => format!("{:.1} {unit}", count / least),
        None => format!("{count:.0} bytes"),
    }
}

impl std::fmt::Display for OverLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, memory, .. } = *self;
        let (needs, limit) = (amount(memory, self.needs as f64), amount(memory, self.limit as f64));
        let (of, raise) = if memory { (" of memory", "raise the limit (--limit-memory), ") } else { ("", "") };
        write!(
            f,
            "{what} needs about {needs}{of}, and the limit is {limit}; ask for less, {raise}or lift all limits (--no-limit)"
        )
    }
}

impl std::error::Error for OverLimit {}

/// The default limit of steps. At one to a few nanoseconds per step, this is one to a few minutes of one core.
pub const DEFAULT_STEPS: u64 = 1 << 36;

/// The least estimates that are reported as notes: a gigabyte of memory, and a quarter of the default limit of steps.
const NOTED_BYTES: u128 = 1_000_000_000;
const NOTED_STEPS: u128 = 1 << 34;

/// A receiver of the sentences of [`remark`] and [`warn`], and of notes about large work that is admitted.
pub type Note = Box<dyn Fn(String) + Send + Sync>;

static NOTE: RwLock<Option<Note>> = RwLock::new(None);

/// Sets the receiver of the sentences of [`remark`] and [`warn`], and of notes about admitted work that takes at least
/// a gigabyte or a quarter of [`DEFAULT_STEPS`]; `None` removes the receiver.
pub fn set_note(note: Option<Note>) {
    *NOTE.write().unwrap_or_else(std::sync::PoisonError::into_inner) = note;
}

fn note(what: &str, memory: bool, needs: u128) {
    if NOTED.get() && !memory {
        return;
    }
    let of = || if memory { " of memory".to_owned() } else { format!(" and may take {} of a core", duration(needs)) };
    remark(|| format!("{what} needs about {}{}", amount(memory, needs as f64), of()));
}

/// Formats the time of `steps` steps at 1 to 4 ns each, as `17 to 69 s` or `2 to 8 minutes`.
fn duration(steps: u128) -> String {
    let seconds = steps as f64 / 1e9;
    if seconds < 60.0 {
        format!("{seconds:.0} to {:.0} s", 4.0 * seconds)
    } else {
        format!("{:.0} to {:.0} minutes", seconds / 60.0, 4.0 * seconds / 60.0)
    }
}

/// Passes a sentence about large work to the receiver of notes, if there is one. Such a sentence names, for example,
/// the parts of a result that were left out.
pub fn remark(sentence: impl FnOnce() -> String) {
    if let Some(note) = &*NOTE.read().unwrap_or_else(std::sync::PoisonError::into_inner) {
        note(sentence());
    }
}

static WARN: OnceLock<fn(String)> = OnceLock::new();

/// Sets the receiver of warnings, which is used if there is no receiver of notes. Only the first call has an effect.
pub fn set_warn(warn: fn(String)) {
    let _ = WARN.set(warn);
}

/// Passes a sentence that every user should see, such as a fault of the user's own algorithm, to the receiver of notes
/// or, if there is none, to the receiver of warnings.
pub fn warn(sentence: String) {
    match (&*NOTE.read().unwrap_or_else(std::sync::PoisonError::into_inner), WARN.get()) {
        (Some(note), _) => note(sentence),
        (None, Some(warn)) => warn(sentence),
        (None, None) => {}
    }
}

static BYTES: AtomicU64 = AtomicU64::new(u64::MAX);
static STEPS: AtomicU64 = AtomicU64::new(DEFAULT_STEPS);

/// Sets the limits of the process: bytes of memory, and elementary steps. `u64::MAX` means no limit.
pub fn set(bytes: u64, steps: u64) {
    BYTES.store(bytes, Relaxed);
    STEPS.store(steps, Relaxed);
}

/// Returns the limits of the process: bytes, and steps.
pub fn get() -> (u64, u64) {
    (BYTES.load(Relaxed), STEPS.load(Relaxed))
}

/// Admits work that allocates about `bytes` and takes about `steps` elementary steps (a few nanoseconds each).
///
/// Inside [`counted`], the steps of all admitted work add up, so that many small pieces of work are refused too. Inside
/// an item of [`crate::parallel`], this function unwinds if the memory of the item and of concurrent items together
/// exceeds the limit.
///
/// # Errors
/// Returns an error if the estimate exceeds a limit.
pub fn admit(what: &'static str, bytes: u128, steps: u128) -> Result<(), OverLimit> {
    check(what, bytes, steps)?;
    hold(bytes);
    WHAT.set(what);
    let before = u128::from(SPENT.get().unwrap_or(0));
    let steps = before.saturating_add(steps);
    if bytes >= NOTED_BYTES {
        note(what, true, bytes);
    }
    if before < NOTED_STEPS && steps >= NOTED_STEPS {
        note(what, false, steps);
    }
    if SPENT.get().is_some() {
        SPENT.set(Some(u64::try_from(steps).unwrap_or(u64::MAX)));
    }
    Ok(())
}

/// Compares an estimate with the limits as [`admit`] does, but counts no steps, reserves no memory and sends no note.
///
/// # Errors
/// Returns an error if the estimate exceeds a limit.
pub fn check(what: &'static str, bytes: u128, steps: u128) -> Result<(), OverLimit> {
    let (most_bytes, most_steps) = get();
    let steps = u128::from(SPENT.get().unwrap_or(0)).saturating_add(steps);
    if most_bytes < u64::MAX && bytes > u128::from(most_bytes) {
        return Err(OverLimit { what, needs: bytes, limit: most_bytes, memory: true });
    }
    if most_steps < u64::MAX && steps > u128::from(most_steps) {
        return Err(OverLimit { what, needs: steps, limit: most_steps, memory: false });
    }
    Ok(())
}

thread_local! {
    /// Steps of the current work; `None` outside [`counted`].
    static SPENT: Cell<Option<u64>> = const { Cell::new(None) };
    /// The count at the end of the last [`counted`] or [`counted_after`].
    static LAST: Cell<u64> = const { Cell::new(0) };
    /// The name of the work whose steps were counted last.
    static WHAT: Cell<&'static str> = const { Cell::new("the work") };
    /// In an item of [`crate::parallel`]: true if a note about the steps of all items was already sent.
    static NOTED: Cell<bool> = const { Cell::new(false) };
    /// The largest memory admitted at once for the current item of [`crate::parallel`], in bytes; `None` if no other
    /// item can run concurrently.
    static OWN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The sum of [`OWN`], in bytes, of all items that run concurrently.
static HELD: AtomicU64 = AtomicU64::new(0);

/// The payload with which an item unwinds if its memory and the memory of the other items together exceed the limit.
pub(crate) struct Crowded;

/// Reserves the bytes of an item in addition to those of the other items that run. Unwinds with the payload [`Crowded`]
/// if other items run and all items together exceed the limit.
fn hold(bytes: u128) {
    let Some(own) = OWN.get() else { return };
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    if bytes > own {
        let others = HELD.fetch_add(bytes - own, Relaxed).saturating_sub(own);
        let most = BYTES.load(Relaxed);
        if others > 0 && most < u64::MAX && others.saturating_add(bytes) > most {
            HELD.fetch_sub(bytes - own, Relaxed);
            resume_unwind(Box::new(Crowded));
        }
        OWN.set(Some(bytes));
    }
}

/// Runs an item of [`crate::parallel`] whose memory counts towards the limit together with that of concurrent items.
pub(crate) fn beside<R>(item: impl FnOnce() -> R) -> R {
    struct Release(Option<u64>);
    impl Drop for Release {
        fn drop(&mut self) {
            HELD.fetch_sub(OWN.replace(self.0).unwrap_or(0), Relaxed);
        }
    }
    let _release = Release(OWN.replace(Some(0)));
    item()
}

/// Runs an item and returns its value and steps. The steps are added to `earlier`, the steps of other items. One note
/// is sent when the sum, with the caller's steps, reaches [`NOTED_STEPS`].
pub(crate) fn after_others<R>(earlier: &AtomicU64, item: impl FnOnce() -> (R, u64)) -> (R, u64) {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            NOTED.set(self.0);
        }
    }
    let before = SPENT.get().unwrap_or(0);
    let is_noted = |steps: u64| u128::from(before.saturating_add(steps)) >= NOTED_STEPS;
    let (found, steps) = {
        let _restore = Restore(NOTED.replace(NOTED.get() || is_noted(earlier.load(Relaxed))));
        item()
    };
    let others = earlier.fetch_add(steps, Relaxed);
    let all = others.saturating_add(steps);
    if !is_noted(others) && is_noted(all) && !is_noted(steps) {
        note(WHAT.get(), false, before.saturating_add(all).into());
    }
    (found, steps)
}

/// Returns the steps of the last [`counted`] work of this thread: the sum of those of [`admit`] and of [`spend`].
pub fn last_counted() -> u64 {
    LAST.get()
}

/// Runs `work` and counts, from 0, the steps that it passes to [`spend`] and [`admit`].
pub fn counted<R>(work: impl FnOnce() -> R) -> R {
    counted_after(Some(0), work)
}

/// Returns the steps of the work under way; `None` outside of [`counted`].
pub(crate) fn counted_steps() -> Option<u64> {
    SPENT.get()
}

/// Returns true if `steps` further steps are within the limit.
pub(crate) fn has_left(steps: u64) -> bool {
    check("", 0, steps.into()).is_ok()
}

/// Adds the steps of an item of [`crate::parallel`] to this thread's count. They were already compared with the limit.
pub(crate) fn add(steps: u64) {
    SPENT.set(SPENT.get().map(|spent| spent.saturating_add(steps)));
}

/// Runs `work` with a count that begins at `before` steps, or without a count if `before` is `None`.
pub(crate) fn counted_after<R>(before: Option<u64>, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<u64>);
    impl Drop for Restore {
        fn drop(&mut self) {
            LAST.set(SPENT.replace(self.0).unwrap_or(0));
        }
    }
    let _restore = Restore(SPENT.replace(before));
    work()
}

/// Adds steps to the count of [`counted`], and unwinds with the payload [`OverLimit`] if the count exceeds the limit.
/// Has no effect outside [`counted`].
pub fn spend(what: &'static str, steps: u64) {
    let Some(spent) = SPENT.get() else { return };
    let before = spent;
    let spent = before.saturating_add(steps);
    SPENT.set(Some(spent));
    WHAT.set(what);
    let limit = STEPS.load(Relaxed);
    if spent > limit && limit < u64::MAX {
        resume_unwind(Box::new(OverLimit { what, needs: spent.into(), limit, memory: false }));
    }
    if u128::from(before) < NOTED_STEPS && u128::from(spent) >= NOTED_STEPS {
        note(what, false, spent.into());
    }
}

/// Admits memory as [`admit`] does, for functions without errors: unwinds with the payload [`OverLimit`]. Has no effect
/// outside [`counted`].
pub fn take(what: &'static str, bytes: u128) {
    if SPENT.get().is_some()
        && let Err(over) = admit(what, bytes, 0)
    {
        resume_unwind(Box::new(over));
    }
}
