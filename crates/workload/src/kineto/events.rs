//! The parts of a trace that are read; all other keys are ignored.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::Value;
use unisono_base::{excerpt, interrupt::poll};
use unisono_collective::Kind;

#[derive(Deserialize)]
pub struct Trace<'a> {
    #[serde(rename = "distributedInfo")]
    pub distributed: Option<Distributed>,
    /// The events that take time on a device, each with its index in the file.
    #[serde(rename = "traceEvents", borrow, deserialize_with = "on_device")]
    pub events: Vec<(u64, Event<'a>)>,
}

const MOST_EVENTS: usize = 1 << 20;

/// Reads events one by one and drops events of the host at once, so that these take no memory.
fn on_device<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<(u64, Event<'de>)>, D::Error> {
    struct OnDevice;
    impl<'de> Visitor<'de> for OnDevice {
        type Value = Vec<(u64, Event<'de>)>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list of events")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut kept = Vec::new();
            let mut number = 0;
            while let Some(event) = list.next_element::<Event<'de>>()? {
                poll();
                if event.is_on_device() {
                    kept.push((number, event));
                }
                if kept.len() > MOST_EVENTS {
                    return Err(A::Error::custom(format!("more than {MOST_EVENTS} device events")));
                }
                number += 1;
            }
            Ok(kept)
        }
    }
    list.deserialize_seq(OnDevice)
}

#[derive(Deserialize)]
pub struct Distributed {
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    /// The list of the rank's process groups, as JSON.
    #[serde(default)]
    pg_config: Value,
}

impl Distributed {
    /// Returns the ranks of a process group; `None` if the trace does not list them, or lists none.
    ///
    /// # Errors
    /// Returns an error if the list of groups, or of the ranks of this group, is invalid.
    pub fn ranks_of(&self, name: &str) -> Result<Option<Vec<u32>>, String> {
        if self.pg_config.is_null() {
            return Ok(None);
        }
        let groups = self.pg_config.as_array().filter(|groups| groups.iter().all(Value::is_object));
        let wrong = || format!("pg_config is {}; accepted is a list of process groups", shown(&self.pg_config));
        let mut groups = groups.ok_or_else(wrong)?.iter();
        let is_it = |group: &&Value| group.get("pg_name").is_some_and(|found| text_of(found) == name);
        let Some(ranks) = groups.find(is_it).and_then(|group| group.get("ranks")).filter(|ranks| !ranks.is_null())
        else {
            return Ok(None);
        };
        let listed = ranks.as_array().and_then(|ranks| ranks.iter().map(rank_of).collect::<Option<Vec<u32>>>());
        let wrong = || {
            format!("the ranks of process group '{}' are {}; accepted is a list of ranks", excerpt(name), shown(ranks))
        };
        Ok(Some(listed.ok_or_else(wrong)?).filter(|ranks| !ranks.is_empty()))
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn rank_of(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|rank| u32::try_from(rank).ok())
}

#[derive(Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, default)]
    pub cat: Cow<'a, str>,
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    /// Begin in microseconds; `dur` is the duration.
    #[serde(default)]
    ts: Value,
    #[serde(default)]
    dur: Value,
    #[serde(default)]
    pub args: Option<Arguments>,
}

#[derive(Deserialize, Default)]
pub struct Arguments {
    #[serde(rename = "Collective name")]
    pub collective: Option<String>,
    #[serde(rename = "In msg nelems", default)]
    input: Value,
    #[serde(rename = "Out msg nelems", default)]
    output: Value,
    #[serde(rename = "In split size", default)]
    input_split: Value,
    #[serde(rename = "Out split size", default)]
    output_split: Value,
    #[serde(default)]
    pub dtype: Option<String>,
    #[serde(rename = "Group size", default)]
    size: Value,
    #[serde(rename = "Process Group Name", default)]
    pub group: Value,
    #[serde(rename = "Process Group Ranks", default)]
    ranks: Value,
    #[serde(rename = "Src Rank", default)]
    source: Value,
    #[serde(rename = "Dst Rank", default)]
    destination: Value,
}

/// Returns a finite number, which may be written as text.
fn number(value: &Value) -> Option<f64> {
    let found = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    found.filter(|number| number.is_finite())
}

