//! The contents of a buffer or a stream: intervals of elements with one expression each.

use unisono_base::{Span, narrow};

/// The value of an element that was read before it was written. The read is reported as a finding.
pub const LOST: u32 = u32::MAX;

/// The elements `start .. start + len` hold the expression `value` over the input elements `index .. index + len`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Segment {
    pub start: u32,
    pub len: u32,
    pub value: u32,
    pub index: u32,
}

impl Segment {
    #[inline]
    pub fn end(&self) -> u32 {
        self.start + self.len
    }

    /// Returns the part of the segment inside `span`, moved so that `span` starts at `base`.
    pub fn cut(&self, span: Span, base: u32) -> Segment {
        let start = self.start.max(span.start);
        let end = u64::from(self.end()).min(span.end());
        Segment {
            start: start - span.start + base,
            len: (end - u64::from(start)) as u32,
            value: self.value,
            index: self.index.wrapping_add(start - self.start),
        }
    }

    pub fn moved(&self, by: u32) -> Segment {
        Segment { start: self.start + by, ..*self }
    }

    fn goes_on_in(&self, next: &Segment) -> bool {
        let joined = self.end() == next.start && self.value == next.value;
        joined && (self.value == LOST || self.index.wrapping_add(self.len) == next.index)
    }
}

/// Appends a segment, or extends the last one if the segment continues it.
#[inline]
pub fn push_merged(into: &mut Vec<Segment>, segment: Segment) {
    match into.last_mut() {
        Some(last) if last.goes_on_in(&segment) => last.len += segment.len,
        _ => into.push(segment),
    }
}

/// The segments of a buffer, in ascending order. The array has a gap at the position of the last write. So a write that
/// continues upwards or downwards takes one step, for any number of segments.
#[derive(Default)]
pub struct Memory {
    /// Segments before `below` and from `above` on; entries between them are the gap.
    segments: Vec<Segment>,
    below: usize,
    above: usize,
}

impl Memory {
    pub fn len(&self) -> usize {
        self.below + self.segments.len() - self.above
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of segments for which memory is allocated.
    pub fn allocated(&self) -> usize {
        self.segments.len()
    }

    fn below(&self) -> &[Segment] {
        &self.segments[..self.below]
    }

    fn above(&self) -> &[Segment] {
        &self.segments[self.above..]
    }

    /// Returns true if both buffers have the same segments.
    pub fn holds_as(&self, other: &Self) -> bool {
        self.below().iter().chain(self.above()).eq(other.below().iter().chain(other.above()))
    }

    /// Returns the segments that overlap `span`, in ascending order.
    #[inline]
    pub fn touching(&self, span: Span) -> impl Iterator<Item = &Segment> {
        let (below, above) = (self.below(), self.above());
        let from = match below.last() {
            Some(last) if last.end() > span.start => below.partition_point(|s| s.end() <= span.start),
            _ => below.len(),
        };
        let skipped = match above.first() {
            Some(first) if first.end() <= span.start => above.partition_point(|s| s.end() <= span.start),
            _ => 0,
        };
        let all = below[from..].iter().chain(&above[skipped..]);
        all.take_while(move |s| u64::from(s.start) < span.end())
    }

    /// Replaces the contents of `span` by `contents`, whose positions are relative to the start of the span. Returns
    /// the number of segments that were read or written.
    #[inline]
    pub fn overwrite(&mut self, span: Span, contents: &[Segment]) -> u64 {
        if let [one] = contents
            && let Some(same) = self.exactly(span)
        {
            *same = one.moved(span.start);
            return 1;
        }
        let mut steps = contents.len() as u64 + self.move_gap(span.start) as u64;
        while let Some(last) = self.below().last().copied().filter(|s| s.end() > span.start) {
            steps += 1;
            self.below -= 1;
            // A segment that starts before the span and continues in it is cut in two.
            if last.start < span.start {
                self.push_below(Segment { len: span.start - last.start, ..last });
                let rest = Span::new(span.start, last.end() - span.start);
                self.push_above(last.cut(rest, span.start));
                break;
            }
            self.push_above(last);
        }
        while let Some(first) = self.above().first().copied().filter(|s| u64::from(s.start) < span.end()) {
            steps += 1;
            self.above += 1;
            if first.end() <= span.start {
                self.push_below(first);
            } else if first.start < span.start {
                self.push_below(Segment { len: span.start - first.start, ..first });
                let rest = Span::new(span.start, first.end() - span.start);
                self.push_above(first.cut(rest, span.start));
            } else if u64::from(first.end()) > span.end() {
                let end = span.end() as u32;
                self.push_above(first.cut(Span::new(end, first.end() - end), end));
                break;
            }
        }
        for segment in contents {
            let segment = segment.moved(span.start);
            match self.segments[..self.below].last_mut() {
                Some(last) if last.goes_on_in(&segment) => last.len += segment.len,
                _ => self.push_below(segment),
            }
        }
        if let (Some(last), Some(next)) = (self.below().last(), self.above().first().copied())
            && last.goes_on_in(&next)
        {
            self.segments[self.below - 1].len += next.len;
            self.above += 1;
        }
        steps
    }

    /// Moves the gap to `start`. Moves all segments between the old and the new position at once, and returns their
    /// number.
    #[inline]
    fn move_gap(&mut self, start: u32) -> usize {
        let (below, above) = (self.below, self.above);
        if self.below().last().is_some_and(|last| last.start >= start) {
            self.below = self.below().partition_point(|s| s.start < start);
            self.above -= below - self.below;
            self.segments.copy_within(self.below..below, self.above);
        } else if self.above().first().is_some_and(|first| first.end() <= start) {
            self.above += self.above().partition_point(|s| s.end() <= start);
            self.below += self.above - above;
            self.segments.copy_within(above..self.above, below);
        }
        below.abs_diff(self.below)
    }

    fn push_below(&mut self, segment: Segment) {
        self.make_room();
        self.segments[self.below] = segment;
        self.below += 1;
    }

    fn push_above(&mut self, segment: Segment) {
        self.make_room();
        self.above -= 1;
        self.segments[self.above] = segment;
    }

    /// Enlarges the gap if it has no free entry.
    fn make_room(&mut self) {
        if self.below == self.above {
            let len = self.segments.len();
            // The array of a large buffer grows slowly, so that it takes little more memory than allowed.
            let more = if len < 1 << 16 { len.max(4) } else { len / 8 };
            self.segments.reserve_exact(more);
            self.segments.resize(len + more, Segment { start: 0, len: 0, value: LOST, index: 0 });
            self.segments.copy_within(self.above..len, self.above + more);
            self.above += more;
        }
    }

    /// Returns the segment that covers exactly `span`, if there is one.
    fn exactly(&mut self, span: Span) -> Option<&mut Segment> {
        let is = |s: &Segment| s.start == span.start && s.len == span.len;
        let side = if self.below().last().is_some_and(|s| s.end() > span.start) {
            &mut self.segments[..self.below]
        } else {
            &mut self.segments[self.above..]
        };
        // Most writes go to the gap, where no search is needed.
        if side.first().is_none_or(|first| first.start > span.start) {
            return None;
        }
        let at = side.partition_point(|s| s.end() <= span.start);
        side.get_mut(at).filter(|s| is(s))
    }
}

/// Segments of a stream. If the stream has only one sink, popped segments are dropped.
#[derive(Default)]
pub struct Queue {
    segments: Segments,
    /// Number of segments at the front that no sink reads again.
    dropped: u32,
    /// Number of elements popped by the only sink; 0 if there are several sinks.
    popped: u32,
}

/// The segments of a queue. Most queues have one segment, which is stored inline.
#[derive(Default)]
enum Segments {
    #[default]
    Empty,
    One(Segment),
    Many(Vec<Segment>),
}

impl Queue {
    fn segments(&self) -> &[Segment] {
        match &self.segments {
            Segments::Empty => &[],
            Segments::One(one) => std::slice::from_ref(one),
            Segments::Many(many) => many,
        }
    }

