(* Reads a schedule in the text form and its certificate, and decides by the extracted checker whether they are accepted.
   This file is trusted: it must read the text of a schedule as docs/certificates.md and docs/programs.md define it. The
   certificate is not trusted, and neither are the hints that this file computes. *)
open Checker

exception Unreadable of string

let fail format = Printf.ksprintf (fun s -> raise (Unreadable s)) format

let read_file path =
  let channel = try open_in_bin path with Sys_error e -> fail "%s" e in
  let text = try really_input_string channel (in_channel_length channel) with _ -> fail "'%s' cannot be read" path in
  close_in channel;
  text

let is_digit c = c >= '0' && c <= '9'

(* A number of up to ten digits. *)
let number ?(most = 0xffffffff) word =
  let digits = String.length word in
  if digits = 0 || digits > 10 || not (String.for_all is_digit word) then fail "'%s' is not a number" word;
  let value = int_of_string ("0u" ^ word) in
  if value > most then fail "found %d where a number from 0 to %d is expected" value most;
  value

let after_prefix prefix word =
  let n = String.length prefix in
  if String.length word >= n && String.sub word 0 n = prefix then Some (String.sub word n (String.length word - n)) else None

let after name prefix word =
  match after_prefix prefix word with Some rest -> rest | None -> fail "'%s' is no %s" word name

(* True if the text has a control character other than a tab and the ends of lines. *)
let has_control text =
  let wrong at = function
    | '\n' | '\t' -> false
    | '\r' -> at + 1 >= String.length text || text.[at + 1] <> '\n'
    | '\x7f' -> true
    | '\x80' .. '\x9f' -> at > 0 && text.[at - 1] = '\xc2'
    | c -> c < ' '
  in
  let rec from at = at < String.length text && (wrong at text.[at] || from (at + 1)) in
  from 0

let words line = List.filter (( <> ) "") (String.split_on_char ' ' (String.map (fun c -> if c = '\t' || c = '\r' then ' ' else c) line))

(* The words before the first one with an '=', and the options from there on. *)
let rec with_options = function
  | w :: rest when not (String.contains w '=') -> let found, options = with_options rest in (w :: found, options)
  | options -> ([], options)

let rec join_words separator = function
  | [] -> [ [] ]
  | w :: rest when w = separator -> [] :: join_words separator rest
  | w :: rest -> ( match join_words separator rest with first :: more -> (w :: first) :: more | [] -> [ [ w ] ])

(* The collective of a file, whether its root has a meaning, and whether its operator commutes. *)
let collective line =
  match words line with
  | [ "collective"; kind; ranks; elements; root; operator; dtype ] ->
      let what =
        match kind with
        | "allreduce" -> Allreduce | "reduce" -> Reduce | "reduce-scatter" -> ReduceScatter | "scan" -> Scan
        | "allgather" -> Allgather | "alltoall" -> Alltoall | "gather" -> Gather | "broadcast" -> Broadcast
        | "message" -> Message | "scatter" -> Scatter | "barrier" -> Barrier
        | other -> fail "'%s' is no collective" other
      in
      let ranks = number ~most:(1 lsl 22) (after "number of ranks" "ranks=" ranks) in
      let root = number (after "root" "root=" root) in
      let operator = after "operator" "operator=" operator and dtype = after "datatype" "dtype=" dtype in
      let integer = List.mem dtype [ "i16"; "i32"; "i64" ] in
      if not (integer || List.mem dtype [ "f32"; "f64"; "f16"; "bf16" ]) then fail "'%s' is no datatype" dtype;
      if not (List.mem operator [ "sum"; "prod"; "min"; "max"; "and"; "or"; "xor"; "ordered" ]) then fail "'%s' is no operator" operator;
      let reduces = List.mem what [ Allreduce; Reduce; ReduceScatter; Scan ] in
      if reduces && ((List.mem operator [ "and"; "or"; "xor" ] && not integer) || (operator = "ordered" && dtype <> "i64")) then
        fail "the datatype %s has no operator %s" dtype operator;
      if root >= ranks then fail "rank %d is no root of %d ranks" root ranks;
      let written = number ~most:9_999_999_999 (after "number of elements" "elements=" elements) in
      let elems = if what = Barrier then 1 else number (string_of_int written) in
      let blocks = if List.mem what [ Allgather; Alltoall; Gather; Scatter; ReduceScatter ] then ranks else 1 in
      if elems * blocks > 0xffffffff then fail "a buffer has %d elements" (elems * blocks);
      { what; ranks; elems; root; ordered = operator = "ordered" }
  | _ -> fail "'%s' is no collective of ranks" line

type parsed = {
  c : collective;
  instrs : instr array;
  table : stream array;
  scratch : (int, int) Hashtbl.t;
}