fn count(name: &str, value: &Value) -> Result<Option<u64>, String> {
    let found = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    found.map(Some).ok_or_else(|| format!("'{name}' is {}; accepted is a number of at least 0", shown(value)))
}

fn shown(value: &Value) -> String {
    excerpt(&value.to_string())
}

impl Event<'_> {
    /// Returns the start and the end in microseconds.
    pub fn times(&self) -> Result<(f64, f64), String> {
        let begin = number(&self.ts).ok_or_else(|| format!("ts is {}; accepted are microseconds", shown(&self.ts)))?;
        let taken = number(&self.dur).filter(|&taken| taken >= 0.0);
        let taken = taken.ok_or_else(|| format!("dur is {}; accepted are microseconds", shown(&self.dur)))?;
        Ok((begin, begin + taken))
    }

    /// Returns whether the event takes time on a device: a kernel, a copy or a fill.
    pub fn is_on_device(&self) -> bool {
        matches!(&*self.cat.to_ascii_lowercase(), "kernel" | "gpu_memcpy" | "gpu_memset")
    }
}

impl Arguments {
    pub fn elements(&self) -> Result<(Option<u64>, Option<u64>), String> {
        Ok((count("In msg nelems", &self.input)?, count("Out msg nelems", &self.output)?))
    }

