(* Prints the streams and instructions of a family of schedules as the proofs define it, in the text form, so that they
   can be compared with those that Unisono makes. Instructions of no elements are left out, as they do nothing. *)
open Checker

let operand length = function
  | Str s -> Printf.sprintf "s%d" s
  | Buf (b, s) -> Printf.sprintf "%s[%d..%d]" (match b with 0 -> "in" | 1 -> "out" | _ -> "tmp") s (s + length)

let print stream_count { count; ins; streams } =
  for s = 0 to stream_count - 1 do
    let { origin; readers; _ } = streams s in
    Printf.printf "stream s%d: %d ->%s\n" s origin (String.concat "" (List.map (Printf.sprintf " %d") readers))
  done;
  let number = ref 0 and last = ref (-1) in
  for i = 0 to count - 1 do
    let x = ins i in
    if x.node <> !last then Printf.printf "node %d:\n" x.node;
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
  let usage () = prerr_endline "error: expected: generate ALGORITHM COLLECTIVE RANKS ELEMENTS [ROOT SEGMENT]"; exit 2 in
  let number k = try int_of_string Sys.argv.(k) with _ -> usage () in
  let ring make = make (number 3) (number 4) in
  let tree make = make (number 3) (number 5) (number 6) (number 4) in
  match Sys.argv with
  | [| _; "ring"; "allgather"; ranks; _ |] -> print (int_of_string ranks) (ring ring_allgather)
  | [| _; "ring"; "reduce-scatter"; ranks; _ |] -> print (int_of_string ranks) (ring ring_reduce_scatter)
  | [| _; "ring"; "allreduce"; ranks; _ |] -> print (int_of_string ranks) (ring ring_allreduce)
  | [| _; "binomial"; "broadcast"; ranks; _; _; _ |] -> print (int_of_string ranks - 1) (tree binomial_in_segments)
  | [| _; "pipelined-chain"; "broadcast"; ranks; _; _; _ |] -> print (int_of_string ranks - 1) (tree chain_in_segments)
  | [| _; "pipelined-chain"; "reduce"; ranks; _; _; _ |] -> print (int_of_string ranks - 1) (tree chain_reduce_in_segments)
  | _ -> usage ()