let slice word =
  let bracket = try String.index word '[' with Not_found -> fail "'%s' is no operand" word in
  let buffer = match String.sub word 0 bracket with "in" -> 0 | "out" -> 1 | "tmp" -> 2 | _ -> fail "'%s' is no operand" word in
  let n = String.length word in
  if word.[n - 1] <> ']' then fail "'%s' is no operand" word;
  match String.split_on_char '.' (String.sub word (bracket + 1) (n - bracket - 2)) with
  | [ first; ""; last ] ->
      let first = number first and last = number last in
      if first >= last then fail "'%s' is empty" word;
      (Buf (buffer, first), last - first)
  | _ -> fail "'%s' is no operand" word

let parse text =
  let instrs = ref [] and count = ref 0 and streams = ref [] and stream_count = ref 0 and scratch = Hashtbl.create 16 in
  let c = ref None and node = ref (-1) and lane = ref (-1) and in_lane = ref false and nodes = ref (-1) and phases = ref 0 in
  let known = Hashtbl.create 1024 and stated = Hashtbl.create 4 in
  let once what =
    if Hashtbl.mem stated what then fail "a second '%s'" what;
    Hashtbl.add stated what ()
  in
  let the_collective () = match !c with Some c -> c | None -> fail "a collective is expected" in
  let operand word =
    match Hashtbl.find_opt known word with
    | Some found -> found
    | None ->
        let found = slice word in
        Hashtbl.add known word found;
        found
  in
  let operands separator list =
    List.map (function [ word ] -> operand word | _ -> fail "operands are to be separated by '%s'" separator) list
  in
  let instruction name phase rest =
    if number name <> !count then fail "i%s is not i%d" name !count;
    if !node < 0 then fail "i%s comes before any node" name;
    if phase >= !phases then fail "i%s is of an unknown phase" name;
    let left, right = match join_words "->" rest with [ l; r ] -> (l, r) | _ -> fail "i%s has not one '->'" name in
    let right, options = with_options right in
    let rec commas = function
      | [] -> fail "i%s has no sink" name
      | [ last ] -> [ [ last ] ]
      | w :: more ->
          let n = String.length w in
          if w.[n - 1] <> ',' then fail "'%s' is to be followed by a comma" w;
          [ String.sub w 0 (n - 1) ] :: commas more
    in
    let sources = operands "+" (join_words "+" left) and sinks = operands ", " (commas right) in
    let said, waits =
      match options with
      | [] -> (None, [])
      | [ one ] when after_prefix "len=" one <> None -> (after_prefix "len=" one, [])
      | [ one ] -> (None, [ after "option" "after=" one ])
      | [ l; a ] -> (Some (after "length" "len=" l), [ after "dependency" "after=" a ])
      | _ -> fail "i%s has more than two options" name
    in
    let length = List.fold_left (fun known (_, l) ->
      if l < 0 || known = l then known else if known >= 0 then fail "i%s has operands of unlike lengths" name else l)
      (match said with Some l -> number l | None -> -1) (sources @ sinks) in
    if length <= 0 then fail "i%s has no length" name;
    let after = List.concat_map (fun w -> List.map (fun e -> number (after "instruction" "i" e)) (String.split_on_char ',' w)) waits in
    if not !in_lane then (in_lane := true; incr lane);
    instrs := { node = !node; lane = !lane; len = length; sources = List.map fst sources; sinks = List.map fst sinks; after } :: !instrs;
    incr count
  in
  let stream name rest =
    if number name <> !stream_count then fail "s%s is not s%d" name !stream_count;
    let place w = number ~most:(!nodes - 1) w in
    match rest with
    | origin :: "->" :: sinks ->
        let sinks, options = with_options sinks in
        let capacity = match options with [] -> None | [ w ] -> Some (number (after "capacity" "capacity=" w)) | _ -> fail "two capacities" in
        let origin = place origin and readers = List.map place sinks in
        if List.length (List.sort_uniq compare (origin :: readers)) <> 1 + List.length readers then fail "s%s names a node twice" name;
        streams := { origin; readers; capacity } :: !streams;
        (* Operands name it without leading zeros. *)
        Hashtbl.add known (Printf.sprintf "s%d" !stream_count) (Str !stream_count, -1);
        incr stream_count
    | _ -> fail "s%s is no stream" name
  in
  let line text =
    match words text with
    | "nodes" :: [ n ] ->
        let ranks = (the_collective ()).ranks in
        once "nodes";
        nodes := number ~most:(1 lsl 22) n;
        if !nodes < ranks then fail "%d nodes are fewer than the ranks" !nodes
    | "origin" :: _ -> once "origin"
    | "phases" :: names when names <> [] ->
        let reserved c = c = ':' || c = ',' || c = '=' in
        if List.exists (String.exists reserved) names then fail "a name of a phase has ':', ',' or '='";
        once "phases";
        phases := List.length names
    | "stream" :: name :: rest when String.length name > 2 && name.[String.length name - 1] = ':' ->
        stream (after "stream" "s" (String.sub name 0 (String.length name - 1))) rest
    | "node" :: name :: rest ->
        let name = match String.split_on_char ':' name with [ name; "" ] -> name | _ -> fail "'%s' is no node" name in
        let next = number ~most:(!nodes - 1) name in
        if next <= !node then fail "node %d comes after node %d" next !node;
        node := next;
        in_lane := false;
        (match rest with [] -> () | [ size ] -> Hashtbl.replace scratch next (number (after "size" "tmp=" size)) | _ -> fail "'%s'" text)
    | [ "lane" ] when !node >= 0 -> in_lane := false
    | name :: rest when name.[0] = 'i' && name.[String.length name - 1] = ':' -> instruction (String.sub name 1 (String.length name - 2)) 0 rest
    | name :: phase :: rest when name.[0] = 'i' && phase.[0] = 'p' && phase.[String.length phase - 1] = ':' ->
        instruction (String.sub name 1 (String.length name - 1)) (number (String.sub phase 1 (String.length phase - 2))) rest
    | _ -> fail "'%s' cannot be read here" text
  in
  (* The first two lines that hold more than a comment name the format and the collective. *)
  let seen = ref 0 in
  let rec lines at = function
    | [] -> ()
    | text :: rest ->
        (* The sections after the schedule have their own form. *)
        if after_prefix "machine" text = None && after_prefix "placement" text = None then begin
          let code = match String.index_opt text ';' with Some at -> String.sub text 0 at | None -> text in
          (try
             let named prefix = after_prefix prefix code <> None in
             if String.exists (fun c -> c >= '\x80') code && not (named "origin " || named "phases ") then
               fail "the line has characters that no instruction has";
             if words code <> [] then begin
               incr seen;
               match !seen with
               | 1 -> if words code <> [ "unisono-schedule"; "1" ] then fail "the file does not begin with 'unisono-schedule 1'"
               | 2 -> let found = collective code in c := Some found; nodes := found.ranks
               | _ -> line code
             end
           with Unreadable why -> fail "line %d: %s" at why);
          lines (at + 1) rest
        end
  in
  if has_control text then fail "the text has a control character";
  lines 1 (String.split_on_char '\n' text);
  { c = the_collective (); instrs = Array.of_list (List.rev !instrs); table = Array.of_list (List.rev !streams); scratch }