    pub fn len(&self) -> usize {
        self.segments().len()
    }

    /// Returns the number of elements pushed. After a stream was cleared, nothing is pushed to it.
    pub fn pushed(&self) -> u32 {
        self.segments().last().map_or(0, Segment::end)
    }

    /// Removes `len` elements at the only sink, and returns the position of the first one in the stream.
    pub fn pop(&mut self, len: u32) -> u32 {
        self.popped += len;
        self.popped - len
    }

    pub fn push(&mut self, segment: Segment) {
        match &mut self.segments {
            Segments::Empty => self.segments = Segments::One(segment),
            Segments::One(one) if one.goes_on_in(&segment) => one.len += segment.len,
            Segments::One(one) if one.end() <= self.popped => *one = segment,
            Segments::One(one) => self.segments = Segments::Many(vec![*one, segment]),
            Segments::Many(many) => push_merged(many, segment),
        }
    }

    pub fn touching(&self, span: Span) -> impl Iterator<Item = &Segment> {
        let rest = &self.segments()[self.dropped as usize..];
        let from = match rest.first() {
            Some(first) if first.end() <= span.start => rest.partition_point(|s| s.end() <= span.start),
            _ => 0,
        };
        rest[from..].iter().take_while(move |s| u64::from(s.start) < span.end())
    }

    /// Drops segments that the only sink has popped.
    pub fn drop_popped(&mut self) {
        let Segments::Many(segments) = &mut self.segments else { return };
        let mut dropped = self.dropped as usize;
        dropped += segments[dropped..].iter().take_while(|s| s.end() <= self.popped).count();
        // Some popped segments are kept. The last segment is always kept, because the next push may extend it.
        dropped = dropped.min(segments.len() - 1);
        if dropped >= 16 && 2 * dropped >= segments.len() {
            segments.drain(..dropped);
            dropped = 0;
            // Memory is freed, because each of many streams may be full at a different time.
            if segments.capacity() >= 4 * segments.len() {
                segments.shrink_to(2 * segments.len());
            }
        }
        self.dropped = narrow(dropped);
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
