//! A collective as modules that a user's program imports: its layout calls `get_params` of `NAME_layout.csl`, and each
//! PE imports `NAME_pe.csl` with these parameters and with the function that is called at the end.
//!
//! Each kind of PE (`plan.rs`) has a file that sets the routes of its router and imports the program of its class.
//! Colors and ids of tasks are parameters, because they must differ from those of the user's program. `compute` first
//! resets counters and descriptors, so that a program without switches may call it again. In such a program routes do
//! not change and each color has one source at each router, so the wavelets of a later run stay behind those of the
//! previous run.
//!
//! The files have the structure of the vendor's public benchmark libraries: a `layout.csl` with `get_params`, and a
//! `pe.csl` that configures colors by `@set_local_color_config` and calls a function given as parameter.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use unisono_machine::Grid;

use super::{
    Files, head, host, layout, operator,
    pe::{self, Form},
    plan::{Kind, Plan},
    steps::move_builtin,
};
use crate::SdkTarget;

/// Greatest number of kinds of PEs, each of which is a file.
const MOST_KINDS: usize = 8192;

/// Returns the files of a module. The names of its CSL files begin with the collective and its length.
///
/// # Errors
/// Returns an error for too many kinds of PEs.
pub fn files(plan: &Plan, target: &SdkTarget) -> Result<Files, String> {
    if plan.kinds.len() > MOST_KINDS {
        let found = plan.kinds.len();
        return Err(format!(
            "{found} kinds of PEs; a module has a file for each, {MOST_KINDS} at most; emit csl, or plan fewer PEs"
        ));
    }
    let (name, head) = (name(plan), head(target));
    let mut files = vec![
        (format!("{name}_layout.csl"), layout_module(plan, &head)),
        (format!("{name}_pe.csl"), pe_module(plan, &name, &head)),
    ];
    for (number, kind) in plan.kinds.iter().enumerate() {
        files.push((kind_file(&name, number), kind_module(plan, &name, kind, &head)));
    }
    let operators = format!("{name}_{}", operator::FILE);
    for (number, class) in plan.classes.iter().enumerate() {
        let text = pe::print(plan, class, target, Form::Module { operator: &operators });
        files.push((class_file(&name, number), text));
    }
    if plan.is_mapped() {
        files.extend(operator::module(&plan.collective, target).map(|text| (operators, text)));
    }
    files.push(("README.md".to_owned(), readme(plan, &name, &head)));
    if has_example(plan) {
        files.extend(example(plan, &name, target));
    }
    Ok(files)
}

fn name(plan: &Plan) -> String {
    format!("{}_{}", plan.collective.kind, plan.collective.elements).replace('-', "_")
}

fn kind_file(name: &str, kind: usize) -> String {
    format!("{name}_kind_{kind}.csl")
}

fn class_file(name: &str, class: usize) -> String {
    format!("{name}_program_{class}.csl")
}

/// Returns the declarations of the parameter `colors` and, if the program has tasks, `tasks`. Every file passes these
/// parameters to the files that it imports.
fn declared(plan: &Plan) -> String {
    let mut text = format!("param colors: [{}]color;\n", plan.colors.len());
    if !plan.tasks.is_empty() {
        let _ = writeln!(text, "{}", pe::tasks_param(plan));
    }
    text
}

/// Returns the parameters of [`declared`] with their values, as fields of a structure.
fn passed(plan: &Plan) -> &'static str {
    if plan.tasks.is_empty() { ".colors = colors" } else { ".colors = colors, .tasks = tasks" }
}