(* The steps of a certificate: instructions with the facts about them. *)
let certificate count text =
  let lines = String.split_on_char '\n' text in
  let step word =
    let position c = match String.index_opt word c with Some at -> at | None -> String.length word in
    let facts_at = position '<' in
    let head = String.sub word 0 facts_at in
    let range = List.map (fun w -> number w) (String.split_on_char '-' head) in
    let claim text =
      let before, text = match after_prefix "=" text with Some rest -> (true, rest) | None -> (false, text) in
      match String.split_on_char '@' text with
      | [ via ] -> { c_before = before; c_via = number via; c_fact = None }
      | [ via; fact ] -> { c_before = before; c_via = number via; c_fact = Some (number fact) }
      | _ -> fail "'%s' is no fact" text
    in
    let claims =
      if facts_at = String.length word then []
      else List.map claim (List.tl (String.split_on_char '<' (String.sub word facts_at (String.length word - facts_at))))
    in
    match range with
    | [ one ] -> [ (one, claims) ]
    | [ first; last ] when first <= last && last < count && claims = [] -> List.init (last + 1 - first) (fun k -> (first + k, []))
    | _ -> fail "'%s' is no step of an order of %d instructions" word count
  in
  match lines with
  | "unisono-certificate 1" :: _digest :: instructions :: facts :: claims :: "order" :: rest ->
      if instructions <> Printf.sprintf "instructions %d" count then fail "the certificate is not of %d instructions" count;
      let claimed = [ ""; " repeatable"; " repeatable place" ] in
      if not (List.mem claims (List.map (( ^ ) "claims complete deadlock-free race-free") claimed)) then
        fail "'%s' are other claims" claims;
      let left = ref count in
      let step word =
        let found = step word in
        left := !left - List.length found;
        if !left < 0 then fail "the order has more than %d instructions" count;
        found
      in
      let rec steps found = function
        | [ "end"; "" ] ->
            let stated = List.fold_left (fun n (_, claims) -> n + List.length claims) 0 found in
            if facts <> Printf.sprintf "facts %d" stated then fail "the certificate has %d facts, not '%s'" stated facts;
            List.rev found
        | line :: rest -> steps (List.fold_left (fun found word -> List.rev_append (step word) found) found (String.split_on_char ' ' line)) rest
        | [] -> fail "the certificate has no end"
      in
      steps [] rest
  | _ -> fail "the file is no certificate"

