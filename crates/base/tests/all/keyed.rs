//! Tests of `keyed`: structs are read only from objects, at any depth and from any source; errors name the nearest key.

use serde::Deserialize;
use unisono_base::keyed::{self, with_nearest};

#[derive(Deserialize, PartialEq, Debug)]
struct Outer {
    list: Vec<Inner>,
    pair: (u32, Inner),
    maybe: Option<Inner>,
    one: Either,
    #[serde(default, deserialize_with = "keyed::optional")]
    tagged: Option<Tagged>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Inner {
    a: u32,
    b: u32,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(rename_all = "lowercase")]
enum Either {
    Whole(Inner),
    Parts { a: u32 },
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Tagged {
    Number { n: u32 },
}

const INNER: &str = r#"{"a":1,"b":2}"#;

fn document(place: usize, written: &str) -> String {
    let at = |n: usize, whole: &str| if n == place { written.to_owned() } else { whole.to_owned() };
    let tagged = at(4, r#"{"kind":"number","n":3}"#);
    let (a, b, c, d) = (at(0, INNER), at(1, INNER), at(2, INNER), at(3, INNER));
    format!(r#"{{"list":[{a}],"pair":[7,{b}],"maybe":{c},"one":{{"whole":{d}}},"tagged":{tagged}}}"#)
}

#[test]
fn no_struct_is_read_from_an_array() {
    let whole = document(9, "");
    let read = keyed::json::<Outer>(whole.as_bytes()).unwrap();
    assert_eq!(read, serde_json::from_str(&whole).unwrap());
    for (place, written) in [(0, "[1,2]"), (1, "[1,2]"), (2, "[1,2]"), (3, "[1,2]"), (4, r#"["number",3]"#)] {
        let text = document(place, written);
        let error = keyed::json::<Outer>(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("invalid type: sequence, expected an object"), "{text}: {error}");
    }
    assert!(keyed::json::<Either>(br#"{"parts":[1]}"#).is_err());
    assert!(keyed::json::<Inner>(b"[1,2]").is_err());
    assert!(keyed::json::<Inner>(br#"{"a":1,"b":2} 3"#).is_err(), "what follows is no part of the value");
    assert_eq!(keyed::json::<Option<Inner>>(b"null").unwrap(), None);
}

#[test]
fn a_key_that_is_not_known_has_its_nearest() {
    let said = |found: &str| with_nearest(&format!("unknown field `{found}`, expected one of `link_gbps`, `name`"));
    assert_eq!(
        said("link_gpbs"),
        "unknown field `link_gpbs` (did you mean `link_gbps`?), expected one of `link_gbps`, `name`"
    );
    assert!(said("nam").contains("(did you mean `name`?)"));
    assert_eq!(said("colour"), "unknown field `colour`, expected one of `link_gbps`, `name`");
    assert_eq!(with_nearest("missing field `a`"), "missing field `a`");
}