    /// Returns whether an allgather, a reduce-scatter or an alltoall has parts of unequal sizes. The parts are unequal
    /// if the larger buffer cannot be divided into equal parts for all ranks, or if the listed numbers of elements for,
    /// or from, the ranks differ. The profiler writes an empty list for equal parts, and may cut off the end of a long
    /// list.
    pub fn has_unequal_parts(&self, kind: Kind) -> Result<bool, String> {
        let (input, output) = self.elements()?;
        let (part, all) = match kind {
            Kind::Allgather => (input, output),
            Kind::ReduceScatter => (output, input),
            Kind::Alltoall => (None, None),
            _ => return Ok(false),
        };
        if let (Some(part), Some(all), Some(size)) = (part, all, self.group_size()?) {
            return Ok(part.checked_mul(size) != Some(all));
        }
        if kind != Kind::Alltoall {
            return Ok(false);
        }
        if let (Some(input), Some(output)) = (input, output)
            && input != output
        {
            return Ok(true);
        }
        let lists = [("In split size", &self.input_split, input), ("Out split size", &self.output_split, output)];
        for (name, value, all) in lists {
            let wrong = || format!("'{name}' is {}; accepted is a list of numbers of elements", shown(value));
            let parts = match value {
                Value::Null => continue,
                Value::Array(parts) => parts.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>(),
                Value::String(text) => listed_before_cut(text),
                _ => None,
            };
            let parts = parts.ok_or_else(wrong)?;
            let Some(&first) = parts.first() else { continue };
            let is_sum = self.group_size()?.zip(all).is_none_or(|(size, all)| first.checked_mul(size) == Some(all));
            if !is_sum || parts.iter().any(|&part| part != first) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn group_size(&self) -> Result<Option<u64>, String> {
        count("Group size", &self.size)
    }

    /// Returns the name of the group, or its number as text; empty if there is no group.
    pub fn group_name(&self) -> Result<String, String> {
        match &self.group {
            Value::Null => Ok(String::new()),
            Value::String(_) | Value::Number(_) => Ok(text_of(&self.group)),
            other => Err(format!("'Process Group Name' is {}; accepted are a text and a number", shown(other))),
        }
    }

    /// Returns the receiver of a message if `sends`, otherwise its sender.
    pub fn peer(&self, sends: bool) -> Result<u32, String> {
        let (name, value) = if sends { ("Dst Rank", &self.destination) } else { ("Src Rank", &self.source) };
        let found = count(name, value)?.ok_or_else(|| format!("a message has no '{name}'"))?;
        u32::try_from(found).map_err(|_| format!("'{name}' is {found}; accepted is the number of a rank"))
    }

    /// Returns the ranks of the group: a list, or a list as text, whose end the profiler may have cut off; `None` if
    /// there is no list.
    pub fn group_ranks(&self) -> Result<Option<Vec<u32>>, String> {
        let wrong = || format!("'Process Group Ranks' is {}; accepted is a list of all ranks", shown(&self.ranks));
        let list = |list: &[Value]| list.iter().map(rank_of).collect::<Option<Vec<u32>>>().ok_or_else(wrong);
        match &self.ranks {
            Value::Null => Ok(None),
            Value::String(text) if text.trim().is_empty() => Ok(None),
            Value::Array(ranks) => list(ranks).map(Some),
            Value::String(text) if text.contains("...") => {
                let size =
                    self.group_size()?.ok_or("'Process Group Ranks' is cut off, and there is no 'Group size'")?;
                continued(text, size).map(Some).ok_or_else(|| {
                    format!(
                        "'Process Group Ranks' is {}, which does not determine the other ranks; accepted are ranks at equal \
                         distances, or pg_config of distributedInfo with all ranks",
                        shown(&self.ranks)
                    )
                })
            }
            Value::String(text) => match serde_json::from_str(text) {
                Ok(Value::Array(ranks)) => list(&ranks).map(Some),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

/// The maximum number of ranks of a group whose list is completed.
const MOST_CONTINUED: u64 = 1 << 22;

/// Returns the numbers of a list as text, up to a `...` at which its end was cut off.
fn listed_before_cut(text: &str) -> Option<Vec<u64>> {
    let parts = text.trim().strip_prefix('[')?.strip_suffix(']')?.split(',').map(str::trim);
    parts.take_while(|&part| part != "...").filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
}

/// Completes a list that ends with `...`, or with `...` and the last rank, to `size` ranks. The distance between ranks
/// is that of the listed first ranks. Returns `None` if the ranks do not have equal distances, or if `size` contradicts
/// the listed ranks.
fn continued(text: &str, size: u64) -> Option<Vec<u32>> {
    let parts: Vec<&str> = text.trim().strip_prefix('[')?.strip_suffix(']')?.split(',').map(str::trim).collect();
    let cut = parts.iter().position(|&part| part == "...")?;
    let listed: Vec<u64> = parts[..cut].iter().map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [first, second, ..] = listed[..] else { return None };
    let distance = second.checked_sub(first).filter(|&distance| distance > 0)?;
    if size > MOST_CONTINUED || size < listed.len() as u64 {
        return None;
    }
    let rank = |at: u64| distance.checked_mul(at)?.checked_add(first).and_then(|rank| u32::try_from(rank).ok());
    let all: Vec<u32> = (0..size).map(rank).collect::<Option<_>>()?;
    let begins = listed.iter().zip(&all).all(|(&listed, &rank)| listed == u64::from(rank));
    let ends = match &parts[cut + 1..] {
        [] => true,
        [last] => all.last().map(u32::to_string).as_deref() == Some(*last),
        _ => false,
    };
    (begins && ends).then_some(all)
}

/// Returns the bytes of an element from PyTorch's name of its type, in C++ (`ScalarType`) or in Python; `None` if the
/// name is unknown. Source: `torch/headeronly/core/ScalarType.h` of PyTorch.
pub fn element_bytes(dtype: &str) -> Option<u32> {
    let name = dtype.to_ascii_lowercase();
    // Types with 1 to 7 bits for each number are stored with one byte for each element.
    let few_bits = name.strip_prefix('u').unwrap_or(&name).strip_prefix("int");
    if few_bits.is_some_and(|bits| matches!(bits.as_bytes(), [b'1'..=b'7'])) {
        return Some(1);
    }
    Some(match &*name {
        "byte" | "char" | "bool" | "uint8" | "int8" | "qint8" | "quint8" | "quint4x2" | "quint2x4" | "bits1x8"
        | "bits2x4" | "bits4x2" | "bits8" | "float4_e2m1fn_x2" => 1,
        "half" | "bfloat16" | "short" | "float16" | "int16" | "uint16" | "bits16" => 2,
        "float" | "int" | "float32" | "int32" | "uint32" | "qint32" | "complexhalf" | "complex32"
        | "float8_e8m0fnu_x4" => 4,
        "double" | "long" | "float64" | "int64" | "uint64" | "complexfloat" | "complex64" => 8,
        "complexdouble" | "complex128" => 16,
        name if name.starts_with("float8") => 1,
        _ => return None,
    })
}