(* Hints make the check fast. A wrong one leads to a refusal only. *)
let hints p =
  let push_lane = Array.make (Array.length p.table) 0 and pushed = Array.make (Array.length p.table) 0 in
  let pop_lane = Hashtbl.create 1024 and popped = Hashtbl.create 1024 in
  let lanes = Hashtbl.create 1024 and several = Hashtbl.create 16 in
  let streams os = List.filter_map (function Str s -> Some s | Buf _ -> None) os in
  let number (i : instr) =
    (match Hashtbl.find_opt lanes i.node with
     | Some lane when lane <> i.lane -> Hashtbl.replace several i.node ()
     | Some _ -> ()
     | None -> Hashtbl.add lanes i.node i.lane);
    let pushes = List.map (fun s ->
      let at = pushed.(s) in
      push_lane.(s) <- i.lane; pushed.(s) <- at + i.len; (s, at)) (streams i.sinks) in
    let pops = List.map (fun s ->
      let key = (s, i.node) in
      let at = Option.value (Hashtbl.find_opt popped key) ~default:0 in
      Hashtbl.replace pop_lane key i.lane; Hashtbl.replace popped key (at + i.len); (s, at)) (streams i.sources) in
    (pushes, pops)
  in
  let positions = Array.map number p.instrs in
  let at list s = match list with [ (t, at) ] when t = s -> at | _ -> Option.value (List.assoc_opt s list) ~default:0 in
  { push_lane = (fun s -> push_lane.(s));
    pop_lane = (fun s n -> Option.value (Hashtbl.find_opt pop_lane (s, n)) ~default:0);
    push_pos = (fun i s -> if i < Array.length positions then at (fst positions.(i)) s else 0);
    pop_pos = (fun i s -> if i < Array.length positions then at (snd positions.(i)) s else 0);
    shared = Hashtbl.mem several;
    only_lane = (fun n -> Option.value (Hashtbl.find_opt lanes n) ~default:0) }

(* The exit code and the sentence for two texts: 0 accepted, 1 refused, 2 unreadable. *)
let decide schedule cert =
  match parse schedule with
  | exception Unreadable why -> (2, "error: " ^ why)
  | p -> (
      let count = Array.length p.instrs in
      match certificate count cert with
      | exception Unreadable why -> (1, "refused: " ^ why)
      | steps -> (
          let streams = Array.length p.table in
          let nothing = { node = 0; lane = 0; len = 0; sources = []; sinks = []; after = [] } in
          let instruction i = if i < count then p.instrs.(i) else nothing in
          let stream s = if s < streams then p.table.(s) else { origin = 0; readers = []; capacity = None } in
          let scratch n = Option.value (Hashtbl.find_opt p.scratch n) ~default:0 in
          match verdict { count; ins = instruction; streams = stream } (hints p) p.c scratch streams steps with
          | 0 -> (0, Printf.sprintf "accepted: complete, deadlock-free, race-free; %d instructions" count)
          | 1 -> (1, "refused: the schedule is not well-formed, or it cannot run in the order of the certificate")
          | 2 -> (1, "refused: the facts do not order two accesses of one place")
          | _ -> (1, "refused: an operand is outside of its buffer or not written before, or an output lacks what it must hold")))

let check schedule cert =
  try decide schedule cert with Stack_overflow | Out_of_memory -> (2, "error: the memory is not enough")

(* Each case of the input is a line with two numbers of bytes, then so many bytes of a schedule and of a certificate. Each
   line of the output is an exit code. *)
let rec stream () =
  match String.split_on_char ' ' (input_line stdin) |> List.map int_of_string with
  | [ schedule; cert ] ->
      let schedule = really_input_string stdin schedule in
      let cert = really_input_string stdin cert in
      Printf.printf "%d\n%!" (fst (check schedule cert));
      stream ()
  | _ -> failwith "two numbers of bytes are expected"
  | exception End_of_file -> ()

let () =
  match Array.to_list Sys.argv with
  | [ _; "--stream" ] -> stream ()
  | [ _; schedule; cert ] ->
      let code, message =
        match (read_file schedule, read_file cert) with
        | schedule, cert -> check schedule cert
        | exception Unreadable why -> (2, "error: " ^ why)
      in
      (if code = 0 then print_endline else prerr_endline) message;
      exit code
  | _ ->
      prerr_endline "error: two files are expected: unisono-check FILE.sched CERTIFICATE";
      exit 2
