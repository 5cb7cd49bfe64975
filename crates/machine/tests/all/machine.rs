//! Tests of `machine`.

use unisono_machine::{KINDS, Machine, PRESETS, Shape, Wafer};

#[test]
fn presets_read_and_print_back() {
    for preset in PRESETS.iter() {
        let machine = Machine::preset(preset.name).unwrap();
        assert_eq!(machine.name(), preset.name);
        assert_eq!(Machine::from_toml(&machine.to_toml(), "printed").unwrap(), machine);
    }
}

#[test]
fn shapes_fit_in_either_orientation() {
    let machine = Machine::preset("wse2").unwrap();
    let w: &Wafer = machine.get().unwrap();
    for text in ["512", "996", "757x996", "996x757", "1x1"] {
        assert!(w.choose(Some(text.parse::<Shape>().unwrap())).is_ok(), "{text}");
    }
    let refused = |text: &str| w.choose(Some(text.parse::<Shape>().unwrap())).unwrap_err().to_string();
    let what = "does not fit on wse2, which has 996 rows and 757 columns of PEs";
    for text in ["997", "997x2", "758x758", "1000x1000"] {
        assert_eq!(refused(text), format!("shape {text} {what}, in either orientation"));
    }
    assert!(w.choose(None).unwrap_err().to_string().contains("choose the part"));
    for text in ["", "0", "4x0", "-4", "4x", "4x4x4", "a"] {
        assert!(text.parse::<Shape>().is_err(), "{text}");
    }
}

#[test]
fn missing_keys_are_named_together() {
    for preset in PRESETS.iter() {
        let whole: toml::Table = preset.toml.parse().unwrap();
        let without = |keys: &[&str]| {
            let mut table = whole.clone();
            keys.iter().for_each(|key| drop(table.remove(*key)));
            Machine::from_toml(&table.to_string(), "m.toml").map_err(|e| e.to_string())
        };
        // The message names a missing required key, or both of two missing keys.
        let needed: Vec<&str> = whole
            .keys()
            .map(String::as_str)
            .filter(|key| *key != "kind" && without(&[key]).is_err_and(|e| e.starts_with("m.toml: the key ")))
            .collect();
        assert!(needed.contains(&"name"), "{}: {needed:?}", preset.name);
        let [first, .., last] = needed[..] else { continue };
        let e = without(&[first, last]).unwrap_err();
        assert!(e.starts_with("m.toml: the keys ") && e.contains(first) && e.contains(last), "{e}");
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    let wse2 = PRESETS.iter().find(|p| p.name == "wse2").unwrap();
    let text = wse2.toml.replace("colors = 24", "colours = 24");
    let e = Machine::from_toml(&text, "my.toml").unwrap_err().to_string();
    assert!(e.starts_with("my.toml, line 11: unknown field `colours`"), "{e}");
    let e = Machine::from_toml("kind = 'toaster'", "t.toml").unwrap_err().to_string();
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    assert!(kinds.is_sorted(), "{kinds:?}");
    assert_eq!(e, format!("t.toml: kind is 'toaster'; accepted is {}", kinds.join(", ")));
    let e = Machine::preset("wse9").unwrap_err().to_string();
    let names: Vec<&str> = PRESETS.iter().map(|p| p.name).collect();
    assert_eq!(e, format!("'wse9' is neither a machine preset nor a machine file; presets are {}", names.join(", ")));
}
