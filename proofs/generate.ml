(* Prints the streams and instructions of a family of schedules as the proofs define it, in the text form, so that they
   can be compared with those that Unisono makes. Instructions of no elements are left out, as they do nothing. *)
open Checker

let operand length = function
  | Str s -> Printf.sprintf "s%d" s
  | Buf (b, s) -> Printf.sprintf "%s[%d..%d]" (match b with 0 -> "in" | 1 -> "out" | _ -> "tmp") s (s + length)

let print ?(scratch = fun _ -> 0) stream_count { count; ins; streams } =
  (* Streams that nothing uses are left out too. *)
  let names = Array.make stream_count (-1) and used = ref 0 in
  for i = 0 to count - 1 do
    if (ins i).len > 0 then List.iter (function Str s -> names.(s) <- 0 | Buf _ -> ()) (ins i).sinks
  done;
  for s = 0 to stream_count - 1 do
    if names.(s) = 0 then begin
      let { origin; readers; _ } = streams s in
      Printf.printf "stream s%d: %d ->%s\n" !used origin (String.concat "" (List.map (Printf.sprintf " %d") readers));
      names.(s) <- !used;
      incr used
    end
  done;
  let operand length = function Str s -> Printf.sprintf "s%d" names.(s) | place -> operand length place in
  let number = ref 0 and last = ref (-1) in
  for i = 0 to count - 1 do
    let x = ins i in
    if x.node <> !last then
      Printf.printf "node %d:%s\n" x.node (match scratch x.node with 0 -> "" | n -> Printf.sprintf " tmp=%d" n);
    last := x.node;
    if x.len > 0 then begin
      let text separator os = String.concat separator (List.map (operand x.len) os) in
      let memory = List.exists (function Buf _ -> true | Str _ -> false) (x.sources @ x.sinks) in
      Printf.printf "  i%d: %s -> %s%s\n" !number (text " + " x.sources) (text ", " x.sinks)
        (if memory then "" else Printf.sprintf " len=%d" x.len);
      incr number
    end
  done

let () =
  let usage () = prerr_endline "error: expected: generate ALGORITHM COLLECTIVE RANKS ELEMENTS [ROOT SEGMENT [ORDERED] | FACTOR...]"; exit 2 in
  let number k = try int_of_string Sys.argv.(k) with _ -> usage () in
  let ring make = print (number 3) (make (number 3) (number 4)) in
  let tree make = print (number 3 - 1) (make (number 3) (number 5) (number 6) (number 4)) in
  let reduce make scratch =
    let ranks = number 3 and elements = number 4 and root = number 5 and segment = number 6 in
    let top = top_of (number 7 = 1) root in
    let streams = if top = root then ranks - 1 else ranks in
    print ~scratch:(scratch ranks top root segment elements) streams (make ranks top root segment elements) in
  match Array.to_list Sys.argv |> List.tl with
  | "ring" :: "allgather" :: _ -> ring ring_allgather
  | "ring" :: "reduce-scatter" :: _ -> ring ring_reduce_scatter
  | "ring" :: "allreduce" :: _ -> ring ring_allreduce
  | "binomial" :: "broadcast" :: _ -> tree binomial_in_segments
  | "binomial" :: "reduce" :: _ -> reduce binomial_reduce_in_segments binomial_scratch
  | "pipelined-chain" :: "broadcast" :: _ -> tree chain_in_segments
  | "pipelined-chain" :: "reduce" :: _ -> reduce chain_reduce_in_segments chain_scratch
  | "circulant" :: "broadcast" :: _ ->
    let ranks = number 3 in
    print (circulant_streams ranks) (circulant_broadcast ranks (number 5) (number 6) (number 4))
  | [ "tables"; _ ] ->
    (* The tables of circulant broadcasts, beyond those that Coq computes. *)
    let wrong = List.filter (fun p -> not (table_right p)) (List.init (number 2 - 1) (( + ) 2)) in
    List.iter (Printf.printf "wrong table: %d ranks\n") wrong
  | "bruck" :: "allgather" :: _ ->
    let ranks = number 3 and elements = number 4 in
    print ~scratch:(bruck_scratch ranks elements) (rounds ranks * ranks) (bruck_allgather ranks elements)
  | "recursive-doubling" :: "allreduce" :: _ ->
    let ranks = number 3 in
    let pairs = doubling_pairs ranks in
    let rec stages n = if n < 2 then [] else 2 :: stages (n / 2) in
    print (exchange_streams pairs (stages ranks)) (recursive_doubling ranks (number 4))
  | "recursive-multiplying" :: "allreduce" :: _ ->
    let factors = List.init (Array.length Sys.argv - 5) (fun k -> number (k + 5)) in
    print (exchange_streams 0 factors) (recursive_multiplying factors (number 4))
  | _ -> usage ()