/// Returns a constant array with 16 numbers per line.
fn table(name: &str, dtype: &str, numbers: &[u32]) -> String {
    let lines: Vec<String> =
        numbers.chunks(16).map(|line| line.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")).collect();
    format!("const {name} = [{}]{dtype} {{\n  {}\n}};\n", numbers.len(), lines.join(",\n  "))
}

fn layout_module(plan: &Plan, head: &str) -> String {
    let grid = plan.grid;
    let mut text = format!(
        "// {}: the parameters of each PE, for the layout.\n// {head}\n\n{}\n",
        described(plan),
        declared(plan)
    );
    // Equal rows are stored once.
    let mut starts: Vec<u32> = Vec::new();
    let mut kinds: Vec<u32> = Vec::new();
    let mut start_of: FxHashMap<&[u32], u32> = FxHashMap::default();
    for row in plan.kind_of.chunks(grid.cols as usize) {
        starts.push(*start_of.entry(row).or_insert_with(|| {
            kinds.extend(row);
            unisono_base::narrow(kinds.len() - row.len())
        }));
    }
    text.push_str("// Where the kinds of each row begin, and the kinds of different rows.\n");
    text.push_str(&table("rows", "u32", &starts));
    text.push_str(&table("kinds", "u16", &kinds));
    let _ = write!(
        text,
        "\n// x is the column and y the row inside the collective's rectangle of {} columns and {} rows.\n\
         fn get_params(x: u16, y: u16) comptime_struct {{\n  return .{{ {}, .kind = kinds[rows[y] + @as(u32, x)] }};\n}}\n",
        grid.cols,
        grid.rows,
        passed(plan)
    );
    text
}

/// Returns the functions `compute`, `input_vector` and `output_vector`, which call those of the module `imported`.
fn functions(plan: &Plan, imported: &str) -> String {
    let dtype = plan.collective.dtype;
    format!(
        "fn compute() void {{\n  {imported}.compute();\n}}\n\nfn input_vector() [*]{dtype} {{\n  return {imported}.input_vector();\n}}\n\n\
         fn output_vector() [*]{dtype} {{\n  return {imported}.output_vector();\n}}\n"
    )
}

fn pe_module(plan: &Plan, name: &str, head: &str) -> String {
    let mut text = format!(
        "// {}: a PE writes the elements of input_vector(), calls compute(), and reads output_vector()\n\
         // when `done` is called.\n// {head}\n\n{}param kind: u16;\nparam done: fn () void;\n\n\
         fn file() comptime_string {{\n",
        described(plan),
        declared(plan)
    );
    let last = plan.kinds.len().saturating_sub(1);
    for kind in 0..last {
        let _ = write!(text, "  if (kind == {kind}) {{\n    return \"{}\";\n  }}\n", kind_file(name, kind));
    }
    let _ = write!(
        text,
        "  return \"{}\";\n}}\n\nconst part = @import_module(file(), .{{ {}, .done = done }});\n\n{}",
        kind_file(name, last),
        passed(plan),
        functions(plan, "part")
    );
    text
}

fn kind_module(plan: &Plan, name: &str, kind: &Kind, head: &str) -> String {
    let place = |color| plan.colors.iter().position(|c| c.0 == color).unwrap_or_default();
    let mut text = format!(
        "// PEs of one kind: the routes of their routers, and their program.\n// {head}\n\n{}param done: fn () void;\n\n\
         const program = @import_module(\"{}\", .{{ ",
        declared(plan),
        class_file(name, kind.class as usize)
    );
    for (number, &color) in kind.colors.iter().enumerate() {
        let _ = write!(text, ".c{number} = colors[{}], ", place(color));
    }
    if !plan.tasks.is_empty() {
        text.push_str(".tasks = tasks, ");
    }
    let _ = write!(text, ".done = done }});\n\n{}", functions(plan, "program"));
    if !kind.routes.is_empty() {
        text.push_str("\ncomptime {\n");
        for route in &kind.routes {
            let (color, config) = (place(route.color), layout::config(route));
            let _ = writeln!(text, "  @set_local_color_config(colors[{color}], {config});");
        }
        text.push_str("}\n");
    }
    text
}

fn described(plan: &Plan) -> String {
    let c = &plan.collective;
    format!("{} of {} {} on {} PEs", c.kind, c.elements, c.dtype, plan.grid)
}

/// Returns the colors and ids of tasks as arguments of the import in the layout.
fn given(plan: &Plan) -> String {
    let get =
        |name: &str, numbers: &[u8]| numbers.iter().map(|n| format!("@get_{name}({n})")).collect::<Vec<_>>().join(", ");
    let colors: Vec<u8> = plan.colors.iter().map(|c| c.1).collect();
    let mut given = format!(".colors = [{}]color{{ {} }}", colors.len(), get("color", &colors));
    if !plan.tasks.is_empty() {
        let (count, ids) = (plan.tasks.len(), get("local_task_id", &plan.tasks));
        let _ = write!(given, ",\n  .tasks = [{count}]local_task_id{{ {ids} }}");
    }
    given
}

/// Returns whether the example fits this collective: all ranks have inputs, and outputs, of equal nonzero length.
fn has_example(plan: &Plan) -> bool {
    let c = &plan.collective;
    let alike = |len: &dyn Fn(u32) -> u32| len(0) > 0 && (0..c.ranks).all(|rank| len(rank) == len(0));
    alike(&|rank| c.input_len(rank)) && alike(&|rank| c.output_len(rank))
}

/// Returns a whole program that calls the collective, in its own folder: layout, PE program, host script, commands.
fn example(plan: &Plan, name: &str, target: &SdkTarget) -> Files {
    let (c, grid, head) = (&plan.collective, plan.grid, head(target));
    let (inputs, outputs, dtype) = (c.input_len(0), c.output_len(0), c.dtype);
    let (launch, passed, started) = match target.launch {
        Some(color) => (
            format!("const LAUNCH: color = @get_color({color});\n"),
            ", .LAUNCH = LAUNCH",
            "  @rpc(@get_data_task_id(sys_mod.LAUNCH));\n",
        ),
        None => (String::new(), "", ""),
    };
    let Grid { rows, cols } = grid;
    let layout = format!(
        "// A program of its own that calls the {}.\n// {head}\n\n{launch}\
         const memcpy = @import_module(\"<memcpy/get_params>\", .{{ .width = {cols}, .height = {rows}{passed} }});\n\
         const {name} = @import_module(\"{name}_layout.csl\", .{{\n  {},\n}});\n\n\
         layout {{\n  @set_rectangle({cols}, {rows});\n  for (@range(u16, {rows})) |y| {{\n    for (@range(u16, {cols})) |x| {{\n      \
         @set_tile_code(x, y, \"pe.csl\", .{{ .memcpy_params = memcpy.get_params(x), .{name} = {name}.get_params(x, y) }});\n    \
         }}\n  }}\n\n  @export_name(\"input\", [*]{dtype}, true);\n  @export_name(\"output\", [*]{dtype}, true);\n  \
         @export_name(\"compute\", fn()void);\n}}\n",
        c.kind,
        given(plan)
    );
    let moving = move_builtin(dtype);
    let pe = format!(
        "// The program of each PE: the host writes `input`, starts `compute` and reads `output`.\n// {head}\n\n\
         param memcpy_params: comptime_struct;\nparam {name}: comptime_struct;\n\n\
         const sys_mod = @import_module(\"<memcpy/memcpy>\", memcpy_params);\n\
         const collective = @import_module(\"{name}_pe.csl\", @concat_structs({name}, .{{ .done = finished }}));\n\n\
         var input = @zeros([{inputs}]{dtype});\nvar output = @zeros([{outputs}]{dtype});\n\
         var input_ptr: [*]{dtype} = &input;\nvar output_ptr: [*]{dtype} = &output;\n\n\
         const own = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{inputs}}} -> input[i] }});\n\
         const result = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{outputs}}} -> output[i] }});\n\
         const given = @get_dsd(mem1d_dsd, .{{ .base_address = collective.input_vector(), .extent = {inputs} }});\n\
         const found = @get_dsd(mem1d_dsd, .{{ .base_address = collective.output_vector(), .extent = {outputs} }});\n\n\
         // Called when this PE has done its part. The host waits until every PE unblocks its commands.\n\
         fn finished() void {{\n  {moving}(result, found);\n  sys_mod.unblock_cmd_stream();\n}}\n\n\
         // Work of the program itself goes before the copy; all PEs must call the collective.\n\
         fn compute() void {{\n  {moving}(given, own);\n  collective.compute();\n}}\n\n\
         comptime {{\n{started}  @export_symbol(input_ptr, \"input\");\n  @export_symbol(output_ptr, \"output\");\n  \
         @export_symbol(compute);\n}}\n"
    );
    let commands = host::commands(plan, target).replace("cslc ./layout.csl", "cslc ./layout.csl --import-path=..");
    [("layout.csl", layout), ("pe.csl", pe), ("run.py", host::run_script(plan, target)), ("commands.sh", commands)]
        .into_iter()
        .map(|(file, text)| (format!("example/{file}"), text))
        .collect()
}

fn readme(plan: &Plan, name: &str, head: &str) -> String {
    let c = &plan.collective;
    let list = |numbers: Vec<u8>| {
        let mut numbers = numbers;
        numbers.sort_unstable();
        numbers.dedup();
        let all: Vec<String> = numbers.iter().map(u8::to_string).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    };
    let queues = |of: fn(&super::queues::Queues) -> &Vec<Option<u8>>| {
        list(plan.classes.iter().flat_map(|class| of(&class.queues)).flatten().copied().collect())
    };
    let given = given(plan);
    let example = if has_example(plan) {
        "`example` holds a whole program that calls the collective: `layout.csl`, `pe.csl`, the host's `run.py`, and \
         `commands.sh`, which compiles and runs it."
    } else {
        "`unisono emit allreduce --format csl-module` also writes a whole program that calls the collective."
    };
    let again = if plan.has_switches() {
        "Switches are not set back, so `compute` may be called once after the program is loaded."
    } else {
        "`compute` may be called again after `done` was called."
    };
    format!(
        "# {}, as modules

{head}

In the layout, with these or other free colors and ids of tasks:

```
const {name} = @import_module(\"{name}_layout.csl\", .{{
  {given},
}});
// In the layout block, for each PE of the rectangle: .{name} = {name}.get_params(x, y)
```

In the program of each PE:

```
param {name}: comptime_struct;
const collective = @import_module(\"{name}_pe.csl\", @concat_structs({name}, .{{ .done = finished }}));
```

`finished` is a function of the program without parameters. Where the host started the program by `launch`, it ends with
`sys_mod.unblock_cmd_stream()` of the module `<memcpy/memcpy>`, or the host waits for ever. Compile with `--import-path`
set to the folder of these files. {example}

* `collective.input_vector()` and `collective.output_vector()` return pointers to the {} of a PE's input and output.
* `collective.compute()` starts the collective on a PE; all PEs of the rectangle must call it. It calls `done` when the PE has done its part.
* {again}
* Input queues {} and output queues {} are taken. Colors of a program's own tasks and routes must be others than those given.
",
        described(plan),
        c.dtype,
        queues(|q| &q.input),
        queues(|q| &q.output)
    )
}
